//! Documents, as they are once read.

use crate::catalogue::ActionSet;
use crate::condition::Condition;
use crate::principals::Principals;
use crate::resources::ResourcePattern;

/// The version of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `2008-10-17`, which has no variables.
    V2008,
    /// `2012-10-17`.
    V2012,
}

/// The effect of a statement on the requests that it applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is allowed.
    Allow,
    /// It is denied, whatever others allow.
    Deny,
}

/// The resources of a statement.
#[derive(Debug, Clone)]
pub struct Resources {
    /// True for `NotResource`.
    pub not: bool,
    /// The patterns.
    pub patterns: Box<[ResourcePattern]>,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Statement {
    /// The id.
    pub sid: Option<Box<str>>,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The effect.
    pub effect: Effect,
    /// The principals that it names; `None` in policies of identities.
    pub principals: Option<Principals>,
    /// The actions, those of other services aside.
    pub actions: ActionSet,
    /// The resources; `None` in trust policies.
    pub resources: Option<Resources>,
    /// The conditions, all of which must hold.
    pub conditions: Box<[Condition]>,
}

/// The parts of a document about other services, and conditions on values that no request has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inert {
    /// The place in the document.
    pub path: String,
    /// The action or the key.
    pub name: String,
}

/// A document, compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The version.
    pub version: Version,
    /// The id.
    pub id: Option<Box<str>>,
    /// The statements, in the document's order.
    pub statements: Box<[Statement]>,
    /// The actions and condition keys of other services, which have no effect.
    pub inert: Box<[Inert]>,
    /// The size that counts for the limit of the document's kind.
    pub size: usize,
}

impl Policy {
    /// True if a statement depends on the tags of objects.
    pub fn needs_object(&self) -> bool {
        self.statements.iter().any(Statement::needs_object)
    }
}

impl Statement {
    /// True if the tags of the object may matter.
    pub fn needs_object(&self) -> bool {
        let of_resource =
            |resources: &Resources| resources.patterns.iter().any(ResourcePattern::needs_object);
        self.conditions.iter().any(Condition::needs_object)
            || self.resources.as_ref().is_some_and(of_resource)
    }
}
