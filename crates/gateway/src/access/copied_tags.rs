//! The permission to give a copy the tags of its source.

use std::sync::Arc;

use backend::{NotAllowed, ObjectCheck};
use iam::{ConditionKey, Decision, KnownObject, Values};
use policy::Value;
use s3_types::{NeededFacts, ObjectFacts, S3Action, Tag};

use super::asker::Asker;
use super::deferred::Deferred;
use super::subject::Subject;

/// A check, if there is one.
pub type Check = Option<Arc<dyn ObjectCheck>>;

/// The permission to copy the tags of an object, if it has any: to read them, and to set them on
/// the target. As on S3, a copy without that permission fails if the source has tags, since it
/// would not be what was asked for.
///
/// To a policy, the tags of the source are those that the request sets: a tag that a requester may
/// not set is not set by a copy either.
#[derive(Debug, Clone)]
pub struct CopiedTags(Option<Arc<Undecided>>);

/// Two decisions, at least one of which allows only some tags, or none.
#[derive(Debug)]
struct Undecided {
    read: Verdict,
    write: Verdict,
}

#[derive(Debug)]
enum Verdict {
    Allowed,
    Denied,
    Depends(Deferred),
}

impl CopiedTags {
    /// Asks for the permission. `action` is the one by which the tags of the source are read,
    /// `values` have the values of the condition keys that depend on the operation, for each side.
    pub fn ask(
        asker: &Asker<'_>,
        (source, action, of_source): (Subject<'_>, S3Action, &Values<'_>),
        (target, of_target): (Subject<'_>, &Values<'_>),
    ) -> Self {
        let unknown = |key| match key {
            ConditionKey::RequestObjectTag | ConditionKey::RequestObjectTagKeys => Value::Unknown,
            key => of_target(key),
        };
        let read = Verdict::new(asker, source, action, of_source);
        let write = Verdict::new(asker, target, S3Action::PutObjectTagging, &unknown);
        match (read, write) {
            (Verdict::Allowed, Verdict::Allowed) => Self(None),
            (read, write) => Self(Some(Arc::new(Undecided { read, write }))),
        }
    }

    /// Returns a check that asks `first`, and then decides about the tags.
    pub fn after(&self, first: Check) -> Check {
        match &self.0 {
            None => first,
            Some(undecided) => Some(Arc::new(After { first, tags: Arc::clone(undecided) })),
        }
    }
}

impl Verdict {
    fn new(asker: &Asker<'_>, subject: Subject<'_>, action: S3Action, values: &Values<'_>) -> Self {
        match asker.decide(action, subject, values) {
            Decision::Allow => Self::Allowed,
            Decision::Deny | Decision::NoGrant => Self::Denied,
            Decision::NeedsObject(needs) => {
                Self::Depends(Deferred::new(asker, subject, action.into(), needs, values))
            }
        }
    }

    fn decide(&self, object: KnownObject<'_>, tags: Option<&[Tag]>) -> Result<(), NotAllowed> {
        match self {
            Self::Allowed => Ok(()),
            Self::Denied => Err(NotAllowed),
            Self::Depends(deferred) => deferred.decide(object, tags),
        }
    }
}

#[derive(Debug)]
struct After {
    first: Check,
    tags: Arc<Undecided>,
}

impl ObjectCheck for After {
    fn needs(&self) -> NeededFacts {
        let first = self.first.as_ref().map_or(NeededFacts::default(), |first| first.needs());
        first.or(NeededFacts { acl: false, tags: true })
    }

    fn check(&self, object: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed> {
        if let Some(first) = &self.first {
            first.check(object)?;
        }
        let Some(facts) = object else { return Ok(()) };
        let Some(tags) = facts.tags.filter(|tags| !tags.is_empty()) else { return Ok(()) };
        self.tags.read.decide(KnownObject::Facts(facts), None)?;
        // The object that is replaced is another one, whose tags are not known here.
        self.tags.write.decide(KnownObject::Missing, Some(tags))
    }
}
