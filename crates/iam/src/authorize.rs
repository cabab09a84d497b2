use std::borrow::Cow;
use std::fmt::Debug;

use s3_types::{BucketName, ObjectKey, S3Action};

use crate::condition_key::ConditionKey;
use crate::session::Requester;

/// The thing that a permission is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resource<'a> {
    /// The bucket; `None` for an action on the service.
    pub bucket: Option<&'a BucketName>,
    /// The key; `None` for an action on a bucket or the service.
    pub key: Option<&'a ObjectKey>,
}

/// A function that returns the value of a condition key; `None` for a key of which the request has
/// no value.
pub type Values<'v> = dyn Fn(ConditionKey) -> Option<Cow<'v, str>> + 'v;

/// A permission that a request asks for, with everything that the decision depends on.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The sender of the request.
    pub requester: &'q Requester,
    /// The action that the request needs.
    pub action: S3Action,
    /// The thing that the action is on.
    pub resource: Resource<'q>,
    /// The values of condition keys.
    pub values: &'q Values<'q>,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement allows the action, and none denies it.
    Allow,
    /// A statement denies the action, whatever others allow.
    Deny,
    /// No statement allows the action, and none denies it.
    NoGrant,
}

/// Decides what a requester may do.
pub trait Authorizer: Debug + Send + Sync {
    /// Decides about an action. It never waits: everything that the decision depends on is in
    /// memory.
    fn decide(&self, question: &Question<'_>) -> Decision;
}

/// Allows everything to root, and nothing to others: there are no policies and ACLs yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootOnly;

impl Authorizer for RootOnly {
    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.requester.is_root() { Decision::Allow } else { Decision::NoGrant }
    }
}
