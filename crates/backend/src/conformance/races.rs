//! Tests of concurrent requests.

use bytes::Bytes;
use futures_util::future::{join, join_all};

use super::fixture::{Fixture, Subject, collect, digests, if_absent, if_match};
use crate::BackendError;
use s3_types::Conditions;

/// Sends many concurrent requests that create a key, or that replace one known version of it, one
/// succeeds.
pub async fn one_winner(subject: &Subject) {
    let fixture = Fixture::new(subject, "winner").await;
    for round in 0..10 {
        let name = format!("d{round}/a");
        let bodies: Vec<_> = (0..8).map(|n| Bytes::from(format!("{n}"))).collect();
        let results = join_all(bodies.iter().map(|body| fixture.put_if(&name, body, if_absent()))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        let winner = results.into_iter().find_map(Result::ok).unwrap();

        let bodies: Vec<_> = (0..8).map(|n| Bytes::from(format!("next {n}"))).collect();
        let results =
            join_all(bodies.iter().map(|body| fixture.put_if(&name, body, if_match(&winner.etag)))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        for result in results {
            assert!(matches!(result, Ok(_) | Err(BackendError::PreconditionFailed(_))));
        }
    }
    fixture.finish().await;
}

/// Readers see some whole version with its own attributes, and never miss an object that is only
/// replaced.
pub async fn readers_see_one_version(subject: &Subject) {
    let fixture = Fixture::new(subject, "versions").await;
    let body = |n: u8| vec![n; 1000 + usize::from(n)];
    fixture.put("a", &body(0)).await;
    let write = async {
        for n in 1..40 {
            fixture.put("a", &body(n)).await;
            // Makes and removes a directory at the object's own name.
            fixture.put("a/b", b"").await;
            fixture.delete("a/b", &Conditions::default()).await.unwrap();
        }
    };
    let read = async {
        for _ in 0..200 {
            let read = fixture.read("a", crate::ReadSelector::Whole, &Conditions::default()).await.unwrap();
            let bytes = collect(read.body).await;
            assert_eq!(bytes, body(bytes[0]));
            assert_eq!(read.attributes.etag, digests(&bytes).etag);
            assert!(fixture.keys().await.contains(&"a".to_owned()));
        }
    };
    join(write, read).await;
    fixture.finish().await;
}
