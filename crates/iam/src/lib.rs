//! Identities, and decisions about the permissions of requests.
//!
//! There is one identity for now: root, to whom everything is allowed. The types are those that
//! users, groups, policies and ACLs need: a request is authenticated as a [`Requester`], and for
//! each action that it needs the [`Authorizer`] gets a [`Question`], with the values of
//! [`ConditionKey`]s.

mod account;
mod authorize;
mod condition_key;
mod credential;

pub use account::{Account, AccountId, InvalidAccountId};
pub use authorize::{Authorizer, Decision, Question, Requester, Resource, RootOnly, Values};
pub use condition_key::ConditionKey;
pub use credential::{AccessKeyId, Credential, Identities, Identity, InvalidCredential, SecretKey};
