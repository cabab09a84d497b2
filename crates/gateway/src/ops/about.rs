//! The version and the conditions of a request, as permissions depend on them.

use std::borrow::Cow;

use iam::ConditionKey;
use s3_types::{ActionSet, Conditions, ETag, ETagCondition, S3Action, VersionId};

/// What a request says of the object that it is about, beyond its key.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'v> {
    /// The version that it names; `None` for the current one.
    pub version: Option<&'v VersionId>,
    /// The conditions of a write or a deletion.
    pub conditions: Option<&'v Conditions>,
}

impl<'v> About<'v> {
    /// The current version, or the one that is named.
    pub fn version(version: Option<&'v VersionId>) -> Self {
        Self { version, conditions: None }
    }

    /// The actions that must be allowed for `action`: it, or the one for versions. A write or a
    /// deletion on condition that the object has a certain ETag tells whether it has, so that it
    /// takes the permission to read it, too ("How to enforce conditional deletes on Amazon S3
    /// buckets" and "... conditional writes" in the S3 User Guide).
    pub fn actions(self, action: S3Action) -> ActionSet {
        let of_version = |action: S3Action| if self.version.is_some() { action.of_version() } else { action };
        let own = of_version(action).into();
        match self.if_match() {
            Some(ETagCondition::OneOf(_)) => ActionSet::and(own, of_version(S3Action::GetObject)),
            Some(ETagCondition::Any) | None => own,
        }
    }

    /// The value of a condition key, if it is about these.
    pub fn value(self, key: ConditionKey) -> Option<Cow<'v, str>> {
        match key {
            ConditionKey::VersionId => self.version.map(|id| id.as_str().into()),
            ConditionKey::IfMatch => self.if_match().map(text),
            ConditionKey::IfNoneMatch => self.conditions?.if_none_match.as_ref().map(text),
            _ => None,
        }
    }

    fn if_match(self) -> Option<&'v ETagCondition> {
        self.conditions?.if_match.as_ref()
    }
}

fn text(condition: &ETagCondition) -> Cow<'static, str> {
    match condition {
        ETagCondition::Any => "*".into(),
        ETagCondition::OneOf(etags) => {
            let etags: Vec<_> = etags.iter().map(ETag::quoted).collect();
            etags.join(", ").into()
        }
    }
}
