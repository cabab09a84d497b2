//! Sessions of people of a directory.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::*;
use crate::directory::{Directory, KeyHolder, LoginError, Person, SecretText};
use crate::session::KeyKind;

const NOW: i64 = 1_800_000_000;
const ENTRY: &str = "1-2 uid=ann,dc=lab";

/// A directory that says what a test wants.
#[derive(Debug, Default)]
struct Told {
    is_there: AtomicBool,
    is_away: AtomicBool,
    /// False once what was said is too old.
    counts: AtomicBool,
    asked: AtomicU32,
    noticed: Mutex<Vec<Box<str>>>,
    groups: Mutex<Vec<Box<str>>>,
}

#[async_trait]
impl Directory for Told {
    async fn by_entry(&self, entry: &str) -> Result<Option<Arc<Person>>, StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".into()));
        }
        let person = Person {
            entry: entry.into(),
            name: "ann".into(),
            groups: self.groups.lock().unwrap().clone(),
            unix: None,
            until: Instant::now(),
        };
        Ok(self.is_there.load(Ordering::Relaxed).then(|| Arc::new(person)))
    }

    fn is_present(&self, _: &Person) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    fn has_keys(&self) -> bool {
        true
    }

    async fn by_access_key(&self, id: &AccessKeyId) -> Result<Option<Arc<KeyHolder>>, StoreError> {
        let Some(person) = self.by_entry(ENTRY).await? else { return Ok(None) };
        let secret_key = SecretKey::new("a-secret-of-the-directory").unwrap();
        let credential = Credential { access_key: id.clone(), secret_key };
        Ok(Some(Arc::new(KeyHolder { person, credential, until: Instant::now() })))
    }

    fn is_current(&self, _: &KeyHolder) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    fn notice_other(&self, id: &AccessKeyId, _: i64) {
        self.noticed.lock().unwrap().push(id.as_str().into());
    }

    async fn log_in(&self, _: &str, _: &SecretText) -> Result<Arc<Person>, LoginError> {
        Err(LoginError::Refused(None))
    }
}

#[tokio::test]
async fn the_directory_is_asked_when_its_word_is_old() {
    let [gateway] = gateways().await;
    let claims =
        Claims::new(SessionKind::Ldap, id(ACCOUNT), Who::Entry(ENTRY.into()), "ann", NOW, NOW + 3_600);
    let issued = gateway.registry.issue(&claims).unwrap();
    let token = issued.token.expose().to_owned();
    let key = Credential { access_key: issued.access_key, secret_key: issued.secret_key };
    // Without a directory there is nobody.
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "unknown");
    let told = Arc::new(Told::default());
    gateway.registry.set_directory(told.clone());
    let set = |flag: &AtomicBool, value| flag.store(value, Ordering::Relaxed);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "unknown");
    set(&told.is_there, true);
    set(&told.counts, true);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    let asked = told.asked.load(Ordering::Relaxed);
    for _ in 0..5 {
        assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    }
    set(&told.is_away, true);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    assert_eq!(told.asked.load(Ordering::Relaxed), asked);
    set(&told.counts, false);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "unavailable");
    set(&told.is_away, false);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    set(&told.is_there, false);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "unknown");
}

/// A directory with somebody in it, whose groups a group of the account names.
async fn gateway_with_somebody() -> (Gateway, Arc<Told>) {
    let [gateway] = gateways().await;
    let told = Arc::new(Told::default());
    told.is_there.store(true, Ordering::Relaxed);
    told.counts.store(true, Ordering::Relaxed);
    *told.groups.lock().unwrap() = vec!["cn=dev,dc=lab".into()];
    gateway.registry.set_directory(told.clone());
    let change = |document: &mut AccountDocument, cx: &Context<'_>| {
        document.create_group(&name("dev"), &Path::root(), cx)?;
        document.set_group_external(&name("dev"), Some("CN=dev, DC=lab"))
    };
    gateway.registry.change(&id(ACCOUNT), &change).await.unwrap();
    (gateway, told)
}

fn in_directory(id: &str) -> Credential {
    let secret_key = SecretKey::new("a-secret-of-the-directory").unwrap();
    Credential { access_key: AccessKeyId::new(id).unwrap(), secret_key }
}

#[tokio::test]
async fn keys_of_the_directory() {
    let (gateway, told) = gateway_with_somebody().await;
    let key = in_directory("of-the-directory");
    let asked = || told.asked.load(Ordering::Relaxed);
    let found = gateway.ask(&key, None).await.unwrap();
    assert_eq!((found.key_kind, &*found.principal.name), (KeyKind::Directory, "ann"));
    assert_eq!(found.credential.secret_key.expose(), key.secret_key.expose());
    let before = asked();
    for _ in 0..5 {
        assert_eq!(kind(&gateway.ask(&key, None).await), "session");
    }
    assert_eq!(asked(), before);
    // With a token it is none, and a session's key is never asked about.
    assert_eq!(kind(&gateway.ask(&key, Some("x")).await), "invalid");
    assert_eq!(kind(&gateway.ask(&in_directory("ASIAIOSFODNN7EXAMPLE"), None).await), "unknown");
    assert_eq!(asked(), before);
    told.counts.store(false, Ordering::Relaxed);
    told.is_away.store(true, Ordering::Relaxed);
    assert_eq!(kind(&gateway.ask(&key, None).await), "unavailable");
    told.is_away.store(false, Ordering::Relaxed);
    told.is_there.store(false, Ordering::Relaxed);
    assert_eq!(kind(&gateway.ask(&key, None).await), "unknown");
    // Whoever is in no group that is known here has no key.
    told.is_there.store(true, Ordering::Relaxed);
    told.groups.lock().unwrap().clear();
    assert_eq!(kind(&gateway.ask(&key, None).await), "unknown");
}

#[tokio::test]
async fn documents_come_before_the_directory() {
    let (gateway, told) = gateway_with_somebody().await;
    let both = in_directory("of-both");
    assert_eq!(gateway.ask(&both, None).await.unwrap().key_kind, KeyKind::Directory);
    let of_user = Credential {
        access_key: both.access_key.clone(),
        secret_key: SecretKey::new("a-secret-of-the-user").unwrap(),
    };
    let change = |document: &mut AccountDocument, cx: &Context<'_>| {
        document.create_user(&new_user("max"), cx)?;
        document.import_access_key(&NewKey::plain(KeyOwner::User(name("max"))), &of_user, cx)
    };
    gateway.registry.change(&id(ACCOUNT), &change).await.unwrap();
    let found = gateway.ask(&both, None).await.unwrap();
    assert_eq!(found.key_kind, KeyKind::User);
    assert_eq!(found.credential.secret_key.expose(), of_user.secret_key.expose());
    gateway.registry.note_use(&found, gateway.clock.now(), UsedService::S3, "here");
    assert_eq!(*told.noticed.lock().unwrap(), ["of-both".into()]);
    // While a document cannot be read, the key may be one of it.
    let document = DocumentName::of_account(&id("999988887777"));
    gateway.store.inner.replace(&document, None, Some(Bytes::from_static(b"{"))).await.unwrap();
    gateway.registry.look().await.unwrap();
    assert_eq!(kind(&gateway.ask(&in_directory("another"), None).await), "unavailable");
}
