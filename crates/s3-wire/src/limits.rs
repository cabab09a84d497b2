//! Limits on what this crate accepts, each with the error that it causes.

/// The largest section of headers, in bytes: names, values and 4 bytes for each line
/// (`RequestHeaderSectionTooLarge`).
pub const HEADER_SECTION_BYTES_MAX: usize = 8 << 10;
/// The longest target, in bytes: path and query together, percent-encoded (`InvalidURI`). It has
/// room for six arguments of 1024 bytes, each three times as long when encoded, and a signature.
pub const TARGET_BYTES_MAX: usize = 24 << 10;
/// The largest number of parameters of a query (`InvalidURI`).
pub const QUERY_PARAMETERS_MAX: usize = 200;
/// The number of bytes of a text to be signed that `SignatureDoesNotMatch` shows, as text and in
/// hex: four bytes for each of them. The rest is left out.
pub const SIGNED_TEXT_SHOWN_BYTES_MAX: usize = 4 << 10;
/// The number by which a list of signed headers may be longer than the list of headers that were
/// sent (`SignatureDoesNotMatch`).
pub const SIGNED_ABSENT_MAX: usize = 8;
/// The largest XML body in bytes, except for those below (`MaxMessageLengthExceeded`).
pub const XML_BODY_BYTES_MAX: usize = 64 << 10;
/// The largest XML body of DeleteObjects in bytes: 1000 keys of up to 1024 bytes, each byte up to
/// six characters of XML (`MaxMessageLengthExceeded`).
pub const DELETE_BODY_BYTES_MAX: usize = 8 << 20;
/// The largest XML body of CompleteMultipartUpload in bytes: 10,000 parts with ETag and checksums
/// (`MaxMessageLengthExceeded`).
pub const COMPLETE_BODY_BYTES_MAX: usize = 8 << 20;
/// The largest body of PutBucketPolicy in bytes, with all its white space
/// (`MaxMessageLengthExceeded`). The limit of a policy without white space is lower
/// (`MalformedPolicy`).
pub const POLICY_BODY_BYTES_MAX: usize = 128 << 10;
/// The deepest nesting of XML elements (`MalformedXML`).
pub const XML_DEPTH_MAX: usize = 16;
/// The largest number of elements of an XML document: 10,000 parts with number, ETag and a
/// checksum, and as many unknown ones (`MalformedXML`).
pub const XML_ELEMENTS_MAX: usize = 80_000;
/// The longest token of an XML document (a tag, a text, a comment), and the longest text of one
/// element, in bytes (`MalformedXML`).
pub const XML_TOKEN_BYTES_MAX: usize = 64 << 10;
/// The longest version id or ETag in a document, in bytes (`MalformedXML`).
pub const XML_ID_BYTES_MAX: usize = 1 << 10;
/// The longest XML start tag with its attributes, in bytes (`MalformedXML`).
pub const XML_TAG_BYTES_MAX: usize = 4 << 10;
/// The largest number of keys in one DeleteObjects (`MalformedXML`).
pub const DELETE_KEYS_MAX: usize = 1000;
/// The largest number of keys, versions, uploads or parts on one page; larger values are lowered to
/// this.
pub const LIST_ITEMS_MAX: usize = 1000;
/// The largest number of buckets on one page; larger values are `InvalidArgument`.
pub const LIST_BUCKETS_MAX: usize = 10_000;
/// The largest difference between the time of a signature and that of this server, in seconds
/// (`RequestTimeTooSkewed`; `AccessDenied` for a presigned URL).
pub const CLOCK_SKEW_SECONDS_MAX: i64 = 15 * 60;
/// The longest lifetime of a presigned URL, in seconds (`AuthorizationQueryParametersError`).
pub const PRESIGNED_SECONDS_MAX: i64 = 7 * 24 * 3600;
/// The longest header line of a chunk in aws-chunked framing, in bytes (`IncompleteBody`).
pub const CHUNK_HEADER_BYTES_MAX: usize = 256;
/// The largest trailer section of an aws-chunked body, in bytes (`MalformedTrailerError`).
pub const TRAILER_BYTES_MAX: usize = 4 << 10;
/// The smallest chunk of an aws-chunked body in bytes, except for the last
/// (`InvalidChunkSizeError`). There is no largest: a chunk that ends beyond
/// `x-amz-decoded-content-length` is refused at its header line (`IncompleteBody`).
pub const CHUNK_BYTES_MIN: u64 = 8 << 10;
/// The largest number of signing keys that are cached.
pub const SIGNING_KEYS_MAX: usize = 1024;

const _: () = assert!(s3_types::limits::USER_METADATA_BYTES_MAX < HEADER_SECTION_BYTES_MAX);
const _: () = assert!(CHUNK_HEADER_BYTES_MAX < TRAILER_BYTES_MAX);
const _: () = assert!(XML_ELEMENTS_MAX >= s3_types::limits::PARTS_MAX as usize * 4);
const _: () = assert!(XML_ELEMENTS_MAX >= DELETE_KEYS_MAX * 6);
