//! The Query API of IAM and STS as data: the table of actions, forms, typed inputs and answers,
//! errors (docs/decisions/0043-iam-and-sts-on-the-port.md).
//!
//! The crate has no I/O, no clock and no configuration, and knows no accounts. It takes the query
//! and the body of a request as bytes, and returns typed inputs ([`parse`]); it takes typed
//! answers, and returns XML ([`Output::render`]). The table ([`action::ACTIONS`]) lists the
//! actions, and whether they are served. The gateway performs them (`crates/gateway/src/actions`).

pub mod action;
pub mod api;
mod arn;
mod context_entry;
mod error;
mod form;
mod input;
pub mod limits;
mod output;
mod page;
mod pattern;
mod reader;
mod rule;
mod secret;
mod service;
mod tag;
mod validation;
mod words;
mod xml;

pub use action::{ACTIONS, Action, ActionInfo, Permission, Secrets, State};
pub use error::{QueryCode, QueryError};
pub use form::Form;
pub use input::{Input, parse};
pub use output::{Output, render_done};
pub use page::{Cut, Page};
pub use reader::{Member, Reader};
pub use secret::Secret;
pub use service::Service;
pub use tag::Tag;
pub use words::{
    AccountStatus, AssignmentStatus, EntityKind, KeyStatus, PolicyDecision, PolicyScope, PolicySource,
    PolicyUsage, Word,
};
pub use xml::{Element, EncodedDocument, Text, Xml};
