//! Listings of random trees, compared with a sorted set.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::collections::BTreeSet;

use backend::ListPosition;
use backend::conformance::{Fixture, Subject, names};
use backend_posix::{Durability, Options, PosixBackend};
use proptest::prelude::*;
use s3_types::VersionId;

/// The listing that S3 defines for these keys.
fn model(
    keys: &BTreeSet<String>,
    prefix: &str,
    delimiter: Option<&str>,
    start: Option<&ListPosition>,
    max_items: usize,
) -> (Vec<String>, bool) {
    let mut items: Vec<String> = Vec::new();
    for key in keys.iter().filter(|key| key.starts_with(prefix)) {
        let past = match start {
            None => false,
            Some(ListPosition::AfterKey(after) | ListPosition::AfterVersion { key: after, .. }) => {
                key <= after
            }
            Some(ListPosition::AfterPrefix(after)) => key.starts_with(after.as_str()) || key < after,
        };
        let rest = &key[prefix.len()..];
        let item = match delimiter.and_then(|d| rest.find(d).map(|at| at + d.len())) {
            Some(end) => key[..prefix.len() + end].to_owned(),
            None => key.clone(),
        };
        if !past && items.last() != Some(&item) {
            items.push(item);
        }
    }
    let more = items.len() > max_items;
    items.truncate(max_items);
    (items, more)
}

fn component() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[ab]{1,2}",
        2 => "[ab][-.0~!]?",
        1 => Just(String::new()),
        1 => Just(".".to_owned()),
        1 => Just("..".to_owned()),
        1 => prop::sample::select(vec![".slipway", ".slipway,self", ".slipway,dir", ".slipwayx", ".slipway,+a"])
            .prop_map(str::to_owned),
        1 => prop::sample::select(vec!["é", "漢", "\u{1}", "\u{10ffff}", "\0", "\n"]).prop_map(str::to_owned),
        1 => (0usize..3, "[ab]").prop_map(|(n, end)| "x".repeat(255 + 120 * n) + &end),
    ]
}

fn after_the_only_version(key: String) -> ListPosition {
    ListPosition::AfterVersion { key, version: VersionId::new("null").unwrap() }
}

fn key() -> impl Strategy<Value = String> {
    prop::collection::vec(component(), 1..4)
        .prop_map(|parts| parts.join("/"))
        .prop_filter("a key", |key| (1..=1024).contains(&key.len()))
}

fn query_text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        4 => (key(), any::<prop::sample::Index>()).prop_map(|(key, cut)| {
            let cut = key.floor_char_boundary(cut.index(key.len() + 1));
            key[..cut].to_owned()
        }),
        1 => key(),
    ]
}

type Query = (String, Option<String>, Option<ListPosition>, usize);

fn query() -> impl Strategy<Value = Query> {
    let delimiter = prop_oneof![
        4 => Just(Some("/".to_owned())),
        2 => Just(None),
        1 => "[ab/.]{1,2}".prop_map(Some)
    ];
    let start = prop_oneof![
        2 => Just(None),
        2 => query_text().prop_map(|key| Some(ListPosition::AfterKey(key))),
        1 => query_text().prop_map(|key| Some(after_the_only_version(key))),
        1 => query_text().prop_map(|prefix| Some(ListPosition::AfterPrefix(prefix))),
    ];
    (query_text(), delimiter, start, prop_oneof![1usize..4, Just(1000)])
}

async fn check(keys: BTreeSet<String>, gone: Vec<String>, queries: Vec<Query>) {
    let root = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..fixture::options() };
    let subject = Subject::of(PosixBackend::open(root.path(), options).unwrap());
    let fixture = Fixture::new(&subject, "model").await;
    for key in keys.iter().chain(&gone) {
        fixture.put(key, if key.len() % 2 == 0 { b"" } else { b"x" }).await;
    }
    for key in gone.iter().filter(|key| !keys.contains(*key)) {
        fixture.delete(key, &s3_types::Conditions::default()).await.unwrap();
    }
    assert_eq!(fixture.keys().await, keys.iter().cloned().collect::<Vec<_>>());
    for (prefix, delimiter, start, max_items) in queries {
        let page = fixture.page(&prefix, delimiter.as_deref(), start.as_ref(), max_items).await;
        let expected = model(&keys, &prefix, delimiter.as_deref(), start.as_ref(), max_items);
        let context = format!("{keys:?} {prefix:?} {delimiter:?} {start:?} {max_items}");
        assert_eq!((names(&page), page.next.is_some()), expected, "{context}");
        // Pages in a row are the whole.
        let all = model(&keys, &prefix, delimiter.as_deref(), None, usize::MAX).0;
        assert_eq!(fixture.list(&prefix, delimiter.as_deref(), max_items).await, all, "{context}");
    }
    for key in &keys {
        fixture.delete(key, &s3_types::Conditions::default()).await.unwrap();
    }
    fixture.finish().await;
    assert!(fixture::names(root.path()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_those_of_the_model(
        keys in prop::collection::btree_set(key(), 0..25),
        gone in prop::collection::vec(key(), 0..8),
        queries in prop::collection::vec(query(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(keys, gone, queries));
    }
}
