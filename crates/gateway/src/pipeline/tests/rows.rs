//! Requests for every operation that is served, and the permissions that each asks for.

use s3_wire::operation::Operation::{self, self as O};

use super::versions::SUSPENDED;

/// A header: its name and value.
pub type Header = (&'static str, &'static str);

/// A request: its operation, method, target, headers and body; its status, and the questions. `ID`
/// in a target stands for the id of an upload, `ETAG` in a body for the ETag of `bytes`. Work that
/// outlives its request asks beforehand whether the requester may list the bucket.
pub struct Row(
    pub Operation,
    pub &'static str,
    pub &'static [Header],
    pub &'static str,
    pub u16,
    pub &'static [&'static str],
);

const REDIRECT: Header = ("x-amz-website-redirect-location", "/there");
const STANDARD: Header = ("x-amz-storage-class", "Standard");
const PART: &str = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>ETAG</ETag></Part></CompleteMultipartUpload>";
const POLICY: &str = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::bkt/*"}}"#;
pub const TWO_KEYS: &str =
    "<Delete><Object><Key>x</Key></Object><Object><Key>y</Key><VersionId>null</VersionId></Object></Delete>";
pub const MD5_OF_GONE: Header = ("content-md5", "3N00xKc8L9hmn0b3UXLwUw==");
pub const MD5_OF_TWO_KEYS: Header = ("content-md5", "mbmxbaOTGF0NTP97fZ6shQ==");
const TAGS: &str = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value/></Tag></TagSet></Tagging>";
const BLOCK: &str = "<PublicAccessBlockConfiguration><BlockPublicPolicy>false</BlockPublicPolicy></PublicAccessBlockConfiguration>";
const MD5_OF_BLOCK: Header = ("content-md5", "G6UqD8jWdgt6IArqhxYfxg==");
const OWNERSHIP: &str = "<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced</ObjectOwnership></Rule></OwnershipControls>";
const MD5_OF_OWNERSHIP: Header = ("content-md5", "mmZ2b+RGf24xHgnBVkr/HA==");
const MD5_OF_TAGS: Header = ("content-md5", "l5ss1GX46WtDe5AhHWK8XA==");
const IRELAND: &str = "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>";
/// The requests, in an order in which the earlier ones make what the later ones need.
pub const ROWS: &[Row] = &[
    Row(O::CreateBucket, "PUT /bkt", &[], "", 200, &["CreateBucket bkt"]),
    Row(
        O::CreateBucket,
        "PUT /other",
        &[],
        IRELAND,
        400,
        &["CreateBucket other LocationConstraint=eu-west-1"],
    ),
    Row(
        O::CreateBucket,
        "PUT /bkt",
        &[
            ("x-amz-acl", "Private"),
            ("x-amz-object-ownership", "BucketOwnerEnforced"),
            ("x-amz-bucket-namespace", "global"),
        ],
        "",
        200,
        &[
            "PutBucketOwnershipControls bkt x-amz-acl=private x-amz-bucket-namespace=global \
             x-amz-object-ownership=BucketOwnerEnforced",
            "CreateBucket bkt x-amz-acl=private x-amz-bucket-namespace=global \
             x-amz-object-ownership=BucketOwnerEnforced",
        ],
    ),
    Row(O::HeadBucket, "HEAD /bkt", &[], "", 200, &["ListBucket bkt"]),
    Row(O::ListBuckets, "GET /", &[], "", 200, &["ListAllMyBuckets "]),
    Row(O::GetBucketLocation, "GET /bkt?location", &[], "", 200, &["GetBucketLocation bkt"]),
    Row(
        O::GetPublicAccessBlock,
        "GET /bkt?publicAccessBlock",
        &[],
        "",
        200,
        &["GetBucketPublicAccessBlock bkt"],
    ),
    // It would block the policy.
    Row(
        O::PutPublicAccessBlock,
        "PUT /bkt?publicAccessBlock",
        &[MD5_OF_BLOCK],
        BLOCK,
        200,
        &["PutBucketPublicAccessBlock bkt", "PutBucketPublicAccessBlock bkt"],
    ),
    Row(
        O::GetBucketOwnershipControls,
        "GET /bkt?ownershipControls",
        &[],
        "",
        200,
        &["GetBucketOwnershipControls bkt"],
    ),
    Row(
        O::PutBucketOwnershipControls,
        "PUT /bkt?ownershipControls",
        &[MD5_OF_OWNERSHIP],
        OWNERSHIP,
        200,
        &["PutBucketOwnershipControls bkt", "PutBucketOwnershipControls bkt"],
    ),
    // Asked for again by the state that is changed; and whether the new policy would allow it.
    Row(
        O::PutBucketPolicy,
        "PUT /bkt?policy",
        &[],
        POLICY,
        204,
        &["PutBucketPolicy bkt", "PutBucketPolicy bkt", "PutBucketPolicy bkt"],
    ),
    Row(O::GetBucketPolicy, "GET /bkt?policy", &[], "", 200, &["GetBucketPolicy bkt"]),
    Row(O::GetBucketPolicyStatus, "GET /bkt?policyStatus", &[], "", 200, &["GetBucketPolicyStatus bkt"]),
    Row(
        O::DeleteBucketPolicy,
        "DELETE /bkt?policy",
        &[],
        "",
        204,
        &["DeleteBucketPolicy bkt", "DeleteBucketPolicy bkt"],
    ),
    Row(
        O::DeletePublicAccessBlock,
        "DELETE /bkt?publicAccessBlock",
        &[],
        "",
        204,
        &["PutBucketPublicAccessBlock bkt", "PutBucketPublicAccessBlock bkt"],
    ),
    Row(
        O::PutObject,
        "PUT /bkt/k",
        &[REDIRECT, STANDARD, ("if-none-match", "*")],
        "bytes",
        200,
        &["PutObject bkt/k ObjectCreationOperation=true if-none-match=* x-amz-storage-class=STANDARD \
           x-amz-website-redirect-location=/there"],
    ),
    Row(
        O::PutObject,
        "PUT /bkt/k",
        &[("if-match", "\"00000000000000000000000000000000\"")],
        "bytes",
        412,
        &[
            "GetObject bkt/k ObjectCreationOperation=true if-match=\"00000000000000000000000000000000\"",
            "PutObject bkt/k ObjectCreationOperation=true if-match=\"00000000000000000000000000000000\"",
        ],
    ),
    Row(
        O::PutObjectTagging,
        "PUT /bkt/k?tagging",
        &[MD5_OF_TAGS],
        TAGS,
        200,
        &[
            "PutObjectTagging bkt/k RequestObjectTag/=? RequestObjectTagKeys=?",
            "PutObjectTagging bkt/k RequestObjectTag/=a,1,b, RequestObjectTagKeys=a,b",
        ],
    ),
    Row(O::GetObjectTagging, "GET /bkt/k?tagging", &[], "", 200, &["GetObjectTagging bkt/k"]),
    Row(
        O::DeleteObjectTagging,
        "DELETE /bkt/k?tagging&versionId=null",
        &[],
        "",
        204,
        &["DeleteObjectVersionTagging bkt/k VersionId=null"],
    ),
    Row(
        O::PutBucketTagging,
        "PUT /bkt?tagging",
        &[MD5_OF_TAGS],
        TAGS,
        204,
        &["PutBucketTagging bkt", "PutBucketTagging bkt"],
    ),
    Row(O::GetBucketTagging, "GET /bkt?tagging", &[], "", 200, &["GetBucketTagging bkt"]),
    Row(
        O::DeleteBucketTagging,
        "DELETE /bkt?tagging",
        &[],
        "",
        204,
        &["PutBucketTagging bkt", "PutBucketTagging bkt"],
    ),
    Row(O::GetObject, "GET /bkt/k", &[], "", 200, &["GetObject bkt/k"]),
    Row(O::GetObject, "GET /bkt/k?versionId=null", &[], "", 200, &["GetObjectVersion bkt/k VersionId=null"]),
    Row(O::HeadObject, "HEAD /bkt/k", &[], "", 200, &["GetObject bkt/k"]),
    Row(
        O::HeadObject,
        "HEAD /bkt/k?versionId=null",
        &[],
        "",
        200,
        &["GetObjectVersion bkt/k VersionId=null"],
    ),
    Row(
        O::GetObjectAttributes,
        "GET /bkt/k?attributes",
        &[("x-amz-object-attributes", "ETag")],
        "",
        200,
        &["GetObject bkt/k", "GetObjectAttributes bkt/k"],
    ),
    Row(O::ListObjects, "GET /bkt", &[], "", 200, &["ListBucket bkt"]),
    Row(O::ListObjects, "GET /bkt?prefix=", &[], "", 200, &["ListBucket bkt prefix="]),
    Row(
        O::ListObjectsV2,
        "GET /bkt?list-type=2&prefix=p%2F&delimiter=%2F&max-keys=7",
        &[],
        "",
        200,
        &["ListBucket bkt delimiter=/ max-keys=7 prefix=p/"],
    ),
    Row(
        O::ListObjectVersions,
        "GET /bkt?versions&prefix=p&delimiter=",
        &[],
        "",
        200,
        &["ListBucketVersions bkt prefix=p"],
    ),
    Row(
        O::CopyObject,
        "PUT /bkt/copy",
        &[("x-amz-copy-source", "/bkt/k"), ("x-amz-metadata-directive", "REPLACE"), STANDARD],
        "",
        200,
        &[
            "PutObject bkt/copy ObjectCreationOperation=true x-amz-copy-source=bkt/k \
           x-amz-metadata-directive=REPLACE x-amz-storage-class=STANDARD",
            "GetObject bkt/k",
            "GetObjectTagging bkt/k",
            "PutObjectTagging bkt/copy ObjectCreationOperation=true RequestObjectTag/=? RequestObjectTagKeys=? \
           x-amz-copy-source=bkt/k x-amz-metadata-directive=REPLACE x-amz-storage-class=STANDARD",
            "ListBucket bkt prefix=k",
            "ListBucket bkt prefix=copy",
        ],
    ),
    Row(
        O::CopyObject,
        "PUT /bkt/copy",
        &[("x-amz-copy-source", "bkt/k?versionId=null")],
        "",
        200,
        &[
            "PutObject bkt/copy ObjectCreationOperation=true x-amz-copy-source=bkt/k",
            "GetObjectVersion bkt/k VersionId=null",
            "GetObjectVersionTagging bkt/k VersionId=null",
            "PutObjectTagging bkt/copy ObjectCreationOperation=true RequestObjectTag/=? RequestObjectTagKeys=? \
           x-amz-copy-source=bkt/k",
            "ListBucket bkt prefix=k",
            "ListBucket bkt prefix=copy",
        ],
    ),
    Row(
        O::CopyObject,
        "PUT /bkt/copy",
        &[("x-amz-copy-source", "bkt/k"), ("x-amz-tagging-directive", "REPLACE"), ("x-amz-tagging", "a=1")],
        "",
        200,
        &[
            "PutObject bkt/copy ObjectCreationOperation=true RequestObjectTag/=a,1 RequestObjectTagKeys=a \
           x-amz-copy-source=bkt/k",
            "PutObjectTagging bkt/copy ObjectCreationOperation=true RequestObjectTag/=a,1 RequestObjectTagKeys=a \
           x-amz-copy-source=bkt/k",
            "GetObject bkt/k",
            "ListBucket bkt prefix=k",
            "ListBucket bkt prefix=copy",
        ],
    ),
    Row(
        O::CreateMultipartUpload,
        "POST /bkt/u?uploads",
        &[("x-amz-tagging", "a=1")],
        "",
        200,
        &[
            "PutObject bkt/u ObjectCreationOperation=false RequestObjectTag/=a,1 RequestObjectTagKeys=a",
            "PutObjectTagging bkt/u ObjectCreationOperation=false RequestObjectTag/=a,1 RequestObjectTagKeys=a",
        ],
    ),
    Row(
        O::CreateMultipartUpload,
        "POST /bkt/u?uploads",
        &[STANDARD],
        "",
        200,
        &["PutObject bkt/u ObjectCreationOperation=false x-amz-storage-class=STANDARD"],
    ),
    Row(O::ListMultipartUploads, "GET /bkt?uploads", &[], "", 200, &["ListBucketMultipartUploads bkt"]),
    Row(
        O::UploadPartCopy,
        "PUT /bkt/u?partNumber=1&uploadId=ID",
        &[("x-amz-copy-source", "bkt/k")],
        "",
        200,
        &[
            "PutObject bkt/u ObjectCreationOperation=false x-amz-copy-source=bkt/k",
            "GetObject bkt/k",
            "ListBucket bkt prefix=k",
            "ListBucket bkt prefix=u",
        ],
    ),
    Row(
        O::UploadPart,
        "PUT /bkt/u?partNumber=1&uploadId=ID",
        &[],
        "bytes",
        200,
        &["PutObject bkt/u ObjectCreationOperation=false"],
    ),
    Row(O::ListParts, "GET /bkt/u?uploadId=ID", &[], "", 200, &["ListMultipartUploadParts bkt/u"]),
    Row(
        O::CompleteMultipartUpload,
        "POST /bkt/u?uploadId=ID",
        &[("if-none-match", "*")],
        PART,
        200,
        &["PutObject bkt/u ObjectCreationOperation=true if-none-match=*", "ListBucket bkt prefix=u"],
    ),
    Row(O::AbortMultipartUpload, "DELETE /bkt/u?uploadId=ID", &[], "", 404, &["AbortMultipartUpload bkt/u"]),
    Row(
        O::DeleteObjects,
        "POST /bkt?delete",
        &[MD5_OF_TWO_KEYS],
        TWO_KEYS,
        200,
        &["DeleteObject bkt/x", "DeleteObjectVersion bkt/y VersionId=null"],
    ),
    Row(
        O::DeleteObjects,
        "POST /bkt?delete",
        &[("content-md5", "ivjUhzHqDhzR/bqJVVTZOg==")],
        "<Delete><Object><Key>x</Key><ETag>0</ETag></Object></Delete>",
        200,
        &["DeleteObject bkt/x if-match=\"0\"", "GetObject bkt/x if-match=\"0\"", "ListBucket bkt prefix=x"],
    ),
    Row(O::DeleteObject, "DELETE /bkt/k", &[("if-match", "*")], "", 204, &["DeleteObject bkt/k if-match=*"]),
    Row(
        O::DeleteObject,
        "DELETE /bkt/k",
        &[("if-match", "\"0\"")],
        "",
        404,
        &["DeleteObject bkt/k if-match=\"0\"", "GetObject bkt/k if-match=\"0\"", "ListBucket bkt prefix=k"],
    ),
    Row(O::DeleteObject, "DELETE /bkt/copy", &[], "", 204, &["DeleteObject bkt/copy"]),
    Row(
        O::DeleteObject,
        "DELETE /bkt/k?versionId=null",
        &[],
        "",
        204,
        &["DeleteObjectVersion bkt/k VersionId=null"],
    ),
    Row(O::DeleteObject, "DELETE /bkt/u", &[], "", 204, &["DeleteObject bkt/u"]),
    // Once the bucket is empty: a deletion would leave a delete marker from then on.
    Row(O::GetBucketVersioning, "GET /bkt?versioning", &[], "", 200, &["GetBucketVersioning bkt"]),
    Row(
        O::PutBucketVersioning,
        "PUT /bkt?versioning",
        &[],
        SUSPENDED,
        200,
        &["PutBucketVersioning bkt", "PutBucketVersioning bkt"],
    ),
    Row(O::DeleteBucket, "DELETE /bkt", &[], "", 204, &["DeleteBucket bkt"]),
    Row(
        O::CreateBucket,
        "PUT /locks",
        &[("x-amz-bucket-object-lock-enabled", "True")],
        "",
        200,
        &["CreateBucket locks", "PutBucketObjectLockConfiguration locks", "PutBucketVersioning locks"],
    ),
    Row(
        O::PutObjectLockConfiguration,
        "PUT /locks?object-lock",
        &[("content-md5", "CJIyG/nMmkjfQ1+FuEdwUA==")],
        "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>",
        200,
        &["PutBucketObjectLockConfiguration locks", "PutBucketObjectLockConfiguration locks"],
    ),
    Row(
        O::GetObjectLockConfiguration,
        "GET /locks?object-lock",
        &[],
        "",
        200,
        &["GetBucketObjectLockConfiguration locks"],
    ),
    Row(
        O::PutObject,
        "PUT /locks/k",
        &[("content-md5", "SzpiGLs+OnMD6KFxpg/Pkg=="), ("x-amz-object-lock-legal-hold", "OFF")],
        "bytes",
        200,
        &[
            "PutObject locks/k ObjectCreationOperation=true object-lock-legal-hold=OFF",
            "PutObjectLegalHold locks/k ObjectCreationOperation=true object-lock-legal-hold=OFF",
        ],
    ),
    // Their headers are shown to those who may read the lock.
    Row(O::HeadObject, "HEAD /locks/k", &[], "", 200, &["GetObject locks/k", "GetObjectLegalHold locks/k"]),
    Row(
        O::PutObjectLegalHold,
        "PUT /locks/k?legal-hold",
        &[("content-md5", "An8G3mv4SfhAibzslQjGDw==")],
        "<LegalHold><Status>OFF</Status></LegalHold>",
        200,
        &[
            "PutObjectLegalHold locks/k object-lock-legal-hold=? object-lock-mode=? \
             object-lock-remaining-retention-days=? object-lock-retain-until-date=?",
            "PutObjectLegalHold locks/k object-lock-legal-hold=OFF",
        ],
    ),
    Row(O::GetObjectLegalHold, "GET /locks/k?legal-hold", &[], "", 200, &["GetObjectLegalHold locks/k"]),
    Row(
        O::PutObjectRetention,
        "PUT /locks/k?retention",
        &[("content-md5", "X/sLHQnExMVAFnh0GZsWMQ=="), ("x-amz-bypass-governance-retention", "true")],
        "<Retention/>",
        200,
        &[
            "PutObjectRetention locks/k object-lock-legal-hold=? object-lock-mode=? \
             object-lock-remaining-retention-days=? object-lock-retain-until-date=?",
            "PutObjectRetention locks/k",
            "BypassGovernanceRetention locks/k",
        ],
    ),
    Row(O::GetObjectRetention, "GET /locks/k?retention", &[], "", 404, &["GetObjectRetention locks/k"]),
    Row(
        O::DeleteObject,
        "DELETE /locks/k?versionId=null",
        &[("x-amz-bypass-governance-retention", "true")],
        "",
        204,
        &["DeleteObjectVersion locks/k VersionId=null", "BypassGovernanceRetention locks/k VersionId=null"],
    ),
];
