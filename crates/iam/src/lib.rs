//! Identities, and the decision whether a request is allowed.
//!
//! One identity exists for now: root, who may do everything. The shape is the one that users,
//! groups, policies and ACLs need: a request is authenticated into a [`Requester`], and every
//! [`Permission`] it needs is put to the [`Authorizer`] with the facts of the request.

mod account;
mod authorize;
mod credential;

pub use account::{Account, AccountId, InvalidAccountId};
pub use authorize::{Authorizer, Decision, Permission, RequestFacts, Requester};
pub use credential::{AccessKeyId, Credential, Identities, Identity, InvalidCredential, SecretKey};
