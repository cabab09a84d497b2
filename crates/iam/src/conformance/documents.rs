//! Tests of the behaviour that every [`Documents`] must have. Two handles lead to one store, as the
//! handles of two gateways do: a test writes with one handle and looks with the other.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::documents::{DocumentName, Documents, Mark, StoreError, Tag};
use crate::model::limits::ACCOUNT_BYTES_MAX;

/// Two handles of one store, which has no documents but those that are not the tests'.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The handle with which the tests make changes.
    pub one: Arc<dyn Documents>,
    /// The handle of another gateway, with which the tests look. It may be the same handle.
    pub other: Arc<dyn Documents>,
    /// The size in bytes of the largest document that the store takes, if that is less than 16 MiB.
    pub bytes_max: Option<usize>,
}

/// Runs all tests.
pub async fn run(subject: &Subject) {
    life(subject).await;
    wrong_tags(subject).await;
    looks(subject).await;
    odd_bytes(subject).await;
    sizes(subject).await;
    one_of_many(subject).await;
    no_change_is_lost(subject).await;
}

fn name(text: &str) -> DocumentName {
    DocumentName::new(text).unwrap()
}

#[track_caller]
fn changed<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Changed)), "{result:?}");
}

async fn read(documents: &dyn Documents, name: &DocumentName) -> Option<(Bytes, Tag)> {
    documents.read(name).await.unwrap()
}

async fn listed(documents: &dyn Documents, name: &DocumentName) -> Option<Tag> {
    let list = documents.list().await.unwrap();
    assert!(list.is_sorted_by(|(one, _), (next, _)| one < next), "in order, each once: {list:?}");
    list.into_iter().find(|(there, _)| there == name).map(|(_, tag)| tag)
}

async fn remove(documents: &dyn Documents, name: &DocumentName) {
    let (_, tag) = read(documents, name).await.unwrap();
    assert_eq!(documents.replace(name, Some(&tag), None).await.unwrap(), None);
}

/// A document is made, read, replaced and removed; the other handle sees each step at once.
async fn life(Subject { one, other, .. }: &Subject) {
    let name = name("conformance-life");
    assert_eq!(read(&**other, &name).await, None);
    assert_eq!(listed(&**other, &name).await, None);
    let mut tag = None;
    for body in ["{}", "{ }", "", "{}"] {
        let new = one.replace(&name, tag.as_ref(), Some(Bytes::from_static(body.as_bytes()))).await.unwrap();
        let new = new.expect("a document that is there has a tag");
        assert_ne!(tag.as_ref(), Some(&new), "another state has another tag");
        for documents in [one, other] {
            let (bytes, read_tag) = read(&**documents, &name).await.unwrap();
            assert_eq!((&bytes[..], &read_tag), (body.as_bytes(), &new));
            assert_eq!(listed(&**documents, &name).await, Some(new.clone()));
        }
        tag = Some(new);
    }
    assert_eq!(one.replace(&name, tag.as_ref(), None).await.unwrap(), None);
    for documents in [one, other] {
        assert_eq!(read(&**documents, &name).await, None);
        assert_eq!(listed(&**documents, &name).await, None);
    }
}

/// A write that expects another state than the document has is refused, and changes nothing.
async fn wrong_tags(Subject { one, other, .. }: &Subject) {
    let name = name("conformance-tags");
    let body = |text: &'static str| Some(Bytes::from_static(text.as_bytes()));
    let never = Tag::new("0000000000000000");
    changed(&one.replace(&name, Some(&never), body("a")).await);
    changed(&one.replace(&name, Some(&never), None).await);
    assert_eq!(read(&**other, &name).await, None);
    let first = one.replace(&name, None, body("a")).await.unwrap().unwrap();
    changed(&other.replace(&name, None, body("b")).await);
    let second = other.replace(&name, Some(&first), body("b")).await.unwrap().unwrap();
    changed(&one.replace(&name, Some(&first), body("c")).await);
    changed(&one.replace(&name, Some(&first), None).await);
    changed(&one.replace(&name, None, body("c")).await);
    assert_eq!(read(&**one, &name).await, Some((Bytes::from_static(b"b"), second.clone())));
    one.replace(&name, Some(&second), None).await.unwrap();
    changed(&other.replace(&name, Some(&second), body("c")).await);
    assert_eq!(read(&**other, &name).await, None);
}

/// After each change both handles have another mark than before it.
async fn looks(Subject { one, other, .. }: &Subject) {
    let name = name("conformance-looks");
    let mut before: Vec<Mark> = vec![one.look().await.unwrap(), other.look().await.unwrap()];
    let mut tag = None;
    // Bodies of one size, in quick succession: nothing but the bytes differs.
    for round in 0..20u8 {
        let body = (round < 19).then(|| Bytes::from(vec![b'a' + round; 16]));
        tag = one.replace(&name, tag.as_ref(), body).await.unwrap();
        let now = vec![one.look().await.unwrap(), other.look().await.unwrap()];
        for (before, now) in before.iter().zip(&now) {
            assert_ne!(before, now, "round {round}");
        }
        before = now;
    }
}

/// Bytes come back unchanged, also those that are not valid text.
async fn odd_bytes(Subject { one, other, .. }: &Subject) {
    let name = name("conformance-odd-bytes");
    let all: Vec<u8> = (0..=255).collect();
    let bodies = [&b"\0"[..], b"\r\n\n", b" x ", b"\xef\xbb\xbf{}", "ü\u{1f600}".as_bytes(), &all];
    let mut tag = None;
    for body in bodies {
        tag = one.replace(&name, tag.as_ref(), Some(Bytes::copy_from_slice(body))).await.unwrap();
        assert_eq!(read(&**other, &name).await.unwrap().0, body);
    }
    remove(&**one, &name).await;
}

/// The largest document is kept, and one that is larger is refused.
async fn sizes(Subject { one, other, bytes_max }: &Subject) {
    let name = name("conformance-sizes");
    let max = bytes_max.unwrap_or(ACCOUNT_BYTES_MAX);
    // Bytes that do not repeat, so that one that is lost shows.
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(state >> 24).unwrap() % 26
    };
    let large: Vec<u8> = std::iter::repeat_with(next).take(max).collect();
    let large = Bytes::from(large);
    let tag = one.replace(&name, None, Some(large.clone())).await.unwrap();
    let (bytes, read_tag) = read(&**other, &name).await.unwrap();
    assert!(bytes == large && Some(&read_tag) == tag.as_ref(), "{} bytes", bytes.len());
    let larger = Bytes::from([&large[..], b"a"].concat());
    let refused = one.replace(&name, tag.as_ref(), Some(larger)).await;
    assert!(matches!(refused, Err(StoreError::TooLarge)), "{refused:?}");
    assert_eq!(read(&**other, &name).await.map(|(_, tag)| tag), tag);
    remove(&**one, &name).await;
}

/// One of several writers that make a document at once succeeds.
async fn one_of_many(Subject { one, other, .. }: &Subject) {
    for round in 0..5 {
        let name = name(&format!("conformance-winner-{round}"));
        let writers = (0..8).map(|number| {
            let (documents, name) = (if number % 2 == 0 { one } else { other }, &name);
            let body = Bytes::from(format!("{number}"));
            async move { documents.replace(name, None, Some(body)).await }
        });
        let results = join_all(writers).await;
        let winners: Vec<_> = results.iter().enumerate().filter(|(_, result)| result.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let (bytes, _) = read(&**other, &name).await.unwrap();
        assert_eq!(bytes, winners[0].0.to_string());
        results.iter().filter(|result| result.is_err()).for_each(changed);
        remove(&**one, &name).await;
    }
}

/// Eight writers that count up in one document at once lose no increment.
async fn no_change_is_lost(Subject { one, other, .. }: &Subject) {
    const ROUNDS: u32 = 10;
    let name = name("conformance-counter");
    one.replace(&name, None, Some(Bytes::from_static(b"0"))).await.unwrap();
    let writers = (0..8).map(|number| {
        let (documents, name) = (if number % 2 == 0 { one } else { other }, &name);
        async move {
            for _ in 0..ROUNDS {
                loop {
                    let (bytes, tag) = read(&**documents, name).await.unwrap();
                    let count: u32 = std::str::from_utf8(&bytes).unwrap().parse().unwrap();
                    let next = Bytes::from((count + 1).to_string());
                    match documents.replace(name, Some(&tag), Some(next)).await {
                        Ok(_) => break,
                        Err(StoreError::Changed) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    });
    join_all(writers).await;
    assert_eq!(read(&**other, &name).await.unwrap().0, (8 * ROUNDS).to_string());
    remove(&**one, &name).await;
}
