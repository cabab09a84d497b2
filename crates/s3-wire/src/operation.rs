//! The operation table: all operations that the S3 API model names, with the form of their
//! requests.

use http::Method;
use s3_types::S3Action;

use crate::target::Shape;

/// The part of a request that distinguishes an operation from others with the same method and kind
/// of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector {
    /// Nothing: the operation is the plain verb.
    Plain,
    /// A query parameter, with any value or none.
    Sub(&'static str),
    /// A query parameter with a value.
    SubValue(&'static str, &'static str),
    /// Two query parameters.
    SubBoth(&'static str, &'static str),
    /// A header.
    Header(&'static str),
    /// Two query parameters and a header.
    SubBothHeader(&'static str, &'static str, &'static str),
}

/// A row of the operation table.
#[derive(Debug, Clone, Copy)]
pub struct OperationInfo {
    /// The operation.
    pub operation: Operation,
    /// AWS's name of the operation.
    pub name: &'static str,
    /// The method of the operation's requests.
    pub method: Verb,
    /// The kind of the target of the operation's requests.
    pub shape: Shape,
    /// The part of a request that distinguishes the operation from others with the same method and
    /// kind of target.
    pub selector: Selector,
    /// The action of policies that must be allowed for the operation.
    pub action: S3Action,
    /// This server's support for the operation.
    pub support: Support,
}

/// This server's support for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// The operation is performed.
    Served,
    /// The answer is that of S3 for a configuration that was never set, since it can't be set here
    /// ([`crate::unset`]).
    Unset,
    /// The operation is refused: 501 `NotImplemented`.
    Refused,
}

/// The methods for which S3 has operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "HTTP's own names")]
pub enum Verb {
    Get,
    Head,
    Put,
    Post,
    Delete,
}

impl Verb {
    /// True for GET and HEAD, which change nothing.
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// Returns the verb of a method; `None` for a method that no operation has.
    pub fn from_method(method: &Method) -> Option<Self> {
        match *method {
            Method::GET => Some(Self::Get),
            Method::HEAD => Some(Self::Head),
            Method::PUT => Some(Self::Put),
            Method::POST => Some(Self::Post),
            Method::DELETE => Some(Self::Delete),
            _ => None,
        }
    }

    /// Returns the method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// The operation table, as a macro. It passes its rows to another macro, which makes an item from
/// them, such as an enum, or a match over all operations.
///
/// A row has an operation's name, method and kind of target, its selector ([`Selector`]), the
/// action that allows it ([`S3Action`]), and its support ([`Support`]): `served`, `unset` or
/// `refused`. If several rows of one method and kind of target match a request, the most specific
/// one counts ([`route`](crate::route::route)).
#[macro_export]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            ListBuckets Get Service Plain, ListAllMyBuckets served

            CreateBucket Put Bucket Plain, CreateBucket served
            HeadBucket Head Bucket Plain, ListBucket served
            DeleteBucket Delete Bucket Plain, DeleteBucket served
            GetBucketLocation Get Bucket Sub("location"), GetBucketLocation served
            ListMultipartUploads Get Bucket Sub("uploads"), ListBucketMultipartUploads served
            ListObjectVersions Get Bucket Sub("versions"), ListBucketVersions served
            ListObjectsV2 Get Bucket SubValue("list-type", "2"), ListBucket served
            ListObjects Get Bucket Plain, ListBucket served
            DeleteObjects Post Bucket Sub("delete"), DeleteObject served
            PostObject Post Bucket Plain, PutObject refused

            GetBucketAbac Get Bucket Sub("abac"), GetBucketAbac unset
            PutBucketAbac Put Bucket Sub("abac"), PutBucketAbac refused
            GetBucketAccelerateConfiguration Get Bucket Sub("accelerate"), GetAccelerateConfiguration unset
            PutBucketAccelerateConfiguration Put Bucket Sub("accelerate"), PutAccelerateConfiguration refused
            GetBucketAcl Get Bucket Sub("acl"), GetBucketAcl unset
            PutBucketAcl Put Bucket Sub("acl"), PutBucketAcl refused
            GetBucketAnalyticsConfiguration Get Bucket SubBoth("analytics", "id"), GetAnalyticsConfiguration unset
            ListBucketAnalyticsConfigurations Get Bucket Sub("analytics"), GetAnalyticsConfiguration unset
            PutBucketAnalyticsConfiguration Put Bucket Sub("analytics"), PutAnalyticsConfiguration refused
            DeleteBucketAnalyticsConfiguration Delete Bucket Sub("analytics"), PutAnalyticsConfiguration refused
            GetBucketCors Get Bucket Sub("cors"), GetBucketCORS unset
            PutBucketCors Put Bucket Sub("cors"), PutBucketCORS refused
            DeleteBucketCors Delete Bucket Sub("cors"), PutBucketCORS refused
            GetBucketEncryption Get Bucket Sub("encryption"), GetEncryptionConfiguration unset
            PutBucketEncryption Put Bucket Sub("encryption"), PutEncryptionConfiguration refused
            DeleteBucketEncryption Delete Bucket Sub("encryption"), PutEncryptionConfiguration refused
            GetBucketIntelligentTieringConfiguration Get Bucket SubBoth("intelligent-tiering", "id"), GetIntelligentTieringConfiguration unset
            ListBucketIntelligentTieringConfigurations Get Bucket Sub("intelligent-tiering"), GetIntelligentTieringConfiguration unset
            PutBucketIntelligentTieringConfiguration Put Bucket Sub("intelligent-tiering"), PutIntelligentTieringConfiguration refused
            DeleteBucketIntelligentTieringConfiguration Delete Bucket Sub("intelligent-tiering"), PutIntelligentTieringConfiguration refused
            GetBucketInventoryConfiguration Get Bucket SubBoth("inventory", "id"), GetInventoryConfiguration unset
            ListBucketInventoryConfigurations Get Bucket Sub("inventory"), GetInventoryConfiguration unset
            PutBucketInventoryConfiguration Put Bucket Sub("inventory"), PutInventoryConfiguration refused
            DeleteBucketInventoryConfiguration Delete Bucket Sub("inventory"), PutInventoryConfiguration refused
            GetBucketLifecycleConfiguration Get Bucket Sub("lifecycle"), GetLifecycleConfiguration unset
            PutBucketLifecycleConfiguration Put Bucket Sub("lifecycle"), PutLifecycleConfiguration refused
            DeleteBucketLifecycle Delete Bucket Sub("lifecycle"), PutLifecycleConfiguration refused
            GetBucketLogging Get Bucket Sub("logging"), GetBucketLogging unset
            PutBucketLogging Put Bucket Sub("logging"), PutBucketLogging refused
            GetBucketMetadataConfiguration Get Bucket Sub("metadataConfiguration"), GetBucketMetadataTableConfiguration unset
            CreateBucketMetadataConfiguration Post Bucket Sub("metadataConfiguration"), CreateBucketMetadataTableConfiguration refused
            DeleteBucketMetadataConfiguration Delete Bucket Sub("metadataConfiguration"), DeleteBucketMetadataTableConfiguration refused
            UpdateBucketMetadataAnnotationTableConfiguration Put Bucket Sub("metadataAnnotationTable"), UpdateBucketMetadataAnnotationTableConfiguration refused
            UpdateBucketMetadataInventoryTableConfiguration Put Bucket Sub("metadataInventoryTable"), UpdateBucketMetadataInventoryTableConfiguration refused
            UpdateBucketMetadataJournalTableConfiguration Put Bucket Sub("metadataJournalTable"), UpdateBucketMetadataJournalTableConfiguration refused
            GetBucketMetadataTableConfiguration Get Bucket Sub("metadataTable"), GetBucketMetadataTableConfiguration unset
            CreateBucketMetadataTableConfiguration Post Bucket Sub("metadataTable"), CreateBucketMetadataTableConfiguration refused
            DeleteBucketMetadataTableConfiguration Delete Bucket Sub("metadataTable"), DeleteBucketMetadataTableConfiguration refused
            GetBucketMetricsConfiguration Get Bucket SubBoth("metrics", "id"), GetMetricsConfiguration unset
            ListBucketMetricsConfigurations Get Bucket Sub("metrics"), GetMetricsConfiguration unset
            PutBucketMetricsConfiguration Put Bucket Sub("metrics"), PutMetricsConfiguration refused
            DeleteBucketMetricsConfiguration Delete Bucket Sub("metrics"), PutMetricsConfiguration refused
            GetBucketNotificationConfiguration Get Bucket Sub("notification"), GetBucketNotification unset
            PutBucketNotificationConfiguration Put Bucket Sub("notification"), PutBucketNotification refused
            GetObjectLockConfiguration Get Bucket Sub("object-lock"), GetBucketObjectLockConfiguration served
            PutObjectLockConfiguration Put Bucket Sub("object-lock"), PutBucketObjectLockConfiguration served
            GetBucketOwnershipControls Get Bucket Sub("ownershipControls"), GetBucketOwnershipControls served
            PutBucketOwnershipControls Put Bucket Sub("ownershipControls"), PutBucketOwnershipControls served
            DeleteBucketOwnershipControls Delete Bucket Sub("ownershipControls"), PutBucketOwnershipControls refused
            GetBucketPolicy Get Bucket Sub("policy"), GetBucketPolicy served
            PutBucketPolicy Put Bucket Sub("policy"), PutBucketPolicy served
            DeleteBucketPolicy Delete Bucket Sub("policy"), DeleteBucketPolicy served
            GetBucketPolicyStatus Get Bucket Sub("policyStatus"), GetBucketPolicyStatus served
            GetPublicAccessBlock Get Bucket Sub("publicAccessBlock"), GetBucketPublicAccessBlock served
            PutPublicAccessBlock Put Bucket Sub("publicAccessBlock"), PutBucketPublicAccessBlock served
            DeletePublicAccessBlock Delete Bucket Sub("publicAccessBlock"), PutBucketPublicAccessBlock served
            GetBucketReplication Get Bucket Sub("replication"), GetReplicationConfiguration unset
            PutBucketReplication Put Bucket Sub("replication"), PutReplicationConfiguration refused
            DeleteBucketReplication Delete Bucket Sub("replication"), PutReplicationConfiguration refused
            GetBucketRequestPayment Get Bucket Sub("requestPayment"), GetBucketRequestPayment unset
            PutBucketRequestPayment Put Bucket Sub("requestPayment"), PutBucketRequestPayment refused
            CreateSession Get Bucket Sub("session"), CreateSession refused
            GetBucketTagging Get Bucket Sub("tagging"), GetBucketTagging served
            PutBucketTagging Put Bucket Sub("tagging"), PutBucketTagging served
            DeleteBucketTagging Delete Bucket Sub("tagging"), PutBucketTagging served
            GetBucketVersioning Get Bucket Sub("versioning"), GetBucketVersioning served
            PutBucketVersioning Put Bucket Sub("versioning"), PutBucketVersioning served
            GetBucketWebsite Get Bucket Sub("website"), GetBucketWebsite unset
            PutBucketWebsite Put Bucket Sub("website"), PutBucketWebsite refused
            DeleteBucketWebsite Delete Bucket Sub("website"), DeleteBucketWebsite refused

            HeadObject Head Object Plain, GetObject served
            GetObject Get Object Plain, GetObject served
            GetObjectAttributes Get Object Sub("attributes"), GetObjectAttributes served
            PutObject Put Object Plain, PutObject served
            CopyObject Put Object Header("x-amz-copy-source"), PutObject served
            DeleteObject Delete Object Plain, DeleteObject served
            CreateMultipartUpload Post Object Sub("uploads"), PutObject served
            UploadPartCopy Put Object SubBothHeader("partNumber", "uploadId", "x-amz-copy-source"), PutObject served
            UploadPart Put Object SubBoth("partNumber", "uploadId"), PutObject served
            CompleteMultipartUpload Post Object Sub("uploadId"), PutObject served
            AbortMultipartUpload Delete Object Sub("uploadId"), AbortMultipartUpload served
            ListParts Get Object Sub("uploadId"), ListMultipartUploadParts served

            GetObjectAcl Get Object Sub("acl"), GetObjectAcl unset
            PutObjectAcl Put Object Sub("acl"), PutObjectAcl refused
            GetObjectAnnotation Get Object SubBoth("annotation", "annotationName"), GetObjectAnnotation unset
            ListObjectAnnotations Get Object Sub("annotation"), ListObjectAnnotations unset
            PutObjectAnnotation Put Object Sub("annotation"), PutObjectAnnotation refused
            DeleteObjectAnnotation Delete Object Sub("annotation"), DeleteObjectAnnotation refused
            GetObjectLegalHold Get Object Sub("legal-hold"), GetObjectLegalHold served
            PutObjectLegalHold Put Object Sub("legal-hold"), PutObjectLegalHold served
            GetObjectRetention Get Object Sub("retention"), GetObjectRetention served
            PutObjectRetention Put Object Sub("retention"), PutObjectRetention served
            GetObjectTagging Get Object Sub("tagging"), GetObjectTagging served
            PutObjectTagging Put Object Sub("tagging"), PutObjectTagging served
            DeleteObjectTagging Delete Object Sub("tagging"), DeleteObjectTagging served
            GetObjectTorrent Get Object Sub("torrent"), GetObjectTorrent unset
            RenameObject Put Object Sub("renameObject"), PutObject refused
            RestoreObject Post Object Sub("restore"), RestoreObject refused
            SelectObjectContent Post Object Sub("select"), GetObject refused
            UpdateObjectEncryption Put Object Sub("encryption"), UpdateObjectEncryption refused
        }
    };
}

macro_rules! operations {
    ($($name:ident $method:ident $shape:ident $selector:expr, $action:ident $support:ident)*) => {
        /// The operations that S3 names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "AWS's names; see the S3 API reference")]
        pub enum Operation { $($name,)* }

        /// The rows of [`for_each_operation`], in their order.
        pub const OPERATIONS: &[OperationInfo] = &[$(OperationInfo {
            operation: Operation::$name,
            name: stringify!($name),
            method: Verb::$method,
            shape: Shape::$shape,
            selector: $selector,
            action: S3Action::$action,
            support: operations!(@ $support),
        },)*];
    };
    (@ served) => { Support::Served };
    (@ unset) => { Support::Unset };
    (@ refused) => { Support::Refused };
}

use Selector::{Header, Plain, Sub, SubBoth, SubBothHeader, SubValue};

for_each_operation!(operations);

impl Operation {
    /// Returns the operation's row in the table.
    pub const fn info(self) -> &'static OperationInfo {
        &OPERATIONS[self as usize]
    }

    /// Returns AWS's name of the operation.
    pub const fn name(self) -> &'static str {
        self.info().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_at_their_operation() {
        for (index, row) in OPERATIONS.iter().enumerate() {
            assert_eq!(row.operation as usize, index);
            assert_eq!(row.operation.name(), row.name);
        }
    }

    #[test]
    fn no_two_rows_answer_the_same_request() {
        for a in OPERATIONS {
            for b in OPERATIONS.iter().filter(|b| b.operation != a.operation) {
                assert!(
                    (a.method, a.shape, a.selector) != (b.method, b.shape, b.selector),
                    "{} and {}",
                    a.name,
                    b.name
                );
            }
        }
    }
}
