//! People of an LDAP directory, their passwords (search and bind) and access keys
//! (docs/decisions/0067-people-of-an-ldap-directory.md).

mod attempts;
mod complaints;
mod connection;
mod directory;
mod entry;
mod failure;
mod keys;
mod people;
mod searching;
mod settings;
mod template;
mod turns;

pub use directory::{Ldap, check};
pub use settings::{KeyAttributes, LdapServer, LdapSettings};
pub use template::{DN, Template, USER};
