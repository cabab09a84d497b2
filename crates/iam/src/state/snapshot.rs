//! The whole state of identities, as a look found it.

use std::collections::btree_map::{BTreeMap, Entry as MapEntry};
use std::collections::hash_map::{Entry as KeyEntry, HashMap};
use std::fmt;
use std::sync::Arc;

use super::account::{AccountState, Held, Identity, Trouble};
use super::compiler::Compiler;
use super::keys::Keys;
use crate::account::AccountId;
use crate::documents::{DocumentName, Tag};
use crate::identities::{SessionResult, Unidentified};
use crate::model::AccountDocument;
use crate::sealing::{KeyId, SealedShut};
use crate::session::Session;
use crate::unique_id::UniqueId;

/// An account whose document cannot be read, and the reason. Nothing is known of such an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The account.
    pub account: AccountId,
    /// The document's tag; `None` if the bytes could not be read, which is tried again.
    tag: Option<Tag>,
    /// A sentence about the error.
    pub why: String,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the account {} is closed, since its document cannot be read: {}", self.account, self.why)
    }
}

impl std::error::Error for Closed {}

/// The result of reading an account: its state, or the reason why it is closed.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Open(Arc<AccountState>),
    Closed(Arc<Closed>),
}

impl Entry {
    /// Makes the entry of an account from the bytes of its document.
    pub fn read(
        account: &AccountId,
        json: &[u8],
        tag: Tag,
        keys: &Arc<Keys>,
        compiler: &mut Compiler,
    ) -> Self {
        match AccountState::read(account, json, tag.clone(), keys, compiler) {
            Ok(state) => Self::Open(Arc::new(state)),
            Err(why) => Self::closed(account, Some(tag), why.to_string()),
        }
    }

    pub fn closed(account: &AccountId, tag: Option<Tag>, why: String) -> Self {
        Self::Closed(Arc::new(Closed { account: account.clone(), tag, why }))
    }

    /// True if reading the document again would give the same entry: the document is the same, and
    /// for an open account also the keys are.
    pub fn is_of(&self, tag: &Tag, keys: &Arc<Keys>) -> bool {
        match self {
            Self::Open(state) => state.is_of(tag, keys),
            Self::Closed(closed) => closed.tag.as_ref() == Some(tag),
        }
    }

    /// True if the bytes could not be read, so that reading has to be tried again.
    pub fn is_unread(&self) -> bool {
        matches!(self, Self::Closed(closed) if closed.tag.is_none())
    }
}

/// The identities of a tree in the state that a look at the store found: all accounts, with the
/// sessions of their keys. A snapshot is never changed, only replaced by a new one.
#[derive(Debug)]
pub struct Snapshot {
    /// The number of the state, which differs between any two states.
    generation: u64,
    root: Arc<Session>,
    made_with: Arc<Keys>,
    accounts: BTreeMap<AccountId, Entry>,
    keys: HashMap<Box<str>, Held>,
    troubles: Vec<Trouble>,
}

impl Snapshot {
    /// Makes a state from the entries of accounts. The account of `root`, the server's own, is in
    /// it even if it has no document yet.
    pub(crate) fn new(
        generation: u64,
        root: &Arc<Session>,
        entries: impl IntoIterator<Item = (AccountId, Entry)>,
        keys: &Arc<Keys>,
        compiler: &mut Compiler,
    ) -> Self {
        let mut accounts: BTreeMap<_, _> = entries.into_iter().collect();
        if let MapEntry::Vacant(place) = accounts.entry(root.principal.account.id().clone()) {
            let document = AccountDocument::new(place.key().clone(), "");
            place.insert(Entry::Open(Arc::new(AccountState::new(document, None, keys, compiler))));
        }
        let mut this = Self {
            generation,
            root: Arc::clone(root),
            made_with: Arc::clone(keys),
            accounts: BTreeMap::new(),
            keys: HashMap::new(),
            troubles: Vec::new(),
        };
        for (account, entry) in &accounts {
            match entry {
                Entry::Open(state) => this.add(account, state),
                Entry::Closed(closed) => this.troubles.push(Trouble {
                    document: DocumentName::of_account(account),
                    place: String::new(),
                    why: format!("{}; the account is closed until it can be read", closed.why),
                }),
            }
        }
        this.accounts = accounts;
        this
    }

    fn add(&mut self, account: &AccountId, state: &AccountState) {
        self.troubles.extend_from_slice(state.troubles());
        for (id, held) in state.held() {
            match self.keys.entry(id.as_str().into()) {
                KeyEntry::Vacant(place) => {
                    place.insert(held.clone());
                }
                KeyEntry::Occupied(mut there) => {
                    there.insert(Held::Twice);
                    self.troubles.push(Trouble {
                        document: DocumentName::of_account(account),
                        place: id.to_string(),
                        why: "another account has this access key, too; both are refused".to_owned(),
                    });
                }
            }
        }
    }

    /// Returns the number of the state.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// True if the state was made for this root, with these keys.
    pub(crate) fn is_of(&self, root: &Arc<Session>, keys: &Arc<Keys>) -> bool {
        Arc::ptr_eq(&self.root, root) && Arc::ptr_eq(&self.made_with, keys)
    }

    pub(crate) fn entry(&self, account: &AccountId) -> Option<&Entry> {
        self.accounts.get(account)
    }

    pub(crate) const fn root(&self) -> &Arc<Session> {
        &self.root
    }

    /// Returns an account; `None` if it does not exist, or is closed.
    pub fn account(&self, id: &AccountId) -> Option<&Arc<AccountState>> {
        match self.accounts.get(id)? {
            Entry::Open(state) => Some(state),
            Entry::Closed(_) => None,
        }
    }

    /// Returns all accounts but closed ones, in the order of their ids.
    pub fn accounts(&self) -> impl Iterator<Item = &Arc<AccountState>> {
        self.accounts.values().filter_map(|entry| match entry {
            Entry::Open(state) => Some(state),
            Entry::Closed(_) => None,
        })
    }

    /// Returns the accounts whose documents cannot be read.
    pub fn closed(&self) -> impl Iterator<Item = &Closed> {
        self.accounts.values().filter_map(|entry| match entry {
            Entry::Open(_) => None,
            Entry::Closed(closed) => Some(&**closed),
        })
    }

    /// Returns the ids of all accounts, including closed ones.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &AccountId> {
        self.accounts.keys()
    }

    /// Adds a fault in a document that is not an account's.
    pub(crate) fn add_trouble(&mut self, trouble: Trouble) {
        self.troubles.push(trouble);
    }

    /// Returns the number of accounts, including closed ones.
    pub fn accounts_count(&self) -> usize {
        self.accounts.len()
    }

    /// Returns the faults in the documents.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    /// Returns the session of an access key that is in a document, or the reason why it has none;
    /// `None` if no document has it.
    pub fn by_access_key(&self, id: &str) -> Option<SessionResult> {
        Some(match self.keys.get(id)? {
            Held::Session(session) => Ok(Arc::clone(session)),
            Held::Inactive => Err(Unidentified::Inactive),
            Held::Shut(why) => Err(Unidentified::Unavailable(Box::new(*why))),
            Held::Twice => Err(Unidentified::UnknownKey),
        })
    }

    /// Returns a master key that is not here, if there are secrets of active keys and none of them
    /// can be opened without one, as after a rotation of which this gateway does not know.
    pub fn missing_master_key(&self) -> Option<KeyId> {
        let mut missing = None;
        for held in self.keys.values() {
            match held {
                Held::Session(_) => return None,
                Held::Shut(SealedShut::OtherKey(id)) => missing = Some(*id),
                Held::Shut(SealedShut::Broken) | Held::Inactive | Held::Twice => {}
            }
        }
        missing
    }

    /// True if several documents have this access key.
    pub(crate) fn is_twice(&self, id: &str) -> bool {
        matches!(self.keys.get(id), Some(Held::Twice))
    }

    /// Returns the reason why an access key that is in no document has no session: the key is
    /// unknown, or it may be a key of a closed account.
    pub fn unknown_key(&self) -> Unidentified {
        let closed = self.accounts.values().find_map(|entry| match entry {
            Entry::Closed(closed) => Some(closed),
            Entry::Open(_) => None,
        });
        match closed {
            None => Unidentified::UnknownKey,
            Some(closed) => Unidentified::Unavailable(Box::new((**closed).clone())),
        }
    }

    /// Finds a user or a role, and its account.
    pub fn by_unique_id(&self, id: &UniqueId) -> Option<(&Arc<AccountState>, &Identity)> {
        self.accounts().find_map(|account| Some((account, account.identity(id)?)))
    }
}
