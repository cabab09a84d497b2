//! The subresources: query parameters that ask for another operation than the plain verb.
//!
//! For each, the table has S3's name for it (`ResourceType` of a 405), and its meaning on the path
//! of a key. The parameters are from the S3 API model. The rest was recorded at Amazon S3
//! ("Sources" in docs/decisions/0005-where-sources-disagree.md).

use crate::query::Query;
use crate::target::Shape;

/// A query parameter that asks for an operation of its own.
#[derive(Debug, Clone, Copy)]
pub struct Subresource {
    /// The parameter's name.
    pub name: &'static str,
    /// S3's name for the subresource on a bucket's path; `None` if it has no meaning there.
    on_bucket: Option<&'static str>,
    on_key: OnKey,
}

/// The meaning of a subresource on a key's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnKey {
    /// The subresource is the object's own, with S3's name for it.
    Own(&'static str),
    /// The subresource is the bucket's: S3 ignores the key.
    OfBucket,
    /// The subresource has no meaning: S3 ignores it.
    Nothing,
}

macro_rules! subresources {
    ($($name:literal $bucket:tt $key:tt)*) => {
        /// All subresources, sorted by name.
        const SUBRESOURCES: &[Subresource] = &[$(Subresource {
            name: $name,
            on_bucket: subresources!(@bucket $bucket),
            on_key: subresources!(@key $key),
        },)*];
    };
    (@bucket -) => { None };
    (@bucket $type:literal) => { Some($type) };
    (@key -) => { OnKey::Nothing };
    (@key bucket) => { OnKey::OfBucket };
    (@key $type:literal) => { OnKey::Own($type) };
}

subresources! {
    "abac" "BUCKET_ABAC" -
    "accelerate" "ACCELERATE" bucket
    "acl" "ACL" "ACL"
    "analytics" "ANALYTICS" -
    "annotation" - "OBJECT_ANNOTATIONS"
    "attributes" - "OBJECT_ATTRIBUTES"
    "cors" "CORS" bucket
    "delete" "MULTI_OBJECT_DELETE" "MULTI_OBJECT_DELETE"
    "encryption" "ENCRYPTION" "OBJECT_ENCRYPTION"
    "intelligent-tiering" "INTELLIGENT_TIERING" -
    "inventory" "INVENTORY" bucket
    "legal-hold" - "OBJECT_LOCK_LEGALHOLD"
    "lifecycle" "LIFECYCLE" bucket
    "location" "LOCATION" bucket
    "logging" "LOGGING_STATUS" bucket
    "metadataAnnotationTable" "BUCKET_METADATA_ANNOTATION_TABLE_CONFIGURATION" -
    "metadataConfiguration" "BUCKET_METADATA_CONFIGURATION" -
    "metadataInventoryTable" "BUCKET_METADATA_INVENTORY_TABLE_CONFIGURATION" -
    "metadataJournalTable" "BUCKET_METADATA_JOURNAL_TABLE_CONFIGURATION" -
    "metadataTable" "BUCKET_METADATA_TABLE_CONFIGURATION" -
    "metrics" "METRICS" -
    "notification" "NOTIFICATION" bucket
    "object-lock" "OBJECT_LOCK_CONFIGURATION" -
    "ownershipControls" "OWNERSHIP_CONTROLS" -
    "policy" "BUCKETPOLICY" bucket
    "policyStatus" "POLICY_STATUS" -
    "publicAccessBlock" "PUBLIC_ACCESS_BLOCK" -
    "renameObject" - "OBJECT"
    "replication" "REPLICATION" bucket
    "requestPayment" "REQUEST_PAYMENT" bucket
    "restore" "RESTORE" "RESTORE"
    "retention" - "OBJECT_LOCK_RETENTION"
    "select" - "SELECT"
    "session" "BUCKET" -
    "tagging" "TAGGING" "OBJECT_TAGGING"
    "torrent" "TORRENT" "TORRENT"
    "uploadId" "UPLOAD" "UPLOAD"
    "uploads" "UPLOADS" "UPLOADS"
    "versioning" "VERSIONING" bucket
    "versions" "BUCKETVERSIONS" bucket
    "website" "WEBSITE" bucket
}

impl Subresource {
    /// Returns the subresource of this name, which may have a meaning on one path only.
    pub fn named(name: &str) -> Option<&'static Self> {
        // Every presigned URL has parameters that begin with a capital, and no subresource does:
        // they need no search.
        if name.bytes().next().is_none_or(|first| first.is_ascii_uppercase()) {
            return None;
        }
        let found = SUBRESOURCES.binary_search_by(|row| row.name.cmp(name)).ok()?;
        SUBRESOURCES.get(found)
    }

    /// Returns S3's name for the subresource in the `ResourceType` of a 405; `None` if S3 ignores
    /// it on this path.
    pub const fn resource_type(&self, shape: Shape) -> Option<&'static str> {
        match (shape, self.on_key) {
            (Shape::Service, _) | (Shape::Object, OnKey::Nothing) => None,
            (Shape::Bucket, _) | (Shape::Object, OnKey::OfBucket) => self.on_bucket,
            (Shape::Object, OnKey::Own(kind)) => Some(kind),
        }
    }

    /// True if the subresource asks for the bucket's operation even on a key's path.
    pub fn is_of_bucket(&self) -> bool {
        self.on_key == OnKey::OfBucket
    }
}

/// Returns the subresources that a query names, sorted by name, each once.
///
/// There are none on the service's path, where subresources have no meaning.
pub fn named(query: &Query<'_>, shape: Shape) -> Vec<&'static Subresource> {
    if shape == Shape::Service {
        return Vec::new();
    }
    let mut found: Vec<_> = query.iter().filter_map(|(name, _)| Subresource::named(name)).collect();
    found.sort_unstable_by_key(|row| row.name);
    found.dedup_by_key(|row| row.name);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{OPERATIONS, Selector};

    #[test]
    fn they_are_sorted() {
        assert!(SUBRESOURCES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn every_operation_is_asked_for_by_one_that_means_something() {
        for row in OPERATIONS {
            let (Selector::Sub(name) | Selector::SubBoth(name, _)) = row.selector else { continue };
            if name == "partNumber" {
                continue;
            }
            let found = Subresource::named(name).unwrap_or_else(|| panic!("{}: {name}", row.name));
            assert!(found.resource_type(row.shape).is_some(), "{}", row.name);
        }
    }

    #[test]
    fn keys_have_their_own_and_some_of_the_buckets() {
        let kind = |name, shape| Subresource::named(name).and_then(|row| row.resource_type(shape));
        assert_eq!(kind("tagging", Shape::Bucket), Some("TAGGING"));
        assert_eq!(kind("tagging", Shape::Object), Some("OBJECT_TAGGING"));
        assert_eq!(kind("policy", Shape::Object), Some("BUCKETPOLICY"));
        assert_eq!(kind("policyStatus", Shape::Object), None);
        assert_eq!(kind("legal-hold", Shape::Bucket), None);
        assert_eq!(kind("acl", Shape::Service), None);
        assert!(Subresource::named("Acl").is_none());
    }
}
