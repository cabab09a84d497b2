//! What a key had when an upload of it was created.
//!
//! A conditional CompleteMultipartUpload fails if the object that its condition is about is not the
//! one of then, even if its ETag is the same. So the upload's description holds what tells that
//! object from any other.

use backend::ObjectAttributes;
use s3_types::ETag;

use crate::foreign;
use crate::place::Facts;

/// What a key had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// No object.
    Nothing,
    /// This one.
    Object(ObjectIdentity),
}

/// Tells an object from others that have its key before or after.
///
/// A write through S3 makes a new file. Two files that exist at the same time differ in their
/// inode; a file that got the inode of a removed one differs in its time, unless both were made
/// within one tick of the file system's clock. Where inode numbers do not last there are time, size
/// and ETag: what was replaced by the same bytes in the same tick (a second, on some) is taken for
/// what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectIdentity {
    /// The object's time, in ns.
    pub modified_ns: i64,
    /// Its size.
    pub size_bytes: u64,
    /// Its file's inode, where these last.
    pub inode: Option<u64>,
    /// Its ETag, unless it is a file without a record: such a one gets another when it is rehashed.
    pub etag: Option<ETag>,
}

impl ObjectIdentity {
    /// That of an object with these attributes.
    pub fn of(attributes: &ObjectAttributes, inode: Option<u64>) -> Self {
        Self {
            modified_ns: i64::try_from(attributes.last_modified.as_nanosecond()).unwrap_or(i64::MAX),
            size_bytes: attributes.size_bytes,
            inode,
            etag: Some(attributes.etag.clone()).filter(|etag| !foreign::is_foreign(etag)),
        }
    }

    /// True if these are the facts of the same object, as far as they tell.
    fn is(&self, facts: &Facts) -> bool {
        let same_inode = self.inode.zip(facts.inode).is_none_or(|(then, now)| then == now);
        same_inode
            && i128::from(self.modified_ns) == facts.last_modified.as_nanosecond()
            && self.size_bytes == facts.size_bytes
            && self.etag.as_ref().is_none_or(|etag| *etag == facts.etag)
    }
}

impl Predecessor {
    /// True if the key has now what it had then.
    pub fn is_still(&self, current: Option<&Facts>) -> bool {
        match (self, current) {
            (Self::Nothing, None) => true,
            (Self::Object(identity), Some(facts)) => identity.is(facts),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use s3_types::Timestamp;

    use super::*;

    fn facts() -> Facts {
        Facts {
            etag: ETag::Md5([1; 16]),
            last_modified: Timestamp::from_nanosecond(1_800_000_000_123_456_789).unwrap(),
            size_bytes: 7,
            inode: Some(12),
        }
    }

    fn noted(facts: Facts) -> Predecessor {
        let attributes = ObjectAttributes {
            size_bytes: facts.size_bytes,
            last_modified: facts.last_modified,
            etag: facts.etag,
            checksum: None,
            metadata: s3_types::ObjectMetadata::default(),
            parts: None,
        };
        Predecessor::Object(ObjectIdentity::of(&attributes, facts.inode))
    }

    #[test]
    fn another_object_is_told_by_any_difference() {
        let then = noted(facts());
        assert!(then.is_still(Some(&facts())));
        assert!(!then.is_still(None));
        assert!(!Predecessor::Nothing.is_still(Some(&facts())));
        assert!(Predecessor::Nothing.is_still(None));
        let next_tick = Timestamp::from_nanosecond(1_800_000_000_123_456_790).unwrap();
        for other in [
            Facts { inode: Some(13), ..facts() },
            Facts { size_bytes: 8, ..facts() },
            Facts { last_modified: next_tick, ..facts() },
            Facts { etag: ETag::Md5([2; 16]), ..facts() },
        ] {
            assert!(!then.is_still(Some(&other)), "{other:?}");
        }
    }

    #[test]
    fn what_is_not_known_tells_nothing() {
        let then = noted(Facts { inode: None, ..facts() });
        assert!(then.is_still(Some(&facts())));
        assert!(noted(facts()).is_still(Some(&Facts { inode: None, ..facts() })));
        // Rehashed since.
        let foreign = ETag::Opaque("foreign-c-7-0".into());
        assert!(noted(Facts { etag: foreign, ..facts() }).is_still(Some(&facts())));
    }
}
