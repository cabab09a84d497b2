//! Sessions of people of a directory.

use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::*;
use crate::directory::{Directory, LoginError, Person, SecretText};

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

    async fn log_in(&self, _: &str, _: &SecretText) -> Result<Arc<Person>, LoginError> {
        Err(LoginError::Refused)
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
