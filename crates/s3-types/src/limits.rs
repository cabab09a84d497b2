//! Limits that S3 itself sets on names and objects.

/// Longest object key, in UTF-8 bytes.
pub const KEY_BYTES_MAX: usize = 1024;
/// An upload id.
pub const UPLOAD_ID_BYTES_MAX: usize = 1024;
/// A version id.
pub const VERSION_ID_BYTES_MAX: usize = 1024;
/// Bucket names are 3 to 63 characters.
pub const BUCKET_NAME_MIN: usize = 3;
/// See [`BUCKET_NAME_MIN`].
pub const BUCKET_NAME_MAX: usize = 63;
/// Smallest part of a multipart upload, but for the last.
pub const PART_BYTES_MIN: u64 = 5 << 20;
/// Largest part, and the largest object that one PutObject may make.
pub const PART_BYTES_MAX: u64 = 5 << 30;
/// Part numbers run from 1 to this.
pub const PARTS_MAX: u32 = 10_000;
/// Largest object.
pub const OBJECT_BYTES_MAX: u64 = 50 << 40;
/// Names and values of `x-amz-meta-*` together.
pub const USER_METADATA_BYTES_MAX: usize = 2048;

const _: () = assert!(OBJECT_BYTES_MAX <= PART_BYTES_MAX * PARTS_MAX as u64 * 2);
const _: () = assert!(PART_BYTES_MIN < PART_BYTES_MAX);
