//! Identities, and the decision whether a request is allowed.
//!
//! One identity exists for now: root, who may do everything. The shape is the one that users, groups, policies and
//! ACLs need: a request is authenticated into a [`Requester`], and every action it takes is put to [`decide`]
//! with its whole context.

mod authorize;
mod credential;

pub use authorize::{Action, Decision, Requester, decide};
pub use credential::{AccessKeyId, Credential, Identities, InvalidCredential, SecretKey};
