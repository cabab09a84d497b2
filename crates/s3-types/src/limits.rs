//! Limits that S3 itself sets on names and objects.

/// The longest object key, in bytes of UTF-8.
pub const KEY_BYTES_MAX: usize = 1024;
/// The longest upload id, in bytes.
pub const UPLOAD_ID_BYTES_MAX: usize = 1024;
/// The longest version id, in bytes.
pub const VERSION_ID_BYTES_MAX: usize = 1024;
/// The shortest bucket name, in characters.
pub const BUCKET_NAME_MIN: usize = 3;
/// The longest bucket name, in characters.
pub const BUCKET_NAME_MAX: usize = 63;
/// The smallest part of a multipart upload, except for the last, in bytes.
pub const PART_BYTES_MIN: u64 = 5 << 20;
/// The largest part, and the largest object that one PutObject stores, in bytes.
pub const PART_BYTES_MAX: u64 = 5 << 30;
/// The largest part number; the smallest is 1.
pub const PARTS_MAX: u32 = 10_000;
/// The largest object, in bytes.
pub const OBJECT_BYTES_MAX: u64 = 50 << 40;
/// The largest size of all names and values of `x-amz-meta-*` together, in bytes.
pub const USER_METADATA_BYTES_MAX: usize = 2048;
/// The largest number of tags of an object.
pub const OBJECT_TAGS_MAX: usize = 10;
/// The largest number of tags of a bucket.
pub const BUCKET_TAGS_MAX: usize = 50;
/// The longest key of a tag, in code units of UTF-16.
pub const TAG_KEY_CHARS_MAX: usize = 128;
/// The longest value of a tag, in code units of UTF-16.
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// The longest default retention of Object Lock that is given in days.
pub const RETENTION_DAYS_MAX: u32 = 36_500;
/// The longest default retention of Object Lock that is given in years.
pub const RETENTION_YEARS_MAX: u32 = 100;

const _: () = assert!(OBJECT_BYTES_MAX <= PART_BYTES_MAX * PARTS_MAX as u64 * 2);
const _: () = assert!(PART_BYTES_MIN < PART_BYTES_MAX);
