//! Request headers and query arguments as types, and response headers: one file per subject.
//!
//! Where a header makes a request safer (a condition, a digest), a value that cannot be understood
//! is an error; where it only shapes the answer (`Range`, dates of reads), it is ignored, as S3
//! does.

mod attributes;
mod checksum;
mod conditions;
mod copy_source;
mod list_versions;
mod listing;
mod metadata;
mod range;
mod response;
mod semantics;
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
pub use list_versions::ListVersions;
pub(crate) use listing::check_integer;
pub use listing::{
    ListBuckets, ListObjects, ListObjectsV2, ListParts, ListUploads, check_optional_attributes, page_items,
};
pub(crate) use metadata::names_framing;
pub use metadata::{MetadataDirective, metadata_directive, object_metadata, redirect_location};
pub use range::{Selection, content_range, copy_source_range, part_number, range, selection};
pub use response::{ObjectHeaders, ResponseOverrides, append_checksum, etag_value};
pub use semantics::{
    check_value, describes_body, expected_bucket_owner, hoist_query, is_hoisted, is_of_signature,
    source_expected_bucket_owner, stands_for_header,
};
pub use token::ListStart;

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};

/// True if a header is there, by its name in lower case. Looking through the few names there are
/// costs less than the map's own search, which hashes and checks the name.
pub fn has(headers: &HeaderMap, name: &str) -> bool {
    headers.keys().any(|key| key.as_str() == name)
}

/// A value's characters: UTF-8 where it is that, else ISO 8859-1 (RFC 9110, section 5.5).
fn decode(value: &HeaderValue) -> Cow<'_, str> {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

/// The first value of `name`, trimmed; `None` if there is none or it has characters that no such
/// value has.
fn ascii<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The first value of `name`, trimmed, with whatever characters it has.
fn lossless<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    headers.get(name).map(|value| match decode(value) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    })
}

/// All values of `name`, joined by commas; `None` if there is none.
fn joined<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let mut values = headers.get_all(name).iter().map(decode);
    let first = values.next()?;
    Some(values.fold(first, |mut all, next| {
        all.to_mut().push(',');
        all.to_mut().push_str(&next);
        all
    }))
}
