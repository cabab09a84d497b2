//! Identities, and decisions about the permissions of requests.
//!
//! The store of [`Identities`] returns a [`Session`] for the key that signed, with its
//! [`Permissions`]. For each action that a request needs, the [`Authorizer`] answers a
//! [`Question`], which has the [`BucketRules`] and the values of [`ConditionKey`]s. [`Policies`] is
//! the authorizer that decides by policies.
//!
//! The [`Registry`] is a store of identities that several gateways share. It keeps accounts with
//! users and policies ([`model`]) in [`Documents`], seals their secrets with [`MasterKeys`], and
//! makes the tokens of sessions ([`TokenKeys`]); each gateway has all of it in memory, as a
//! [`Snapshot`].

mod account;
mod action_question;
mod authorize;
mod bucket_rules;
mod condition_key;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod credential;
mod decision;
mod directory;
mod distinguished_name;
mod documents;
mod explained;
mod identities;
mod language;
mod memory;
pub mod model;
mod policies;
mod registry;
mod sealing;
mod session;
mod state;
mod text;
mod tokens;
mod unique_id;

pub use account::{Account, AccountId, InvalidAccountId};
pub use action_question::{ActionQuestion, OwnValues};
pub use authorize::{Authorizer, KnownObject, Question, Resource, RootOnly, Values};
pub use bucket_rules::{BucketAccess, BucketRules};
pub use condition_key::ConditionKey;
pub use credential::{AccessKeyId, Credential, InvalidCredential, SecretKey};
pub use decision::{DecidedBy, DecidingStatement, Decision, Explained};
pub use directory::{Directory, KeyHolder, LoginError, Person, SecretText};
pub use distinguished_name::folded_dn;
pub use documents::{DocumentName, Documents, InvalidDocumentName, Mark, StoreError, Tag};
pub use identities::{Identities, RootIdentity, SessionResult, Unidentified};
pub use language::Language;
pub use memory::MemoryDocuments;
pub use policies::{KEYS_OF_ACTIONS, Policies, is_always_absent, request_tags, tag_value};
pub use policy::{Explanation, Kind as PolicyKind, Malformed, Policy, Source as PolicySource};
pub use registry::{
    Clock, FRESH, LastUse, LastUses, LostKey, OpenError, Registry, Rotation, Unavailable, UsedService,
    listed_accounts,
};
pub use sealing::{InvalidSealed, KeyId, MasterKeyError, MasterKeys, Sealed, SealedFor, SealedShut};
pub use session::{
    EndingKey, KeyKind, Permissions, PolicyNames, Principal, PrincipalKind, ROOT_NAME, Requester, Session,
    SessionTag, TokenFacts, UseMark, WebSubject,
};
pub use state::{AccountState, Closed, Identity, Snapshot, Trouble, UnknownPrincipal};
pub use tokens::{
    Claims, Issued, PosixClaim, PosixOf, SealError, SessionKind, SessionToken, TOKEN_CHARS_MAX, TokenKeys,
    WebIdentity, Who,
};
pub use unique_id::{Fill, IdKind, InvalidUniqueId, NoRandomNumbers, UniqueId, system_random};
