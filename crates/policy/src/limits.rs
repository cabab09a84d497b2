//! The limits of documents, with the error that each causes.

/// The largest size of a bucket policy in bytes, without white space between values
/// (`Fault::TooLong`). Source: "Bucket policies" in the S3 User Guide.
pub const BUCKET_BYTES_MAX: usize = 20_480;
/// The largest size of a managed policy in characters, without white space (`Fault::TooLong`).
/// Source of this limit and the following: "IAM and AWS STS quotas" in the IAM User Guide.
pub const MANAGED_CHARS_MAX: usize = 6_144;
/// The largest size of all inline policies of a user, in the same unit.
pub const USER_CHARS_MAX: usize = 2_048;
/// The largest size of all inline policies of a group.
pub const GROUP_CHARS_MAX: usize = 5_120;
/// The largest size of all inline policies of a role.
pub const ROLE_CHARS_MAX: usize = 10_240;
/// The largest size of a session policy.
pub const SESSION_CHARS_MAX: usize = 2_048;
/// The largest size of a trust policy.
pub const TRUST_CHARS_MAX: usize = 2_048;

/// The largest size of a document in bytes with all its white space, before it is read
/// (`Fault::TooLong`). IAM's API accepts no longer ones.
pub const DOCUMENT_BYTES_MAX: usize = 131_072;
/// The largest depth of nested objects and arrays; a policy needs 6 (`Fault::TooDeep`).
pub const DEPTH_MAX: usize = 16;

/// The largest number of variables in one value (`Fault::Pattern`).
pub const VARIABLES_MAX: usize = 8;
/// The largest number of characters between two `*` of a pattern, if there is a `?` or a variable
/// among them (`Fault::Pattern`): as many as one word has bits when such a part is searched for.
pub const FLOATING_CHARS_MAX: usize = 128;

const _: () = assert!(BUCKET_BYTES_MAX < DOCUMENT_BYTES_MAX && ROLE_CHARS_MAX < DOCUMENT_BYTES_MAX);
