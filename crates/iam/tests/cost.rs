//! Measures the cost of a key in memory for a request, and of a large account for a look.
//!
//! `cargo test --release -p iam --test cost -- --ignored --nocapture` prints the times.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iam::model::{
    AccountDocument, Context, Document, Holder, IamError, KeyOwner, Name, NewKey, NewRole, NewUser, Path,
    Tags,
};
use iam::{
    AccessKeyId, Account, AccountId, Claims, Clock, Credential, Identities as _, MasterKeys, MemoryDocuments,
    Principal, Registry, RootIdentity, SecretKey, SessionKind, Who,
};
use s3_types::Timestamp;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Not counted while a thread ends.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A clock that stands still.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn ticking(&self) -> Duration {
        Duration::from_secs(10)
    }
}

fn account() -> AccountId {
    AccountId::new("123456789012").unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

async fn open(documents: &MemoryDocuments) -> Arc<Registry> {
    let credential = Credential {
        access_key: AccessKeyId::new("the-root-of-the-server").unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    };
    let root = RootIdentity::new(Principal::root(Arc::new(Account::new(account())), None), credential);
    let keys = MasterKeys::read("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    Registry::open(Arc::new(documents.clone()), Some(keys), &root, Arc::new(Still)).await.unwrap()
}

fn add_user(document: &mut AccountDocument, user: &str, cx: &Context<'_>) -> Result<Credential, IamError> {
    let new = NewUser { name: name(user), path: Path::root(), boundary: None, tags: Tags::new() };
    document.create_user(&new, cx)?;
    for policy in ["a", "b"] {
        let text = format!(
            r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Action":"s3:*Object","Resource":"arn:aws:s3:::{user}-{policy}/*"}}}}"#
        );
        let holder = Holder::User(name(user));
        document.put_inline_policy(&holder, &name(policy), &Document::new(&text).unwrap(), cx)?;
    }
    document.create_access_key(
        &NewKey { owner: KeyOwner::User(name(user)), expires: None, policy: None, description: None },
        cx,
    )
}

async fn user(registry: &Registry) -> Credential {
    let change = |document: &mut AccountDocument, cx: &Context<'_>| add_user(document, "alice", cx);
    registry.change(&account(), &change).await.unwrap()
}

/// Gives out a session of a role, and opens it. Returns its access key and token.
async fn session(registry: &Registry) -> (String, String) {
    let trust = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"123456789012"},"Action":"sts:AssumeRole"}}"#;
    let new = NewRole {
        name: name("reader"),
        path: Path::root(),
        trust: Document::new(trust).unwrap(),
        description: None,
        max_session: None,
        boundary: None,
        tags: Tags::new(),
    };
    let change = |document: &mut AccountDocument, cx: &Context<'_>| document.create_role(&new, cx);
    let role = registry.change(&account(), &change).await.unwrap();
    let (issued, ends) = (1_800_000_000, 1_800_003_600);
    let claims = Claims::new(SessionKind::Role, account(), Who::Id(role), "nightly", issued, ends);
    let issued = registry.issue(&claims).unwrap();
    let (access_key, token) = (issued.access_key.as_str().to_owned(), issued.token.expose().to_owned());
    registry.find(&access_key, Some(&token)).await.unwrap();
    (access_key, token)
}

#[tokio::test]
async fn a_key_in_memory_costs_no_allocation() {
    let registry = open(&MemoryDocuments::default()).await;
    let user = user(&registry).await;
    let (access_key, token) = session(&registry).await;
    for (access_key, token) in [
        (user.access_key.as_str(), None),
        ("the-root-of-the-server", None),
        (access_key.as_str(), Some(token.as_str())),
    ] {
        let known = || registry.known(access_key, token).unwrap().unwrap();
        // What a thread allocates for its first one.
        drop(known());
        let before = ALLOCATIONS.get();
        for _ in 0..100 {
            drop(black_box(known()));
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{access_key}");
    }
}

#[tokio::test]
#[ignore = "it prints times, which depend on the machine"]
async fn times() {
    const ROUNDS: u32 = 1_000_000;
    let documents = MemoryDocuments::default();
    let registry = open(&documents).await;
    let user = user(&registry).await;
    let (access_key, token) = session(&registry).await;
    for (what, access_key, token) in [
        ("key of a user", user.access_key.as_str(), None),
        ("key of a session", access_key.as_str(), Some(token.as_str())),
    ] {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            drop(black_box(registry.known(black_box(access_key), token).unwrap().unwrap()));
        }
        println!("{what}: {:?}", begin.elapsed() / ROUNDS);
    }
    for users in [900, 4_000] {
        let change = move |document: &mut AccountDocument, cx: &Context<'_>| {
            (0..users)
                .try_for_each(|number| add_user(document, &format!("user-{users}-{number}"), cx).map(|_| ()))
        };
        registry.change(&account(), &change).await.unwrap();
        let count = registry.last_known().account(&account()).unwrap().document().users.len();
        let begin = Instant::now();
        drop(open(&documents).await);
        println!("state of {count} users with a key and 2 policies: {:?}", begin.elapsed());
        let begin = Instant::now();
        let rename = |document: &mut AccountDocument, _: &Context<'_>| document.set_name("other");
        registry.change(&account(), &rename).await.unwrap();
        println!("a change of them: {:?}", begin.elapsed());
        let back = |document: &mut AccountDocument, _: &Context<'_>| document.set_name("lab");
        registry.change(&account(), &back).await.unwrap();
    }
}
