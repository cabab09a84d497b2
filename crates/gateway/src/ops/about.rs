//! The version and the conditions that a request names, on which permissions depend.

use std::borrow::Cow;

use iam::ConditionKey;
use policy::Value;
use s3_types::{ActionSet, Conditions, ETag, ETagCondition, S3Action, VersionId};

/// The facts that a request states about its object, beyond the key.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'v> {
    /// The version; `None` for the current one.
    pub version: Option<&'v VersionId>,
    /// The conditions of a write or a deletion.
    pub conditions: Option<&'v Conditions>,
}

impl<'v> About<'v> {
    /// Returns what a request names that has no conditions: this version, or none, which means the
    /// current one.
    pub fn version(version: Option<&'v VersionId>) -> Self {
        Self { version, conditions: None }
    }

    /// Returns the actions that must be allowed for `action`: itself, or the action like it for
    /// versions. If a write or a deletion is conditional on the object's ETag, its result reveals
    /// whether the object has this ETag. So it also needs the permission to read the object ("How
    /// to enforce conditional deletes on Amazon S3 buckets" and "... conditional writes" in the S3
    /// User Guide).
    pub fn actions(self, action: S3Action) -> ActionSet {
        let of_version = |action: S3Action| if self.version.is_some() { action.of_version() } else { action };
        let own = of_version(action).into();
        match self.if_match() {
            Some(ETagCondition::OneOf(_)) => ActionSet::and(own, of_version(S3Action::GetObject)),
            Some(ETagCondition::Any) | None => own,
        }
    }

    /// Returns the value of a condition key about the version or the conditions; none for other
    /// keys.
    pub fn value(self, key: ConditionKey) -> Value<'v> {
        match key {
            ConditionKey::VersionId => self.version.map(VersionId::as_str).into(),
            ConditionKey::IfMatch => self.if_match().map(text).into(),
            ConditionKey::IfNoneMatch => {
                self.conditions.and_then(|of| of.if_none_match.as_ref()).map(text).into()
            }
            _ => Value::Absent,
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
