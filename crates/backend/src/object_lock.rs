use bytes::Bytes;
use s3_types::{DefaultRetention, ObjectLock, Retention, RetentionMode, RetentionPeriod, VersionId};

use crate::documents::{DocumentKind, Documents};
use crate::object::ObjectRef;
use crate::object_check::Check;

/// The Object Lock configuration of a bucket that has one: its versions may be locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LockRules {
    /// The retention that new versions get, unless their request has another one.
    pub default: Option<DefaultRetention>,
}

/// The error for a document that [`LockRules::document`] does not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the Object Lock configuration has an unknown form")]
pub struct UnknownLockRules;

impl LockRules {
    /// Returns the configuration of a bucket with these documents; `None` if it has none.
    pub fn of(documents: &Documents) -> Result<Option<Self>, UnknownLockRules> {
        let Some(document) = documents.get(&DocumentKind::ObjectLock) else { return Ok(None) };
        let words: Vec<_> = str::from_utf8(document).map_err(|_| UnknownLockRules)?.split(' ').collect();
        let default = match &*words {
            ["enabled"] => None,
            ["enabled", mode, number, unit] => {
                let mode = RetentionMode::of(mode).ok_or(UnknownLockRules)?;
                let number = number.parse().map_err(|_| UnknownLockRules)?;
                let period = match *unit {
                    "days" => RetentionPeriod::Days(number),
                    "years" => RetentionPeriod::Years(number),
                    _ => return Err(UnknownLockRules),
                };
                Some(DefaultRetention::new(mode, period).ok_or(UnknownLockRules)?)
            }
            _ => return Err(UnknownLockRules),
        };
        Ok(Some(Self { default }))
    }

    /// Returns the document that says this. Storages read it, since they lock new versions.
    pub fn document(self) -> Bytes {
        match self.default {
            None => Bytes::from_static(b"enabled"),
            Some(default) => format!("enabled {default}").into(),
        }
    }
}

/// A request to read the lock of a version.
#[derive(Debug, Clone, Copy)]
pub struct LockRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// The check of the version whose lock is read.
    pub check: Check<'a>,
}

/// The lock of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionLock {
    /// The lock.
    pub lock: ObjectLock,
    /// The object's version; `None` for the null version.
    pub version: Option<VersionId>,
}

/// A change of the lock of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockChange {
    /// The version gets this retention, or none.
    Retention {
        /// The new retention.
        retention: Option<Retention>,
        /// True if a retention in GOVERNANCE mode may be shortened or removed.
        bypass_governance: bool,
    },
    /// The version gets a legal hold, or loses it.
    LegalHold(bool),
}

/// A request to change the lock of a version.
#[derive(Debug, Clone, Copy)]
pub struct PutLockRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// The change.
    pub change: LockChange,
    /// The check of the version whose lock is changed.
    pub check: Check<'a>,
}

/// The result of a change of a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockReceipt {
    /// The object's version; `None` for the null version.
    pub version: Option<VersionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> Result<Option<LockRules>, UnknownLockRules> {
        LockRules::of(&Documents::from([(DocumentKind::ObjectLock, Bytes::from_static(text.as_bytes()))]))
    }

    #[test]
    fn a_document_says_what_it_was_made_of() {
        let days = DefaultRetention::new(RetentionMode::Governance, RetentionPeriod::Days(30));
        let years = DefaultRetention::new(RetentionMode::Compliance, RetentionPeriod::Years(7));
        for (default, text) in
            [(None, "enabled"), (days, "enabled GOVERNANCE 30 days"), (years, "enabled COMPLIANCE 7 years")]
        {
            let rules = LockRules { default };
            assert_eq!(rules.document(), text);
            assert_eq!(of(text), Ok(Some(rules)));
        }
        assert_eq!(LockRules::of(&Documents::new()), Ok(None));
        for text in [
            "",
            "Enabled",
            "enabled GOVERNANCE 0 days",
            "enabled x 1 days",
            "enabled COMPLIANCE 1 weeks",
            "enabled COMPLIANCE 1",
        ] {
            assert_eq!(of(text), Err(UnknownLockRules), "{text}");
        }
    }
}
