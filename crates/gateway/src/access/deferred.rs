//! Permissions that depend on facts of the object, and are decided once the storage has read these.

use std::sync::Arc;

use backend::{NotAllowed, ObjectCheck};
use iam::{
    Authorizer, BucketRules, ConditionKey, Decision, KnownObject, Question, Requester, Resource, Values,
    request_tags,
};
use policy::Value;
use s3_types::{ActionSet, BucketName, NeededFacts, ObjectFacts, ObjectKey, Tag};

use super::asker::{Asker, decide_noted, has_ended};
use super::subject::Subject;
use crate::audit::Trail;

/// Questions that are asked again once the storage has read the facts about the object. They own
/// copies of the request's questions and values, so that the check may outlive the request.
#[derive(Debug)]
pub struct Deferred {
    authorizer: Arc<dyn Authorizer>,
    requester: Requester,
    bucket: Option<BucketName>,
    key: Option<ObjectKey>,
    rules: Option<Arc<BucketRules>>,
    actions: ActionSet,
    needs: NeededFacts,
    values: Vec<(ConditionKey, Value<'static>)>,
    trail: Option<Arc<Trail>>,
}

impl Deferred {
    /// Makes the questions about `actions`, for which the authorizer needs the facts `needs`.
    pub fn new(
        asker: &Asker<'_>,
        subject: Subject<'_>,
        actions: ActionSet,
        needs: NeededFacts,
        values: &Values<'_>,
    ) -> Self {
        let value = |key: &ConditionKey| {
            let value = asker.value_of(*key, subject, values);
            (value != Value::Absent).then(|| (*key, value.into_owned()))
        };
        Self {
            authorizer: Arc::clone(asker.authorizer),
            requester: asker.requester.clone(),
            bucket: subject.resource.bucket.cloned(),
            key: subject.resource.key.cloned(),
            rules: subject.rules.cloned(),
            actions,
            needs,
            values: ConditionKey::ALL.iter().filter_map(value).collect(),
            trail: asker.trail.cloned(),
        }
    }
}

impl Deferred {
    /// Decides with the facts about the object. `tags` are those that the request sets, if they
    /// were not known before.
    pub fn decide(&self, object: KnownObject<'_>, tags: Option<&[Tag]>) -> Result<(), NotAllowed> {
        let is_of_tags =
            |key| matches!(key, ConditionKey::RequestObjectTag | ConditionKey::RequestObjectTagKeys);
        let value = |key: ConditionKey| {
            if let Some(tags) = tags.filter(|_| is_of_tags(key)) {
                return request_tags(tags, key);
            }
            let value = self.values.iter().find(|(of, _)| *of == key);
            value.map_or(Value::Absent, |(_, value)| value.as_borrowed())
        };
        let allows = |action| {
            let question = Question {
                requester: &self.requester,
                action,
                resource: Resource { bucket: self.bucket.as_ref(), key: self.key.as_ref() },
                rules: self.rules.as_deref(),
                object,
                values: &value,
            };
            let decision = match &self.trail {
                Some(trail) => decide_noted(&*self.authorizer, trail, &question),
                None => self.authorizer.decide(&question),
            };
            decision == Decision::Allow
        };
        // A write may have gone on for long.
        if !has_ended(&self.requester) && self.actions.iter().all(allows) { Ok(()) } else { Err(NotAllowed) }
    }
}

impl ObjectCheck for Deferred {
    fn needs(&self) -> NeededFacts {
        self.needs
    }

    fn check(&self, object: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed> {
        self.decide(object.map_or(KnownObject::Missing, KnownObject::Facts), None)
    }
}
