//! People of an LDAP directory, and their passwords: search and bind
//! (docs/decisions/0041-where-identities-are-kept.md).

mod attempts;
mod connection;
mod directory;
mod entry;
mod failure;
mod people;
mod searching;
mod settings;
mod template;

pub use directory::{Ldap, check};
pub use settings::{LdapServer, LdapSettings};
pub use template::{DN, Template, USER};
