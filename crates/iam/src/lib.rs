//! Identities, and the decision whether a request is allowed.
//!
//! One identity exists for now: root, who may do everything. The shape is the one that users,
//! groups, policies and ACLs need: a request is authenticated into a [`Requester`], and each action
//! it needs is put to the [`Authorizer`] in a [`Question`], with the values of [`ConditionKey`]s.

mod account;
mod authorize;
mod condition_key;
mod credential;

pub use account::{Account, AccountId, InvalidAccountId};
pub use authorize::{Authorizer, Decision, Question, Requester, Resource, RootOnly, Values};
pub use condition_key::ConditionKey;
pub use credential::{AccessKeyId, Credential, Identities, Identity, InvalidCredential, SecretKey};
