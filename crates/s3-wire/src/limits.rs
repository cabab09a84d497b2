//! Limits on what the wire accepts, each with the error it gives.

/// All header lines together (`RequestHeaderSectionTooLarge`).
pub const HEADER_SECTION_BYTES_MAX: usize = 8 << 10;
/// Path and query together, percent-encoded (`InvalidURI`): room for six arguments of 1024 bytes,
/// each tripled, and a signature.
pub const TARGET_BYTES_MAX: usize = 24 << 10;
/// Parameters of a query (`InvalidURI`).
pub const QUERY_PARAMETERS_MAX: usize = 200;
/// Of the text that should have been signed, as `SignatureDoesNotMatch` shows it, four bytes for
/// each; the rest is left out.
pub const SIGNED_TEXT_SHOWN_BYTES_MAX: usize = 4 << 10;
/// Names in a list of signed headers beyond the headers that were sent (`SignatureDoesNotMatch`).
pub const SIGNED_ABSENT_MAX: usize = 8;
/// Any XML body but the two below (`MaxMessageLengthExceeded`).
pub const XML_BODY_BYTES_MAX: usize = 64 << 10;
/// DeleteObjects: 1000 keys of up to 1024 bytes, each byte up to six characters of XML
/// (`MaxMessageLengthExceeded`).
pub const DELETE_BODY_BYTES_MAX: usize = 8 << 20;
/// CompleteMultipartUpload: 10,000 parts with ETag and checksums (`MaxMessageLengthExceeded`).
pub const COMPLETE_BODY_BYTES_MAX: usize = 8 << 20;
/// Nesting of XML elements (`MalformedXML`).
pub const XML_DEPTH_MAX: usize = 16;
/// Elements of one XML document: 10,000 parts with number, ETag and a checksum, and as many again
/// unknown ones (`MalformedXML`).
pub const XML_ELEMENTS_MAX: usize = 80_000;
/// One piece of an XML document (a tag, a text, a comment), and the text of one element
/// (`MalformedXML`).
pub const XML_TOKEN_BYTES_MAX: usize = 64 << 10;
/// A version id or ETag that a document names (`MalformedXML`).
pub const XML_ID_BYTES_MAX: usize = 1 << 10;
/// One XML start tag with its attributes (`MalformedXML`).
pub const XML_TAG_BYTES_MAX: usize = 4 << 10;
/// Keys in one DeleteObjects (`MalformedXML`).
pub const DELETE_KEYS_MAX: usize = 1000;
/// Keys, versions or uploads on one page; larger values are lowered to this.
pub const LIST_ITEMS_MAX: usize = 1000;
/// Buckets on one page.
pub const LIST_BUCKETS_MAX: usize = 10_000;
/// Distance between the signature's time and ours (`RequestTimeTooSkewed`), in seconds.
pub const CLOCK_SKEW_SECONDS_MAX: i64 = 15 * 60;
/// Longest life of a presigned URL (`AuthorizationQueryParametersError`), in seconds.
pub const PRESIGNED_SECONDS_MAX: i64 = 7 * 24 * 3600;
/// One chunk's header line in aws-chunked framing (`InvalidChunkSizeError` / `IncompleteBody`).
pub const CHUNK_HEADER_BYTES_MAX: usize = 256;
/// The trailer section of an aws-chunked body (`MalformedTrailerError`).
pub const TRAILER_BYTES_MAX: usize = 4 << 10;
/// Smallest signed chunk of an aws-chunked body, but for the last (`InvalidChunkSizeError`). There
/// is no largest: a chunk beyond `x-amz-decoded-content-length` is refused at its header
/// (`IncompleteBody`).
pub const CHUNK_BYTES_MIN: u64 = 8 << 10;
/// Signing keys that are kept.
pub const SIGNING_KEYS_MAX: usize = 1024;

const _: () = assert!(s3_types::limits::USER_METADATA_BYTES_MAX < HEADER_SECTION_BYTES_MAX);
const _: () = assert!(CHUNK_HEADER_BYTES_MAX < TRAILER_BYTES_MAX);
const _: () = assert!(XML_ELEMENTS_MAX >= s3_types::limits::PARTS_MAX as usize * 4);
const _: () = assert!(XML_ELEMENTS_MAX >= DELETE_KEYS_MAX * 6);
