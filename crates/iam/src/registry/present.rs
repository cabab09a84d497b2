use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::accounts_document::{self, gone, unreadable};
use super::clock::Clock;
use super::key_cache::KeyCache;
use super::keys_document::{OpenError, agree};
use super::token_cache::TokenCache;
use super::turns::Turns;
use super::uses::Uses;
use crate::account::AccountId;
use crate::directory::Directory;
use crate::documents::{DocumentName, Documents, Mark, StoreError, Tag};
use crate::identities::{RootIdentity, Unidentified};
use crate::model::{IamCode, IamError};
use crate::sealing::MasterKeys;
use crate::session::Session;
use crate::state::{Compiler, Entry, Keys, Snapshot, Trouble};

/// The age up to which a state may answer requests. It counts from the beginning of the look that
/// found the state to be the present one.
pub const FRESH: Duration = Duration::from_secs(1);
/// The time that a caller waits for a look.
const LOOK_LIMIT: Duration = Duration::from_secs(5);
/// The largest number of looks in a second that requests with unknown access keys may cause.
const UNKNOWN_LOOKS_MAX: u32 = 20;

/// The error if the present state is not known.
#[derive(Debug, Clone)]
pub struct Unavailable(pub(super) Arc<StoreError>);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "identities cannot be read: {}", self.0)
    }
}

impl std::error::Error for Unavailable {
    // The sentence has the cause, so that the next error of the chain is that of the cause.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

impl From<Unavailable> for Unidentified {
    fn from(why: Unavailable) -> Self {
        Self::Unavailable(Box::new(why))
    }
}

impl From<Unavailable> for IamError {
    fn from(why: Unavailable) -> Self {
        unavailable().caused_by(why)
    }
}

/// Makes IAM's error for a store that cannot be reached.
pub(super) fn unavailable() -> IamError {
    IamError::new(
        IamCode::ServiceUnavailable,
        "The request has failed due to a temporary failure of the server.",
    )
}

/// The error if a look takes longer than this time.
#[derive(Debug)]
pub(super) struct TooSlow(pub Duration);

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there was no answer within {:?}", self.0)
    }
}

impl std::error::Error for TooSlow {}

/// The state that one look at a time uses.
#[derive(Debug)]
struct Looking {
    /// The compiler of policies; `None` if a look that used it was cancelled.
    compiler: Option<Compiler>,
    /// The store's mark for the present state; `None` if the next look has to list the documents in
    /// any case.
    mark: Option<Mark>,
    /// The list of accounts that was read last, and the tag that it had before.
    list: Option<(Tag, BTreeSet<AccountId>)>,
    /// The number of the last look that ended.
    last: u64,
    /// The reason why the last look failed; `None` if it succeeded.
    failed: Option<Unavailable>,
}

/// The result of a look for one account.
enum Read {
    /// An entry whose document was not read: the entry of the state before, or that of an account
    /// whose document could not be read.
    Kept(Entry),
    /// The bytes of the account's document, which was read since it or the keys have changed, and
    /// their tag.
    Anew(Bytes, Tag),
}

/// Everything that the next state is made from.
struct Making {
    before: Arc<Snapshot>,
    root: Arc<Session>,
    keys: Arc<Keys>,
    read: Vec<(AccountId, Read)>,
    /// The fault of the list of accounts, if it cannot be read.
    trouble: Option<Trouble>,
    compiler: Option<Compiler>,
}

impl Making {
    fn make(self) -> (Snapshot, Compiler) {
        let Self { before, root, keys, read, trouble, compiler } = self;
        let mut compiler = compiler.unwrap_or_else(Compiler::new);
        let mut entries = Vec::with_capacity(read.len());
        for (account, read) in read {
            let entry = match read {
                Read::Kept(entry) => entry,
                Read::Anew(json, tag) => Entry::read(&account, &json, tag, &keys, &mut compiler),
            };
            entries.push((account, entry));
        }
        let mut next = Snapshot::new(before.generation() + 1, &root, entries, &keys, &mut compiler);
        if let Some(trouble) = trouble {
            next.add_trouble(trouble);
        }
        compiler.forget_unused();
        (next, compiler)
    }
}

/// The identities of a tree, in documents that several gateways change
/// (docs/decisions/0064-changes-of-identities-within-a-second.md).
///
/// Each gateway has all of them in memory, as a [`Snapshot`]. The program calls [`Registry::look`]
/// twice a second; a state older than [`FRESH`] answers no request.
pub struct Registry {
    pub(super) documents: Arc<dyn Documents>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) root: ArcSwap<Session>,
    pub(super) keys: ArcSwap<Keys>,
    pub(super) tokens: TokenCache,
    /// The directory that is asked about its sessions; unset if there is no directory.
    pub(super) directory: OnceLock<Arc<dyn Directory>>,
    /// The sessions of access keys of the directory.
    pub(super) directory_keys: KeyCache,
    /// The turns of the changes of this gateway.
    pub(super) turns: Turns,
    pub(super) look_limit: Duration,
    pub(super) uses: Uses,
    snapshot: ArcSwap<Snapshot>,
    /// The time at which the look began that confirmed the present state, in nanoseconds, plus 1; 0
    /// before the first look.
    confirmed: AtomicU64,
    /// The number of looks that have begun.
    begun: AtomicU64,
    looking: tokio::sync::Mutex<Looking>,
    /// True if a document was found to be another one than the state has: the next look lists all,
    /// whatever the mark says.
    pub(super) is_outdated: AtomicBool,
    /// A second, and the number of looks in it that unknown access keys have caused.
    unknown: Mutex<(u64, u32)>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("documents", &self.documents).finish_non_exhaustive()
    }
}

impl Registry {
    /// Opens a store, and reads all documents. One of the master keys (`keys`) has to be in use;
    /// `root` has the key that the server was started with.
    pub async fn open(
        documents: Arc<dyn Documents>,
        keys: Option<MasterKeys>,
        root: &RootIdentity,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, OpenError> {
        let this = Self::new(documents, keys, root, clock, LOOK_LIMIT);
        match timeout(LOOK_LIMIT, this.begin()).await {
            Ok(result) => result.map(|()| Arc::new(this)),
            Err(_) => Err(StoreError::Unavailable(Box::new(TooSlow(LOOK_LIMIT))).into()),
        }
    }

    /// Makes a registry that has read nothing yet: a caller that needs a state calls
    /// [`Registry::look`] first. It is not checked that the master keys are those in use.
    pub fn unread(
        documents: Arc<dyn Documents>,
        keys: Option<MasterKeys>,
        root: &RootIdentity,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        Arc::new(Self::new(documents, keys, root, clock, LOOK_LIMIT))
    }

    async fn begin(&self) -> Result<(), OpenError> {
        let keys = self.keys.load_full();
        agree(&*self.documents, keys.master.as_ref()).await?;
        let mut looking = self.looking.lock().await;
        self.look_now(&mut looking).await?;
        drop(looking);
        accounts_document::complete(&*self.documents, &self.last_known()).await;
        Ok(())
    }

    pub(super) fn new(
        documents: Arc<dyn Documents>,
        keys: Option<MasterKeys>,
        root: &RootIdentity,
        clock: Arc<dyn Clock>,
        look_limit: Duration,
    ) -> Self {
        let (keys, root) = (Arc::new(Keys::new(keys)), Arc::clone(root.session()));
        let mut compiler = Compiler::new();
        let empty = Snapshot::new(0, &root, [], &keys, &mut compiler);
        Self {
            documents,
            clock,
            root: ArcSwap::new(root),
            keys: ArcSwap::new(keys),
            tokens: TokenCache::new(),
            directory: OnceLock::new(),
            directory_keys: KeyCache::new(),
            turns: Turns::default(),
            look_limit,
            uses: Uses::default(),
            snapshot: ArcSwap::from_pointee(empty),
            confirmed: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            looking: tokio::sync::Mutex::new(Looking {
                compiler: Some(compiler),
                mark: None,
                list: None,
                last: 0,
                failed: None,
            }),
            is_outdated: AtomicBool::new(false),
            unknown: Mutex::new((0, 0)),
        }
    }

    /// Returns the state of the last look that succeeded, however old it is. It is for showing; no
    /// request may be decided by it.
    pub fn last_known(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Returns the present state; `None` if it is too old to answer requests.
    pub(super) fn fresh(&self) -> Option<Guard<Arc<Snapshot>>> {
        // Before the state: whichever state is loaded then was confirmed at that time, or later.
        self.age().filter(|age| *age <= FRESH).map(|_| self.snapshot.load())
    }

    /// Returns the age of the state, since the look that confirmed it; `None` before the first one.
    pub fn age(&self) -> Option<Duration> {
        let confirmed = self.confirmed.load(Ordering::Acquire).checked_sub(1)?;
        Some(self.clock.ticking().saturating_sub(Duration::from_nanos(confirmed)))
    }

    /// Looks at the store, and returns a state that is not older than the call. Callers that wait
    /// at the same time share a look. It takes at most five seconds.
    pub async fn look(&self) -> Result<Arc<Snapshot>, Unavailable> {
        let begun = self.begun.load(Ordering::Acquire);
        let waited = timeout(self.look_limit, self.look_after(begun)).await;
        waited.unwrap_or_else(|_| {
            let cause = Box::new(TooSlow(self.look_limit));
            Err(Unavailable(Arc::new(StoreError::Unavailable(cause))))
        })
    }

    /// Returns the present state if it is young enough to answer requests, and looks only if not:
    /// for requests of strangers, who could otherwise have the store asked at any rate.
    pub async fn fresh_or_look(&self) -> Result<Arc<Snapshot>, Unavailable> {
        let fresh = self.fresh().map(|state| Arc::clone(&state));
        match fresh {
            Some(state) => Ok(state),
            None => self.look().await,
        }
    }

    /// Waits for a look with a higher number than `number`, or performs one.
    async fn look_after(&self, number: u64) -> Result<Arc<Snapshot>, Unavailable> {
        let mut looking = self.looking.lock().await;
        if looking.last <= number {
            let this = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
            let result = self.look_now(&mut looking).await;
            looking.failed = result.err().map(|error| Unavailable(Arc::new(error)));
            looking.last = this;
        }
        match &looking.failed {
            None => Ok(self.snapshot.load_full()),
            Some(why) => Err(why.clone()),
        }
    }

    async fn look_now(&self, looking: &mut Looking) -> Result<(), StoreError> {
        let began = self.clock.ticking();
        let (keys, root) = (self.keys.load_full(), self.root.load_full());
        if self.is_outdated.swap(false, Ordering::AcqRel) {
            looking.mark = None;
        }
        let mark = self.documents.look().await?;
        let before = self.snapshot.load_full();
        let is_same = looking.mark.as_ref() == Some(&mark) && before.is_of(&root, &keys);
        if !is_same {
            let (mut read, all_read, list) = self.read_all(&before, &keys).await?;
            let trouble = match list {
                Some(tag) => self.add_missing(&mut read, tag, &mut looking.list).await,
                None => None,
            };
            let made = Making { before, root, keys, read, trouble, compiler: looking.compiler.take() };
            // A large account takes long enough to hold up the requests of a thread.
            let made = spawn_blocking(|| made.make()).await;
            let (next, compiler) = made.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
            let before = self.snapshot.swap(Arc::new(next));
            looking.compiler = Some(compiler);
            looking.mark = all_read.then_some(mark);
            // To take a state apart takes as long.
            drop(spawn_blocking(|| drop(before)));
        }
        let nanos = u64::try_from(began.as_nanos()).unwrap_or(u64::MAX - 1);
        self.confirmed.fetch_max(nanos.saturating_add(1), Ordering::AcqRel);
        Ok(())
    }

    /// Lists all accounts, and reads those whose documents or keys differ from the state before.
    /// Returns the accounts, whether all could be read, and the tag of the list of them.
    async fn read_all(
        &self,
        before: &Snapshot,
        keys: &Arc<Keys>,
    ) -> Result<(Vec<(AccountId, Read)>, bool, Option<Tag>), StoreError> {
        let (mut all, mut all_read, mut list) = (Vec::new(), true, None);
        for (name, tag) in self.documents.list().await? {
            let Some(account) = name.account() else {
                if name == DocumentName::of_accounts() {
                    list = Some(tag);
                }
                continue;
            };
            let kept = before.entry(&account).filter(|entry| entry.is_of(&tag, keys));
            let read = match kept {
                Some(entry) => Read::Kept(entry.clone()),
                None => match self.documents.read(&name).await {
                    Ok(Some((json, tag))) => Read::Anew(json, tag),
                    // It went away meanwhile.
                    Ok(None) => continue,
                    Err(why) => Read::Kept(Entry::closed(&account, None, why.to_string())),
                },
            };
            all_read &= !matches!(&read, Read::Kept(entry) if entry.is_unread());
            all.push((account, read));
        }
        Ok((all, all_read, list))
    }

    /// Adds the accounts that are in the list and whose documents are gone: they are closed.
    /// `known` is the list with the tag that was read last. Returns the fault of a list that cannot
    /// be read.
    async fn add_missing(
        &self,
        all: &mut Vec<(AccountId, Read)>,
        tag: Tag,
        known: &mut Option<(Tag, BTreeSet<AccountId>)>,
    ) -> Option<Trouble> {
        let there: BTreeSet<_> = all.iter().map(|(account, _)| account.clone()).collect();
        if known.as_ref().is_some_and(|(of, listed)| *of == tag && listed.is_subset(&there)) {
            return None;
        }
        // After the documents: an account that is deleted leaves the list first.
        let listed = match accounts_document::read(&*self.documents).await {
            Ok((document, _)) => document.accounts,
            Err(why) => return Some(unreadable(&why)),
        };
        for account in listed.difference(&there) {
            // It may have been made since the documents were listed.
            let read = match self.documents.read(&DocumentName::of_account(account)).await {
                Ok(Some((json, tag))) => Read::Anew(json, tag),
                Ok(None) => Read::Kept(gone(account)),
                Err(why) => Read::Kept(Entry::closed(account, None, why.to_string())),
            };
            all.push((account.clone(), read));
        }
        *known = Some((tag, listed));
        None
    }

    /// True if the store may be looked at because of an unknown access key.
    pub(super) fn may_look_for_unknown(&self) -> bool {
        let second = self.clock.ticking().as_secs();
        let mut looks = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.0 != second {
            *looks = (second, 0);
        }
        looks.1 += 1;
        looks.1 <= UNKNOWN_LOOKS_MAX
    }

    /// Replaces root's key or account. Requests of root are decided by the new one at once, all
    /// others from the next look on.
    pub fn set_root(&self, root: &RootIdentity) {
        self.root.store(Arc::clone(root.session()));
    }

    /// Sets the directory whose people may have sessions. It can be set once.
    pub fn set_directory(&self, directory: Arc<dyn Directory>) {
        // The first one counts.
        let _ = self.directory.set(directory);
    }

    /// True if the registry has these master keys, in this order.
    pub fn has_master_keys(&self, keys: Option<&MasterKeys>) -> bool {
        let present = self.keys.load();
        let ids = |keys: Option<&MasterKeys>| keys.into_iter().flat_map(MasterKeys::ids).collect::<Vec<_>>();
        ids(present.master.as_ref()) == ids(keys)
    }

    /// Replaces the master keys. One of the new ones has to be in use. Secrets are opened anew.
    pub async fn set_master_keys(&self, keys: Option<MasterKeys>) -> Result<(), OpenError> {
        agree(&*self.documents, keys.as_ref()).await?;
        self.keys.store(Arc::new(Keys::new(keys)));
        self.tokens.clear();
        // Whoever finds the state too old looks again.
        let _ = self.look().await;
        Ok(())
    }
}
