//! The object that a key had when an upload of it was created.
//!
//! A conditional CompleteMultipartUpload fails if the object of its condition is no longer the same
//! one as then, even with the same ETag. So the upload's record holds what distinguishes that
//! object from others.

use backend::ObjectAttributes;

use super::foreign;
use super::place::Facts;
use crate::record::{ObjectIdentity, Predecessor};

/// Returns the identity of an object with these attributes.
pub(crate) fn identity_of(attributes: &ObjectAttributes, inode: Option<u64>) -> ObjectIdentity {
    ObjectIdentity {
        modified_ns: i64::try_from(attributes.last_modified.as_nanosecond()).unwrap_or(i64::MAX),
        size_bytes: attributes.size_bytes,
        inode,
        etag: Some(attributes.etag.clone()).filter(|etag| !foreign::is_foreign(etag)),
    }
}

/// True if these are the facts of the same object, as far as they can show that.
fn is_of(identity: &ObjectIdentity, facts: &Facts) -> bool {
    let same_inode = identity.inode.zip(facts.inode).is_none_or(|(then, now)| then == now);
    same_inode
        && i128::from(identity.modified_ns) == facts.last_modified.as_nanosecond()
        && identity.size_bytes == facts.size_bytes
        && identity.etag.as_ref().is_none_or(|etag| *etag == facts.etag)
}

/// True if the key still has the same object as when the upload was created, or still has none.
pub(crate) fn is_still(predecessor: &Predecessor, current: Option<&Facts>) -> bool {
    match (predecessor, current) {
        (Predecessor::Nothing, None) => true,
        (Predecessor::Object(identity), Some(facts)) => is_of(identity, facts),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use s3_types::{ETag, Timestamp};

    use super::*;
    use crate::record::Attached;

    fn facts() -> Facts {
        Facts {
            etag: ETag::Md5([1; 16]),
            last_modified: Timestamp::from_nanosecond(1_800_000_000_123_456_789).unwrap(),
            size_bytes: 7,
            inode: Some(12),
            attached: Attached::none(),
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
            version: None,
            tag_count: 0,
        };
        Predecessor::Object(identity_of(&attributes, facts.inode))
    }

    #[test]
    fn another_object_is_told_by_any_difference() {
        let then = noted(facts());
        assert!(is_still(&then, Some(&facts())));
        assert!(!is_still(&then, None));
        assert!(!is_still(&Predecessor::Nothing, Some(&facts())));
        assert!(is_still(&Predecessor::Nothing, None));
        let next_tick = Timestamp::from_nanosecond(1_800_000_000_123_456_790).unwrap();
        for other in [
            Facts { inode: Some(13), ..facts() },
            Facts { size_bytes: 8, ..facts() },
            Facts { last_modified: next_tick, ..facts() },
            Facts { etag: ETag::Md5([2; 16]), ..facts() },
        ] {
            assert!(!is_still(&then, Some(&other)), "{other:?}");
        }
    }

    #[test]
    fn what_is_not_known_tells_nothing() {
        let then = noted(Facts { inode: None, ..facts() });
        assert!(is_still(&then, Some(&facts())));
        assert!(is_still(&noted(facts()), Some(&Facts { inode: None, ..facts() })));
        // Rehashed since.
        let foreign = ETag::Opaque("foreign-c-7-0".into());
        assert!(is_still(&noted(Facts { etag: foreign, ..facts() }), Some(&facts())));
    }
}
