//! When keys were last used.

use super::*;

const HOUR: Duration = Duration::from_hours(1);

async fn session(gateway: &Gateway, key: &Credential) -> Arc<crate::session::Session> {
    gateway.ask(key, None).await.unwrap()
}

impl Gateway {
    async fn uses(&self, key: &Credential, service: UsedService, region: &str) {
        let session = session(self, key).await;
        self.registry.note_use(&session, self.clock.now(), service, region);
    }

    /// Hour (from the first one), service and region.
    async fn last(&self, key: &Credential) -> Option<(i64, &'static str, String)> {
        let last = self.registry.last_uses().await.unwrap().of_key(&key.access_key)?;
        assert_eq!(last.hour.as_second() % 3_600, 0);
        let hours = last.hour.as_second() / 3_600 - 1_800_000_000 / 3_600;
        Some((hours, last.service.as_str(), last.region.to_string()))
    }
}

fn at(hours: i64, service: &'static str, region: &str) -> (i64, &'static str, String) {
    (hours, service, region.to_owned())
}

#[tokio::test]
async fn uses_are_shared_once_they_are_written() {
    let [one, other] = gateways().await;
    let key = one.user("alice").await;
    assert_eq!(one.last(&key).await, None);
    one.uses(&key, UsedService::S3, "here").await;
    assert_eq!((one.last(&key).await, other.last(&key).await), (Some(at(0, "s3", "here")), None));
    one.registry.write_uses().await.unwrap();
    assert_eq!(
        (one.last(&key).await, other.last(&key).await),
        (Some(at(0, "s3", "here")), Some(at(0, "s3", "here")))
    );
    // The later one counts, whoever writes last.
    other.clock.step(2 * HOUR);
    other.uses(&key, UsedService::Iam, "there").await;
    other.registry.write_uses().await.unwrap();
    assert_eq!(
        (one.last(&key).await, other.last(&key).await),
        (Some(at(2, "iam", "there")), Some(at(2, "iam", "there")))
    );
    one.registry.uses_for_test(&key, Timestamp::from_second(1_800_000_000).unwrap());
    one.registry.write_uses().await.unwrap();
    assert_eq!(one.last(&key).await, Some(at(2, "iam", "there")));
}

/// Nothing is written that was written already, and nothing for root.
#[tokio::test]
async fn an_hour_is_noted_once() {
    let [gateway] = gateways().await;
    let key = gateway.user("alice").await;
    let reads = || gateway.store.counts()[2];
    let before = reads();
    gateway.registry.write_uses().await.unwrap();
    let root = gateway.registry.find(ROOT_KEY, None).await.unwrap();
    gateway.registry.note_use(&root, gateway.clock.now(), UsedService::S3, "here");
    gateway.registry.write_uses().await.unwrap();
    assert_eq!(reads(), before);
    for _ in 0..3 {
        gateway.uses(&key, UsedService::S3, "here").await;
    }
    gateway.registry.write_uses().await.unwrap();
    let written = reads();
    assert!(written > before);
    gateway.uses(&key, UsedService::S3, "here").await;
    gateway.registry.write_uses().await.unwrap();
    assert_eq!(reads(), written, "the hour is noted");
}

#[tokio::test]
async fn what_cannot_be_written_is_kept() {
    let [gateway] = gateways().await;
    let key = gateway.user("alice").await;
    gateway.uses(&key, UsedService::S3, "here").await;
    gateway.store.fails.store(true, Ordering::Relaxed);
    assert!(gateway.registry.write_uses().await.is_err());
    gateway.store.fails.store(false, Ordering::Relaxed);
    gateway.store.overtaken.store(2, Ordering::Relaxed);
    gateway.registry.write_uses().await.unwrap();
    assert_eq!(gateway.last(&key).await, Some(at(0, "s3", "here")));
}

/// Keys that are gone go from the list.
#[tokio::test]
async fn a_key_that_was_deleted_is_forgotten() {
    let [gateway] = gateways().await;
    let (alice, bob) = (gateway.user("alice").await, gateway.user("bob").await);
    gateway.uses(&alice, UsedService::S3, "here").await;
    gateway.registry.write_uses().await.unwrap();
    let owner = KeyOwner::User(name("alice"));
    let delete = |document: &mut AccountDocument, _: &Context<'_>| {
        document.delete_access_key(&owner, &alice.access_key)
    };
    gateway.registry.change(&id(ACCOUNT), &delete).await.unwrap();
    gateway.uses(&bob, UsedService::S3, "here").await;
    gateway.registry.write_uses().await.unwrap();
    assert_eq!((gateway.last(&alice).await, gateway.last(&bob).await), (None, Some(at(0, "s3", "here"))));
}

/// A damaged document counts as none, and is replaced. One of a newer version is left as it is.
#[tokio::test]
async fn a_damaged_document_keeps_nobody_from_asking() {
    let documents = DocumentName::of_uses();
    for (json, is_replaced) in [
        ("{", true),
        ("", true),
        (r#"{"format":1,"keys":{"a":1}}"#, true),
        (r#"{"format":0,"keys":{}}"#, true),
        (r#"{"format":2,"hours":{}}"#, false),
    ] {
        let [gateway] = gateways().await;
        let key = gateway.user("alice").await;
        gateway.uses(&key, UsedService::S3, "here").await;
        let bytes = Bytes::from_static(json.as_bytes());
        gateway.store.replace(&documents, None, Some(bytes.clone())).await.unwrap();
        let uses = gateway.registry.last_uses().await.unwrap();
        assert!(uses.damage.is_some(), "{json}");
        assert_eq!(gateway.last(&key).await, Some(at(0, "s3", "here")), "{json}");
        assert_eq!(gateway.registry.write_uses().await.is_ok(), is_replaced, "{json}");
        let (there, _) = gateway.store.read(&documents).await.unwrap().unwrap();
        assert_eq!(there != bytes, is_replaced, "{json}");
        assert_eq!(gateway.registry.last_uses().await.unwrap().damage.is_none(), is_replaced, "{json}");
        assert_eq!(gateway.last(&key).await, Some(at(0, "s3", "here")), "{json}");
    }
}
