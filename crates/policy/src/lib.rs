//! AWS policy documents: read, checked, compiled, and evaluated (docs/decisions/0039-policies.md).
//!
//! [`Policy::parse`] refuses everything that it does not understand, with the place. [`decide`]
//! takes a [`Request`] and the [`Documents`] that decide about it. An [`Explanation`] has the same
//! decision, with the result for each statement. The crate knows no sessions and stores, and reads
//! no clock: the caller provides the values of condition keys ([`Facts`]).

mod arn;
mod catalogue;
mod condition;
mod document;
mod evaluate;
mod explanation;
mod facts;
mod fault;
mod json;
mod kind;
pub mod limits;
mod operator;
mod parse;
mod party;
mod pattern;
mod principals;
mod public;
mod rename;
mod resources;

pub use catalogue::{Action, ActionSet, DoneWith, Key, KeySpec, all_keys};
pub use condition::Condition;
pub use document::{Effect, Inert, Policy, Resources, Statement, Version};
pub use evaluate::{Documents, Finding, Recorder, Request, Source, Sums, Verdict, decide, evaluate};
pub use explanation::{Explanation, Note};
pub use facts::{Certainty, Facts, Value};
pub use fault::{Fault, Malformed};
pub use kind::Kind;
pub use operator::{Operator, Quantifier};
pub use party::{Party, PartyKind};
pub use principals::{Bond, Principals};
pub use rename::rename;
pub use resources::{Resource, ResourcePattern};
