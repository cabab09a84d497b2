//! Tests of listing objects.

use super::fixture::{Fixture, Subject, digests, names};
use s3_types::Conditions;

use crate::{BackendError, ListItem, ListPosition};

/// Keys that some file system, program or protocol might misread.
const ODD_KEYS: &[&str] = &[
    "a",
    "a//b",
    "a/./b",
    "a/../b",
    ".",
    "..",
    "./",
    "../",
    "/",
    "//",
    "/a",
    "a/",
    " ",
    "\n",
    "\u{1}",
    "\u{7f}",
    "a\\b",
    "%",
    "%2F",
    "*",
    "\u{fffd}",
    "\u{10ffff}",
    "漢字/かな",
    "e\u{301}",
    "\u{e9}",
    "a\0b",
    "\0",
    ".slipway",
    ".slipway/x",
    ".slipway,self",
    "a/.slipway/locks/00",
    "A",
    "con",
    "nul.txt",
    "trailing.",
    "trailing ",
    ".hidden",
    "~",
    "-rf",
];

/// All odd keys can be stored, read and listed, in the order of their bytes. Keys with a thousand
/// levels are only tried with `deep_too`: where each level may be a call to a server, they would
/// take minutes.
pub async fn odd_keys(subject: &Subject, deep_too: bool) {
    let fixture = Fixture::new(subject, "odd").await;
    let long = "x".repeat(1024);
    let deep = "a/".repeat(512);
    let empties = "/".repeat(1024);
    let accents = "é".repeat(512);
    let mut keys = [ODD_KEYS, &[&long, &deep, &empties, &accents]].concat();
    if !deep_too {
        keys.retain(|name| *name != empties && *name != deep);
    }
    // A file system that goes by paths (FUSE) may take none this long; whether this one does is the
    // backend's own test.
    if keys.contains(&empties.as_str())
        && let Err(BackendError::KeyNotStorable(_)) =
            fixture.put_if(&empties, b"", Conditions::default()).await
    {
        keys.retain(|name| *name != empties);
    }
    for name in &keys {
        fixture.put(name, name.as_bytes()).await;
    }
    keys.sort_unstable();
    assert_eq!(fixture.keys().await, keys);
    assert_eq!(fixture.list("", None, 1).await, keys);
    for name in &keys {
        assert_eq!(fixture.get(name).await.as_deref(), Some(name.as_bytes()), "{name:?}");
    }
    fixture.finish().await;
}

/// Listings with prefixes and delimiters, and the attributes of the objects in a page.
pub async fn listing(subject: &Subject) {
    let fixture = Fixture::new(subject, "listing").await;
    for name in
        ["a", "a-b", "a/1", "a/2/x", "a0", "b//c", "b/c", "boo/bar", "boo/baz/xyzzy", "cquux/thud", "z"]
    {
        fixture.put(name, name.as_bytes()).await;
    }
    let list = async |prefix, delimiter| fixture.list(prefix, delimiter, 2).await;
    assert_eq!(list("", Some("/")).await, ["a", "a-b", "a/", "a0", "b/", "boo/", "cquux/", "z"]);
    assert_eq!(list("a", Some("/")).await, ["a", "a-b", "a/", "a0"]);
    assert_eq!(list("a/", Some("/")).await, ["a/1", "a/2/"]);
    assert_eq!(list("a/2", Some("/")).await, ["a/2/"]);
    assert_eq!(list("b/", Some("/")).await, ["b//", "b/c"]);
    assert_eq!(list("boo/", Some("a")).await, ["boo/ba"]);
    assert_eq!(
        list("", Some("oo/")).await,
        ["a", "a-b", "a/1", "a/2/x", "a0", "b//c", "b/c", "boo/", "cquux/thud", "z"]
    );
    assert_eq!(list("c", Some("uu")).await, ["cquu"]);
    assert_eq!(list("b", None).await, ["b//c", "b/c", "boo/bar", "boo/baz/xyzzy"]);
    for nothing in ["x", "a/3", "a/1/", "zz", "/", "z/", &"a".repeat(2000)] {
        assert!(list(nothing, None).await.is_empty(), "{nothing}");
    }
    let page = fixture.page("cq", None, None, 10).await;
    let [ListItem::Object(object)] = &page.items[..] else { panic!("{:?}", page.items) };
    let head = fixture.head("cquux/thud").await.unwrap().attributes;
    let expected = digests(b"cquux/thud");
    assert_eq!((&object.etag, object.checksum), (&expected.etag, expected.checksum));
    assert_eq!((object.size_bytes, object.last_modified), (head.size_bytes, head.last_modified));
    fixture.finish().await;
}

/// The beginnings and ends of pages.
pub async fn listing_pages(subject: &Subject) {
    let fixture = Fixture::new(subject, "pages").await;
    for name in ["a", "b/1", "b/2", "c", "d/1"] {
        fixture.put(name, b"").await;
    }
    let page = async |delimiter, start: Option<ListPosition>, max| {
        let page = fixture.page("", delimiter, start.as_ref(), max).await;
        (names(&page), page.next)
    };
    let key = |text: &str| Some(ListPosition::AfterKey(text.to_owned()));
    let prefix = |text: &str| Some(ListPosition::AfterPrefix(text.to_owned()));
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();

    assert_eq!(page(None, None, 5).await, (owned(&["a", "b/1", "b/2", "c", "d/1"]), None));
    assert_eq!(page(None, None, 2).await, (owned(&["a", "b/1"]), key("b/1")));
    assert_eq!(page(None, key("b/1"), 2).await, (owned(&["b/2", "c"]), key("c")));
    assert_eq!(page(None, key("b"), 1).await.0, ["b/1"]);
    assert_eq!(page(None, prefix("b/"), 5).await.0, ["c", "d/1"]);
    assert_eq!(page(Some("/"), None, 2).await, (owned(&["a", "b/"]), prefix("b/")));
    assert_eq!(page(Some("/"), prefix("b/"), 2).await, (owned(&["c", "d/"]), None));
    assert_eq!(page(Some("/"), key("b/1"), 9).await.0, ["b/", "c", "d/"]);
    assert_eq!(page(Some("/"), key("b/2"), 9).await.0, ["c", "d/"]);
    assert_eq!(page(Some("/"), key("zzz"), 9).await, (Vec::new(), None));
    fixture.finish().await;
}
