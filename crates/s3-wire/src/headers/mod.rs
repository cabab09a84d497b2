//! Request headers and query arguments as types, and response headers: one file for each subject.
//!
//! The treatment of a value that cannot be understood depends on the header. It is an error if the
//! header makes a request safer (a condition, a digest). It is ignored, as by S3, if the header
//! only shapes the answer (`Range`, dates of reads).

mod attributes;
mod checksum;
mod conditions;
mod copy_source;
mod list_versions;
mod listing;
mod metadata;
mod object_lock;
mod range;
mod response;
mod semantics;
mod tagging;
mod text;
mod token;
mod words;

pub use attributes::{AttributesRequest, no_attributes};
pub use checksum::{
    ChecksumRequest, CompleteChecksum, Md5Of, checksum_mode_enabled, complete_checksum, copy_checksum,
    upload_checksum, verify_checksum, verify_content_md5,
};
pub use conditions::{
    copy_source_conditions, delete_conditions, if_match_initiated_time, read_conditions, write_conditions,
};
pub use copy_source::{CopySourceRef, copy_source};
pub use list_versions::{ListVersions, invalid_version_marker};
pub(crate) use listing::check_integer;
pub use listing::{
    ListBuckets, ListObjects, ListObjectsV2, ListParts, ListUploads, check_optional_attributes, page_items,
};
pub(crate) use metadata::names_framing;
pub use metadata::{MetadataDirective, metadata_directive, object_metadata, redirect_location};
pub(crate) use object_lock::IN_THE_PAST;
pub use object_lock::{bypass_governance, bypass_without_lock, lock_needs_digest, object_lock};
pub use range::{Selection, content_range, copy_source_range, part_number, range, selection};
pub use response::{ObjectHeaders, ResponseOverrides, append_checksum, etag_value};
pub use semantics::{
    check_value, describes_body, expected_bucket_owner, hoist_query, is_hoisted, is_of_signature,
    source_expected_bucket_owner, stands_for_header,
};
pub use tagging::{TaggingDirective, object_tags, tagging_directive};
pub use text::{all_values, first_value, has};
pub use token::ListStart;
