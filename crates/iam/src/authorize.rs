use std::fmt::Debug;

use policy::Value;
use s3_types::{BucketName, ObjectFacts, ObjectKey, S3Action};

use crate::bucket_rules::BucketRules;
use crate::condition_key::ConditionKey;
use crate::decision::{DecidedBy, Decision, Explained};
use crate::session::Requester;

/// The target of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resource<'a> {
    /// The bucket; `None` for an action on the service.
    pub bucket: Option<&'a BucketName>,
    /// The key; `None` for an action on a bucket or the service.
    pub key: Option<&'a ObjectKey>,
}

impl Resource<'_> {
    /// Returns the ARN; `None` for the service.
    pub fn arn(&self) -> Option<String> {
        let bucket = self.bucket?.arn();
        Some(match self.key {
            Some(key) => format!("{bucket}/{}", key.as_str()),
            None => bucket,
        })
    }
}

/// A function that returns the value of a condition key.
pub type Values<'v> = dyn Fn(ConditionKey) -> Value<'v> + 'v;

/// The facts that are known of an action's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownObject<'a> {
    /// The object was not looked at yet.
    NotYet,
    /// The object does not exist.
    Missing,
    /// The facts about the version that the action is on.
    Facts(&'a ObjectFacts<'a>),
}

/// A permission that a request asks for, with everything that the decision depends on.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// The sender of the request.
    pub requester: &'q Requester,
    /// The action that the request needs.
    pub action: S3Action,
    /// The thing that the action is on.
    pub resource: Resource<'q>,
    /// The rules of the resource's bucket, as they were when the request was checked. `None` for an
    /// action on the service, and for a bucket that does not exist yet.
    pub rules: Option<&'q BucketRules>,
    /// The facts of the object that are known so far.
    pub object: KnownObject<'q>,
    /// The values of condition keys.
    pub values: &'q Values<'q>,
}

/// Decides what a requester may do.
pub trait Authorizer: Debug + Send + Sync {
    /// Decides about an action, without waiting: everything that the decision depends on is in
    /// memory.
    fn decide(&self, question: &Question<'_>) -> Decision;

    /// Makes the same decision as [`Self::decide`], and also returns the statements and facts that
    /// it depends on.
    fn decide_explained(&self, question: &Question<'_>) -> Explained {
        let by = if question.requester.is_root() { DecidedBy::Root } else { DecidedBy::NoStatement };
        Explained::without(self.decide(question), by)
    }

    /// Returns the sentence that tells the requester why an action is not allowed; `None` if the
    /// requester is not to know the reason.
    fn reason(&self, _: &Question<'_>) -> Option<String> {
        None
    }

    /// True if this authorizer takes the policies of buckets into account.
    fn uses_bucket_policies(&self) -> bool {
        true
    }
}

/// Allows everything to root, and nothing to others. It is for storages in which several keys lead
/// to the same object, so that a policy about keys cannot protect an object.
#[derive(Debug, Clone, Copy, Default)]
pub struct RootOnly;

impl Authorizer for RootOnly {
    fn decide(&self, question: &Question<'_>) -> Decision {
        if question.requester.is_root() { Decision::Allow } else { Decision::NoGrant }
    }

    fn uses_bucket_policies(&self) -> bool {
        false
    }
}
