//! Documents in their compiled form.

use crate::catalogue::ActionSet;
use crate::condition::Condition;
use crate::principals::Principals;
use crate::resources::ResourcePattern;

/// The version of the policy language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `2008-10-17`, without variables.
    V2008,
    /// `2012-10-17`, with variables.
    V2012,
}

/// The effect of a statement on the requests that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The statement allows the requests.
    Allow,
    /// The statement denies the requests, whatever other statements allow.
    Deny,
}

/// The resources of a statement.
#[derive(Debug, Clone)]
pub struct Resources {
    /// True for `NotResource`.
    pub not: bool,
    /// The patterns of ARNs.
    pub patterns: Box<[ResourcePattern]>,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The id (`Sid`).
    pub sid: Option<Box<str>>,
    /// The number of the line on which the statement begins, from 1.
    pub line: usize,
    /// The effect.
    pub effect: Effect,
    /// The principals that the statement names; `None` in policies of identities.
    pub principals: Option<Principals>,
    /// The actions, except those of other services.
    pub actions: ActionSet,
    /// The resources; `None` in trust policies.
    pub resources: Option<Resources>,
    /// The conditions, all of which must hold.
    pub conditions: Box<[Condition]>,
}

/// A part of a document that has no effect: an action of another service, or a condition on a value
/// that no request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inert {
    /// The place in the document.
    pub path: String,
    /// The name of the action or of the condition key.
    pub name: String,
}

/// A compiled document.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The version.
    pub version: Version,
    /// The id.
    pub id: Option<Box<str>>,
    /// The statements, in the document's order.
    pub statements: Box<[Statement]>,
    /// The parts of the document that have no effect.
    pub inert: Box<[Inert]>,
    /// The size that counts for the limit of the document's kind
    /// ([`Kind::size_max`](crate::Kind::size_max) has the unit).
    pub size: usize,
}

impl Policy {
    /// True if a statement depends on the tags of objects.
    pub fn needs_object(&self) -> bool {
        self.statements.iter().any(Statement::needs_object)
    }
}

impl Statement {
    /// True if the statement depends on the tags of the object.
    pub fn needs_object(&self) -> bool {
        let of_resource =
            |resources: &Resources| resources.patterns.iter().any(ResourcePattern::needs_object);
        self.conditions.iter().any(Condition::needs_object)
            || self.resources.as_ref().is_some_and(of_resource)
    }
}
