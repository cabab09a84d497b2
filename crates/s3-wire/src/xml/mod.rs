//! XML of requests and answers: one file per operation, and a small reader and a small writer that
//! they use.

mod complete_upload;
mod copy;
mod create_bucket;
mod create_upload;
mod delete_objects;
mod list_buckets;
mod list_objects;
mod list_parts;
mod list_uploads;
mod list_versions;
mod malformed;
mod namespace;
mod object_attributes;
mod object_lock;
mod ownership_controls;
mod policy_status;
mod public_access_block;
mod reader;
mod tagging;
mod versioning;
mod words;
mod writer;

pub use crate::escape::escape;
pub use complete_upload::{CompleteUploadRequest, CompleteUploadResult};
pub use copy::{CopyObjectResult, CopyPartResult};
pub use create_bucket::{CreateBucketConfiguration, location_constraint};
pub use create_upload::InitiateUploadResult;
pub use delete_objects::{
    DeleteEntry, DeleteMarker, DeleteObjectsRequest, DeleteOutcome, NoKey, delete_result,
};
pub use list_buckets::{ListBucketsResult, ListedBucket};
pub use list_objects::{ListObjectsResult, ListObjectsV2Result, ListedObject};
pub use list_parts::{ListPartsResult, ListedPart};
pub use list_uploads::{ListUploadsResult, ListedUpload};
pub use list_versions::{ListObjectVersionsResult, ListedMarker, ListedVersion};
pub use object_attributes::{AttributePart, AttributeParts, AttributePartsPage, ObjectAttributesResult};
pub use object_lock::{
    check_retention, legal_hold, lock_configuration, parse_legal_hold, parse_lock_configuration,
    parse_retention, retention,
};
pub use ownership_controls::{ownership_controls, parse_ownership_controls};
pub use policy_status::policy_status;
pub use public_access_block::{parse_public_access_block, public_access_block};
pub use reader::Document;
pub use tagging::{TaggingRequest, tagging};
pub use versioning::{VersioningStatus, versioning_configuration};
pub use words::{DECLARATION, KeyEncoding, Owner, without_declaration};
pub use writer::Writer;
