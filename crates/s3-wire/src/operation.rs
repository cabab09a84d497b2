//! The operation table: everything that the S3 API model names, with how a request asks for it.

use http::Method;

use crate::target::Shape;

/// What distinguishes an operation from the others of its method and shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector {
    /// Nothing: the plain verb.
    Plain,
    /// A query parameter is there.
    Sub(&'static str),
    /// A query parameter is there with this value.
    SubValue(&'static str, &'static str),
    /// Two query parameters are there.
    SubBoth(&'static str, &'static str),
    /// A header is there.
    Header(&'static str),
    /// Two query parameters and a header are there.
    SubBothHeader(&'static str, &'static str, &'static str),
}

/// A row of the operation table.
#[derive(Debug, Clone, Copy)]
pub struct OperationInfo {
    /// The operation.
    pub operation: Operation,
    /// AWS's name for it.
    pub name: &'static str,
    /// Its method.
    pub method: Verb,
    /// What it is about.
    pub shape: Shape,
    /// What else asks for it.
    pub selector: Selector,
    /// The IAM action that allows it (Service Authorization Reference, "Actions for Amazon S3").
    pub action: &'static str,
    /// What this server does of it.
    pub support: Support,
}

/// What this server does of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Performs it.
    Served,
    /// Answers as S3 does where nothing was ever configured: nothing can be, here
    /// ([`crate::unset`]).
    Unset,
    /// Refuses it: 501 `NotImplemented`.
    Refused,
}

/// The methods that S3 has operations for.
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

    /// `None` for a method that no operation has.
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

    /// The method's name.
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

/// The operation table. Hands its rows to another macro, which makes what it likes of them: an enum,
/// a match over all operations.
///
/// A row has an operation's name, method and shape, what else asks for it, the IAM action that
/// allows it, and what is done of it ([`Support`]): `served`, `unset` or `refused`. Rows of one
/// method and shape are matched in their order.
#[macro_export]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            ListBuckets Get Service Plain, "s3:ListAllMyBuckets" served

            CreateBucket Put Bucket Plain, "s3:CreateBucket" served
            HeadBucket Head Bucket Plain, "s3:ListBucket" served
            DeleteBucket Delete Bucket Plain, "s3:DeleteBucket" served
            GetBucketLocation Get Bucket Sub("location"), "s3:GetBucketLocation" served
            ListMultipartUploads Get Bucket Sub("uploads"), "s3:ListBucketMultipartUploads" served
            ListObjectVersions Get Bucket Sub("versions"), "s3:ListBucketVersions" served
            ListObjectsV2 Get Bucket SubValue("list-type", "2"), "s3:ListBucket" served
            ListObjects Get Bucket Plain, "s3:ListBucket" served
            DeleteObjects Post Bucket Sub("delete"), "s3:DeleteObject" served
            PostObject Post Bucket Plain, "s3:PutObject" refused

            GetBucketAbac Get Bucket Sub("abac"), "s3:GetBucketAbac" unset
            PutBucketAbac Put Bucket Sub("abac"), "s3:PutBucketAbac" refused
            GetBucketAccelerateConfiguration Get Bucket Sub("accelerate"), "s3:GetAccelerateConfiguration" unset
            PutBucketAccelerateConfiguration Put Bucket Sub("accelerate"), "s3:PutAccelerateConfiguration" refused
            GetBucketAcl Get Bucket Sub("acl"), "s3:GetBucketAcl" unset
            PutBucketAcl Put Bucket Sub("acl"), "s3:PutBucketAcl" refused
            GetBucketAnalyticsConfiguration Get Bucket SubBoth("analytics", "id"), "s3:GetAnalyticsConfiguration" unset
            ListBucketAnalyticsConfigurations Get Bucket Sub("analytics"), "s3:GetAnalyticsConfiguration" unset
            PutBucketAnalyticsConfiguration Put Bucket Sub("analytics"), "s3:PutAnalyticsConfiguration" refused
            DeleteBucketAnalyticsConfiguration Delete Bucket Sub("analytics"), "s3:PutAnalyticsConfiguration" refused
            GetBucketCors Get Bucket Sub("cors"), "s3:GetBucketCORS" unset
            PutBucketCors Put Bucket Sub("cors"), "s3:PutBucketCORS" refused
            DeleteBucketCors Delete Bucket Sub("cors"), "s3:PutBucketCORS" refused
            GetBucketEncryption Get Bucket Sub("encryption"), "s3:GetEncryptionConfiguration" unset
            PutBucketEncryption Put Bucket Sub("encryption"), "s3:PutEncryptionConfiguration" refused
            DeleteBucketEncryption Delete Bucket Sub("encryption"), "s3:PutEncryptionConfiguration" refused
            GetBucketIntelligentTieringConfiguration Get Bucket SubBoth("intelligent-tiering", "id"), "s3:GetIntelligentTieringConfiguration" unset
            ListBucketIntelligentTieringConfigurations Get Bucket Sub("intelligent-tiering"), "s3:GetIntelligentTieringConfiguration" unset
            PutBucketIntelligentTieringConfiguration Put Bucket Sub("intelligent-tiering"), "s3:PutIntelligentTieringConfiguration" refused
            DeleteBucketIntelligentTieringConfiguration Delete Bucket Sub("intelligent-tiering"), "s3:PutIntelligentTieringConfiguration" refused
            GetBucketInventoryConfiguration Get Bucket SubBoth("inventory", "id"), "s3:GetInventoryConfiguration" unset
            ListBucketInventoryConfigurations Get Bucket Sub("inventory"), "s3:GetInventoryConfiguration" unset
            PutBucketInventoryConfiguration Put Bucket Sub("inventory"), "s3:PutInventoryConfiguration" refused
            DeleteBucketInventoryConfiguration Delete Bucket Sub("inventory"), "s3:PutInventoryConfiguration" refused
            GetBucketLifecycleConfiguration Get Bucket Sub("lifecycle"), "s3:GetLifecycleConfiguration" unset
            PutBucketLifecycleConfiguration Put Bucket Sub("lifecycle"), "s3:PutLifecycleConfiguration" refused
            DeleteBucketLifecycle Delete Bucket Sub("lifecycle"), "s3:PutLifecycleConfiguration" refused
            GetBucketLogging Get Bucket Sub("logging"), "s3:GetBucketLogging" unset
            PutBucketLogging Put Bucket Sub("logging"), "s3:PutBucketLogging" refused
            GetBucketMetadataConfiguration Get Bucket Sub("metadataConfiguration"), "s3:GetBucketMetadataTableConfiguration" unset
            CreateBucketMetadataConfiguration Post Bucket Sub("metadataConfiguration"), "s3:CreateBucketMetadataTableConfiguration" refused
            DeleteBucketMetadataConfiguration Delete Bucket Sub("metadataConfiguration"), "s3:DeleteBucketMetadataTableConfiguration" refused
            UpdateBucketMetadataAnnotationTableConfiguration Put Bucket Sub("metadataAnnotationTable"), "s3:UpdateBucketMetadataAnnotationTableConfiguration" refused
            UpdateBucketMetadataInventoryTableConfiguration Put Bucket Sub("metadataInventoryTable"), "s3:UpdateBucketMetadataInventoryTableConfiguration" refused
            UpdateBucketMetadataJournalTableConfiguration Put Bucket Sub("metadataJournalTable"), "s3:UpdateBucketMetadataJournalTableConfiguration" refused
            GetBucketMetadataTableConfiguration Get Bucket Sub("metadataTable"), "s3:GetBucketMetadataTableConfiguration" unset
            CreateBucketMetadataTableConfiguration Post Bucket Sub("metadataTable"), "s3:CreateBucketMetadataTableConfiguration" refused
            DeleteBucketMetadataTableConfiguration Delete Bucket Sub("metadataTable"), "s3:DeleteBucketMetadataTableConfiguration" refused
            GetBucketMetricsConfiguration Get Bucket SubBoth("metrics", "id"), "s3:GetMetricsConfiguration" unset
            ListBucketMetricsConfigurations Get Bucket Sub("metrics"), "s3:GetMetricsConfiguration" unset
            PutBucketMetricsConfiguration Put Bucket Sub("metrics"), "s3:PutMetricsConfiguration" refused
            DeleteBucketMetricsConfiguration Delete Bucket Sub("metrics"), "s3:PutMetricsConfiguration" refused
            GetBucketNotificationConfiguration Get Bucket Sub("notification"), "s3:GetBucketNotification" unset
            PutBucketNotificationConfiguration Put Bucket Sub("notification"), "s3:PutBucketNotification" refused
            GetObjectLockConfiguration Get Bucket Sub("object-lock"), "s3:GetBucketObjectLockConfiguration" unset
            PutObjectLockConfiguration Put Bucket Sub("object-lock"), "s3:PutBucketObjectLockConfiguration" refused
            GetBucketOwnershipControls Get Bucket Sub("ownershipControls"), "s3:GetBucketOwnershipControls" unset
            PutBucketOwnershipControls Put Bucket Sub("ownershipControls"), "s3:PutBucketOwnershipControls" refused
            DeleteBucketOwnershipControls Delete Bucket Sub("ownershipControls"), "s3:PutBucketOwnershipControls" refused
            GetBucketPolicy Get Bucket Sub("policy"), "s3:GetBucketPolicy" unset
            PutBucketPolicy Put Bucket Sub("policy"), "s3:PutBucketPolicy" refused
            DeleteBucketPolicy Delete Bucket Sub("policy"), "s3:DeleteBucketPolicy" refused
            GetBucketPolicyStatus Get Bucket Sub("policyStatus"), "s3:GetBucketPolicyStatus" unset
            GetPublicAccessBlock Get Bucket Sub("publicAccessBlock"), "s3:GetBucketPublicAccessBlock" unset
            PutPublicAccessBlock Put Bucket Sub("publicAccessBlock"), "s3:PutBucketPublicAccessBlock" refused
            DeletePublicAccessBlock Delete Bucket Sub("publicAccessBlock"), "s3:PutBucketPublicAccessBlock" refused
            GetBucketReplication Get Bucket Sub("replication"), "s3:GetReplicationConfiguration" unset
            PutBucketReplication Put Bucket Sub("replication"), "s3:PutReplicationConfiguration" refused
            DeleteBucketReplication Delete Bucket Sub("replication"), "s3:PutReplicationConfiguration" refused
            GetBucketRequestPayment Get Bucket Sub("requestPayment"), "s3:GetBucketRequestPayment" unset
            PutBucketRequestPayment Put Bucket Sub("requestPayment"), "s3:PutBucketRequestPayment" refused
            CreateSession Get Bucket Sub("session"), "s3express:CreateSession" refused
            GetBucketTagging Get Bucket Sub("tagging"), "s3:GetBucketTagging" unset
            PutBucketTagging Put Bucket Sub("tagging"), "s3:PutBucketTagging" refused
            DeleteBucketTagging Delete Bucket Sub("tagging"), "s3:PutBucketTagging" refused
            GetBucketVersioning Get Bucket Sub("versioning"), "s3:GetBucketVersioning" unset
            PutBucketVersioning Put Bucket Sub("versioning"), "s3:PutBucketVersioning" refused
            GetBucketWebsite Get Bucket Sub("website"), "s3:GetBucketWebsite" unset
            PutBucketWebsite Put Bucket Sub("website"), "s3:PutBucketWebsite" refused
            DeleteBucketWebsite Delete Bucket Sub("website"), "s3:DeleteBucketWebsite" refused

            HeadObject Head Object Plain, "s3:GetObject" served
            GetObject Get Object Plain, "s3:GetObject" served
            GetObjectAttributes Get Object Sub("attributes"), "s3:GetObjectAttributes" served
            PutObject Put Object Plain, "s3:PutObject" served
            CopyObject Put Object Header("x-amz-copy-source"), "s3:PutObject" served
            DeleteObject Delete Object Plain, "s3:DeleteObject" served
            CreateMultipartUpload Post Object Sub("uploads"), "s3:PutObject" served
            UploadPartCopy Put Object SubBothHeader("partNumber", "uploadId", "x-amz-copy-source"), "s3:PutObject" served
            UploadPart Put Object SubBoth("partNumber", "uploadId"), "s3:PutObject" served
            CompleteMultipartUpload Post Object Sub("uploadId"), "s3:PutObject" served
            AbortMultipartUpload Delete Object Sub("uploadId"), "s3:AbortMultipartUpload" served
            ListParts Get Object Sub("uploadId"), "s3:ListMultipartUploadParts" served

            GetObjectAcl Get Object Sub("acl"), "s3:GetObjectAcl" unset
            PutObjectAcl Put Object Sub("acl"), "s3:PutObjectAcl" refused
            GetObjectAnnotation Get Object SubBoth("annotation", "annotationName"), "s3:GetObjectAnnotation" unset
            ListObjectAnnotations Get Object Sub("annotation"), "s3:ListObjectAnnotations" unset
            PutObjectAnnotation Put Object Sub("annotation"), "s3:PutObjectAnnotation" refused
            DeleteObjectAnnotation Delete Object Sub("annotation"), "s3:DeleteObjectAnnotation" refused
            GetObjectLegalHold Get Object Sub("legal-hold"), "s3:GetObjectLegalHold" unset
            PutObjectLegalHold Put Object Sub("legal-hold"), "s3:PutObjectLegalHold" refused
            GetObjectRetention Get Object Sub("retention"), "s3:GetObjectRetention" unset
            PutObjectRetention Put Object Sub("retention"), "s3:PutObjectRetention" refused
            GetObjectTagging Get Object Sub("tagging"), "s3:GetObjectTagging" unset
            PutObjectTagging Put Object Sub("tagging"), "s3:PutObjectTagging" refused
            DeleteObjectTagging Delete Object Sub("tagging"), "s3:DeleteObjectTagging" refused
            GetObjectTorrent Get Object Sub("torrent"), "s3:GetObjectTorrent" unset
            RenameObject Put Object Sub("renameObject"), "s3:PutObject" refused
            RestoreObject Post Object Sub("restore"), "s3:RestoreObject" refused
            SelectObjectContent Post Object Sub("select"), "s3:GetObject" refused
            UpdateObjectEncryption Put Object Sub("encryption"), "s3:UpdateObjectEncryption" refused
        }
    };
}

macro_rules! operations {
    ($($name:ident $method:ident $shape:ident $selector:expr, $action:literal $support:ident)*) => {
        /// Everything that S3 names.
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
            action: $action,
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
    /// Its row in the table.
    pub const fn info(self) -> &'static OperationInfo {
        &OPERATIONS[self as usize]
    }

    /// AWS's name for it.
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
