//! Accounts with their users, groups, roles, policies and providers, as documents
//! (docs/decisions/0040-accounts-and-users.md).
//!
//! An [`AccountDocument`] has everything of one account. Each operation of IAM that changes
//! something is one of its methods: it checks everything before it changes anything, and fails with
//! IAM's own errors. [`AccountDocument::changed`] makes a change in a copy. A store then puts the
//! copy in place of the document, unless another gateway has changed that in between.

mod account;
mod arn;
mod built_in;
mod change;
mod document;
mod error;
mod keys;
pub mod limits;
mod names;
mod parts;
mod policies;
mod provider_url;
mod providers;
mod rights;
mod roles;
mod rules;
mod tagging;
mod tags;
#[cfg(test)]
mod tests;
mod users;

pub(crate) use account::check_account_name;
pub use arn::{InvalidPolicyArn, PolicyArn, PolicyArnParts, arn_of};
pub use built_in::{BUILT_IN, BuiltIn, built_in};
pub use change::{Change, Changed, Context, PolicyCheck, PolicyFault, PolicyUse};
pub use document::{AccountDocument, DocumentError, FORMAT};
pub use error::{IamCode, IamError};
pub(crate) use keys::no_master_key;
pub use keys::{KeyOwner, NewKey, SecretError};
pub use names::{Alias, Description, Document, InvalidText, Name, Path, is_of_name};
pub use parts::{Group, Inline, Key, KeyStatus, ManagedPolicy, PolicyVersion, Posix, Provider, Role, User};
pub use policies::NewPolicy;
pub use provider_url::{InvalidProviderUrl, ProviderArn, ProviderUrl};
pub use providers::NewProvider;
pub use rights::Holder;
pub use roles::NewRole;
pub use rules::MAX_SESSION_SECONDS;
pub use tagging::Tagged;
pub use tags::{InvalidTag, TagKey, TagValue, Tags};
pub use users::NewUser;
