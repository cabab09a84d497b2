use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use s3_types::Timestamp;
use tokio::sync::Semaphore;

use super::*;
use crate::account::{Account, AccountId};
use crate::credential::{AccessKeyId, Credential, SecretKey};
use crate::documents::{DocumentName, Documents, Mark, StoreError, Tag};
use crate::identities::{Identities, RootIdentity, SessionResult, Unidentified};
use crate::memory::MemoryDocuments;
use crate::model::*;
use crate::sealing::MasterKeys;
use crate::session::Principal;
use crate::tokens::{Claims, SessionKind, Who};

mod accounts;
mod changes;
mod directory;
mod freshness;
mod last_use;
mod rotation;
mod sessions;

const ACCOUNT: &str = "123456789012";
const ROOT_KEY: &str = "the-root-of-the-server";
const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// A clock that a test steps.
#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Hand {
    fn step(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.0.load(Ordering::Relaxed)).unwrap();
        Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
    }

    fn ticking(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Documents in memory that count how often they are asked, and fail or hang.
#[derive(Debug)]
struct Watched {
    inner: MemoryDocuments,
    looks: AtomicUsize,
    lists: AtomicUsize,
    reads: AtomicUsize,
    fails: AtomicBool,
    /// A document that cannot be read.
    unreadable: std::sync::Mutex<Option<DocumentName>>,
    /// Each look takes a permit of these.
    gate: Semaphore,
    /// The number of changes that find another gateway faster.
    overtaken: AtomicUsize,
}

impl Watched {
    fn new(inner: &MemoryDocuments) -> Arc<Self> {
        Arc::new(Self {
            inner: inner.clone(),
            looks: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            fails: AtomicBool::new(false),
            unreadable: std::sync::Mutex::new(None),
            gate: Semaphore::new(1_000_000),
            overtaken: AtomicUsize::new(0),
        })
    }

    fn counts(&self) -> [usize; 3] {
        [&self.looks, &self.lists, &self.reads].map(|count| count.load(Ordering::Relaxed))
    }

    fn failing(&self) -> Result<(), StoreError> {
        if self.fails.load(Ordering::Relaxed) {
            Err(StoreError::Unavailable("no answer".into()))
        } else {
            Ok(())
        }
    }

    /// Has looks wait until [`Self::let_in`].
    async fn hold(&self) {
        self.gate.acquire_many(1_000_000).await.unwrap().forget();
    }

    fn let_in(&self) {
        self.gate.add_permits(1_000_000);
    }
}

#[async_trait]
impl Documents for Watched {
    async fn look(&self) -> Result<Mark, StoreError> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        drop(self.gate.acquire().await);
        self.failing()?;
        self.inner.look().await
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        self.failing()?;
        self.inner.list().await
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.failing()?;
        if self.unreadable.lock().unwrap().as_ref() == Some(name) {
            return Err(StoreError::Unavailable("input/output error".into()));
        }
        self.inner.read(name).await
    }

    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        self.failing()?;
        let left = self.overtaken.load(Ordering::Relaxed);
        if left > 0 {
            self.overtaken.store(left - 1, Ordering::Relaxed);
            return Err(StoreError::Changed);
        }
        self.inner.replace(name, expected, with).await
    }
}

/// A gateway: its registry, its handle of the store, and the clock that all share.
struct Gateway {
    registry: Arc<Registry>,
    store: Arc<Watched>,
    clock: Arc<Hand>,
}

fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn root() -> RootIdentity {
    let principal = Principal::root(Arc::new(Account::new(id(ACCOUNT))), None);
    let credential = Credential {
        access_key: AccessKeyId::new(ROOT_KEY).unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    };
    RootIdentity::new(principal, credential)
}

fn master_keys(lines: &[&str]) -> Option<MasterKeys> {
    (!lines.is_empty()).then(|| MasterKeys::read(&lines.join("\n")).unwrap())
}

async fn gateway_with(documents: &MemoryDocuments, clock: &Arc<Hand>, keys: &[&str]) -> Gateway {
    let store = Watched::new(documents);
    let registry = Registry::open(
        Arc::clone(&store) as Arc<dyn Documents>,
        master_keys(keys),
        &root(),
        Arc::clone(clock) as Arc<dyn Clock>,
    )
    .await;
    Gateway { registry: registry.unwrap(), store, clock: Arc::clone(clock) }
}

/// Several gateways of one tree.
async fn gateways<const N: usize>() -> [Gateway; N] {
    let (documents, clock) = (MemoryDocuments::default(), Arc::default());
    let mut all = Vec::new();
    for _ in 0..N {
        all.push(gateway_with(&documents, &clock, &[FIRST]).await);
    }
    all.try_into().unwrap_or_else(|_| panic!("{N}"))
}

fn new_user(text: &str) -> NewUser {
    NewUser { name: name(text), path: Path::root(), boundary: None, tags: Tags::new() }
}

impl Gateway {
    /// Makes a user with a key, and returns the key.
    async fn user(&self, user: &str) -> Credential {
        let new =
            NewKey { owner: KeyOwner::User(name(user)), expires: None, policy: None, description: None };
        let change = |document: &mut AccountDocument, cx: &Context<'_>| {
            document.create_user(&new_user(user), cx)?;
            document.create_access_key(&new, cx)
        };
        self.registry.change(&id(ACCOUNT), &change).await.unwrap()
    }

    async fn set_key(&self, user: &str, key: &Credential, status: KeyStatus) {
        let owner = KeyOwner::User(name(user));
        let change = |document: &mut AccountDocument, cx: &Context<'_>| {
            document.update_access_key(&owner, &key.access_key, status, cx.now)
        };
        self.registry.change(&id(ACCOUNT), &change).await.unwrap();
    }

    /// Does what the gateway does with a request.
    async fn ask(&self, key: &Credential, token: Option<&str>) -> SessionResult {
        let access_key = key.access_key.as_str();
        match self.registry.known(access_key, token) {
            Some(found) => found,
            None => self.registry.find(access_key, token).await,
        }
    }

    fn known(&self, key: &Credential) -> Option<SessionResult> {
        self.registry.known(key.access_key.as_str(), None)
    }
}

fn kind(result: &SessionResult) -> &'static str {
    match result {
        Ok(_) => "session",
        Err(Unidentified::UnknownKey) => "unknown",
        Err(Unidentified::Inactive) => "inactive",
        Err(Unidentified::Expired) => "expired",
        Err(Unidentified::InvalidToken) => "invalid",
        Err(Unidentified::Unavailable(_)) => "unavailable",
    }
}

/// A key that nobody has.
fn nobodys() -> Credential {
    Credential {
        access_key: AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    }
}
