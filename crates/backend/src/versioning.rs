use bytes::Bytes;
use s3_types::{ObjectKey, Timestamp, VersionId};

use crate::documents::{DocumentKind, Documents};
use crate::listing::{ListPosition, ObjectSummary};

/// Whether a bucket keeps the versions of its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Versioning {
    /// Versions were never kept. No object has a version id.
    #[default]
    Unset,
    /// Every write and delete keeps the version that was current.
    Enabled,
    /// A write or a delete replaces the null version, and keeps all others.
    Suspended,
}

impl Versioning {
    /// Returns the versioning of a bucket with these documents; `None` if the document is none that
    /// [`Versioning::document`] returns.
    pub fn of(documents: &Documents) -> Option<Self> {
        match documents.get(&DocumentKind::Versioning).map(|document| &document[..]) {
            None => Some(Self::Unset),
            Some(b"enabled") => Some(Self::Enabled),
            Some(b"suspended") => Some(Self::Suspended),
            Some(_) => None,
        }
    }

    /// Returns the document that says this; `None` for [`Versioning::Unset`], which has none. It is
    /// the only document that storages read, since they keep the versions.
    pub fn document(self) -> Option<Bytes> {
        match self {
            Self::Unset => None,
            Self::Enabled => Some(Bytes::from_static(b"enabled")),
            Self::Suspended => Some(Bytes::from_static(b"suspended")),
        }
    }

    /// True if objects of the bucket have version ids.
    pub const fn is_set(self) -> bool {
        !matches!(self, Self::Unset)
    }
}

/// The thing that a storage lacks to keep the versions of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VersionsLack {
    /// Requests act as users of the file system, who would need rights in directories of the
    /// server's.
    #[error("versions cannot be kept while requests act as users of the file system (--impersonate)")]
    OwnIdentity,
    /// Records are not in attributes of their files, and so would not go with them in one step.
    #[error("versions cannot be kept where records are in files beside the objects (--metadata sidecar)")]
    Attributes,
    /// The file system cannot exchange two names in one step.
    #[error(
        "versions cannot be kept on this file system, which cannot exchange two names in one step \
         (RENAME_EXCHANGE)"
    )]
    Exchange,
    /// A name may be missing for a moment while it is replaced.
    #[error(
        "versions cannot be kept on this file system, on which a name may be missing for a moment while it is \
         replaced"
    )]
    StableNames,
}

/// A delete marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteMarker {
    /// The id of the marker.
    pub version: VersionId,
    /// The time at which the marker was made.
    pub last_modified: Timestamp,
}

/// One entry of a page of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionItem {
    /// A version of an object. Its [`ObjectSummary::version`] is `None` for the null version.
    Object {
        /// The version.
        object: ObjectSummary,
        /// True for the current version of its key.
        is_latest: bool,
    },
    /// A delete marker.
    DeleteMarker {
        /// The key.
        key: ObjectKey,
        /// The marker.
        marker: DeleteMarker,
        /// True if it is the newest version of its key.
        is_latest: bool,
    },
    /// A common prefix, including the delimiter. At least one key with a version begins with it.
    CommonPrefix(String),
}

/// One page of versions, in the order of the keys' bytes; those of one key from the newest to the
/// oldest.
#[derive(Debug, Clone, Default)]
pub struct VersionPage {
    /// The versions, delete markers and common prefixes.
    pub items: Vec<VersionItem>,
    /// The position at which the next page begins; `None` if this was the last.
    pub next: Option<ListPosition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_what_it_was_made_of() {
        for versioning in [Versioning::Unset, Versioning::Enabled, Versioning::Suspended] {
            let documents = versioning.document().map(|document| (DocumentKind::Versioning, document));
            assert_eq!(Versioning::of(&documents.into_iter().collect()), Some(versioning));
        }
        let unknown = Documents::from([(DocumentKind::Versioning, Bytes::from_static(b"Enabled"))]);
        assert_eq!(Versioning::of(&unknown), None);
    }
}
