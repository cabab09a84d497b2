//! The limits of documents, with the error that each gives.

/// The size of a bucket policy in bytes, without white space between values
/// (`Fault::TooLong`). Source: "Bucket policies" in the S3 User Guide.
pub const BUCKET_BYTES_MAX: usize = 20_480;
/// The size of a managed policy in characters, without white space (`Fault::TooLong`). Source of
/// this and the next: "IAM and AWS STS quotas" in the IAM User Guide.
pub const MANAGED_CHARS_MAX: usize = 6_144;
/// The size of all inline policies of a user.
pub const USER_CHARS_MAX: usize = 2_048;
/// The size of all inline policies of a group.
pub const GROUP_CHARS_MAX: usize = 5_120;
/// The size of all inline policies of a role.
pub const ROLE_CHARS_MAX: usize = 10_240;
/// The size of a session policy.
pub const SESSION_CHARS_MAX: usize = 2_048;
/// The size of a trust policy.
pub const TRUST_CHARS_MAX: usize = 2_048;

/// The size of a document with all its white space, before it is read (`Fault::TooLong`). IAM's
/// API takes no longer ones.
pub const DOCUMENT_BYTES_MAX: usize = 131_072;
/// The depth of objects and arrays; a policy needs 6 (`Fault::TooDeep`).
pub const DEPTH_MAX: usize = 16;

/// The variables in one value (`Fault::Pattern`).
pub const VARIABLES_MAX: usize = 8;
/// The characters of a piece between two `*` that has a `?` or a variable (`Fault::Pattern`): such
/// a piece is tried at each place, so that matching takes the product of both lengths.
pub const FLOATING_CHARS_MAX: usize = 128;

const _: () = assert!(BUCKET_BYTES_MAX < DOCUMENT_BYTES_MAX && ROLE_CHARS_MAX < DOCUMENT_BYTES_MAX);
