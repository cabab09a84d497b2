use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use s3_types::{BucketName, ObjectKey, RequesterFacts, S3Action};

use crate::condition_key::ConditionKey;
use crate::credential::Identity;

/// Who makes a request.
#[derive(Debug, Clone)]
pub enum Requester {
    /// No credentials were sent.
    Anonymous,
    /// A known identity.
    Identity(Arc<Identity>),
}

impl Requester {
    /// True if no credentials were sent.
    pub const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// True if everything is allowed.
    pub fn is_root(&self) -> bool {
        matches!(self, Self::Identity(identity) if identity.is_root)
    }

    /// What storages may know about the requester; `None` for an anonymous one.
    pub fn facts(&self) -> Option<&Arc<RequesterFacts>> {
        match self {
            Self::Anonymous => None,
            Self::Identity(identity) => Some(&identity.facts),
        }
    }
}

/// What a permission is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resource<'a> {
    /// The bucket; `None` for what is about the service.
    pub bucket: Option<&'a BucketName>,
    /// The key, if it is about an object.
    pub key: Option<&'a ObjectKey>,
}

/// The values of condition keys; `None` for a key that the request has no value of.
pub type Values<'v> = dyn Fn(ConditionKey) -> Option<Cow<'v, str>> + 'v;

/// Everything that a decision depends on.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// Who asks.
    pub requester: &'q Requester,
    /// What the requester wants to do.
    pub action: S3Action,
    /// To what.
    pub resource: Resource<'q>,
    /// The values of condition keys.
    pub values: &'q Values<'q>,
}

/// Whether an action is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Something allows it, and nothing denies it.
    Allow,
    /// A statement denies it, which nothing else can allow.
    Deny,
    /// Nothing allows it.
    NoGrant,
}

/// Decides what a requester may do.
pub trait Authorizer: Debug + Send + Sync {
    /// Decides. Never waits: all that it depends on is in memory.
    fn decide(&self, question: &Question<'_>) -> Decision;
}

/// Allows root everything, and others nothing: there are no policies and ACLs yet.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootOnly;

impl Authorizer for RootOnly {
    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.requester.is_root() { Decision::Allow } else { Decision::NoGrant }
    }
}
