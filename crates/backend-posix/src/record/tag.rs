//! The numbers of fields. They are on disk: never change or reuse one. Each kind of record has some
//! of them (docs/FORMAT.md).
//!
//! The upper three bits say how to treat a field, also if it is not known.

/// A field that must be known: a gateway that does not know it may neither serve nor change the
/// object.
pub const CRITICAL: u8 = 0x80;
/// A field of the object, not of its bytes: it stays when the bytes change.
pub const ATTACHED: u8 = 0x40;
// 0x20 is kept for fields that are sealed.

/// mtime in ns (8 bytes, little-endian, signed), then size.
pub const STAMP: u8 = 1;
/// 16 bytes.
pub const ETAG_MD5: u8 = 2;
/// 16 bytes, then the number of parts.
pub const ETAG_MULTIPART: u8 = 3;
/// A text of up to 128 bytes of visible ASCII without quotes.
pub const ETAG_OPAQUE: u8 = 4;
/// Algorithm (1 byte), then the value, of the whole object.
pub const CHECKSUM: u8 = 5;
/// Algorithm (1 byte), number of parts, then the value.
pub const CHECKSUM_COMPOSITE: u8 = 6;
/// Index into the table of common content types.
pub const CONTENT_TYPE_COMMON: u8 = 7;
/// Text, as are the fields up to `USER_METADATA`.
pub const CONTENT_TYPE: u8 = 8;
pub const CONTENT_ENCODING: u8 = 9;
pub const CONTENT_LANGUAGE: u8 = 10;
pub const CONTENT_DISPOSITION: u8 = 11;
pub const CACHE_CONTROL: u8 = 12;
pub const EXPIRES: u8 = 13;
pub const WEBSITE_REDIRECT_LOCATION: u8 = 14;
/// The entries, each with the length and the text of its name, and then of its value.
pub const USER_METADATA: u8 = 15;
/// See [`parts`](super::parts).
pub const PARTS: u8 = 16;
/// Bits: 1 made by a PUT, 2 directory object.
pub const DIRECTORY: u8 = 17;
/// ns, 8 bytes, little-endian, signed.
pub const TIME: u8 = 18;
pub const KEY: u8 = 19;
pub const UPLOAD_ID: u8 = 20;
/// Algorithm (1 byte), 1 if composite (1 byte).
pub const UPLOAD_CHECKSUM: u8 = 21;
pub const SIZE: u8 = 22;
/// 16 bytes.
pub const OVERFLOW: u8 = 23;
/// 1 byte.
pub const ASSEMBLY: u8 = 24;
/// Empty.
pub const SEALED: u8 = 25;
/// Empty if the key had no object. Otherwise its time in ns (8 bytes, little-endian, signed), size,
/// 1 if an inode follows or 0 (1 byte), inode, and the ETag's text or nothing.
pub const PREDECESSOR: u8 = 26;
/// The path of the file or directory that an overflow file was written for. Only overflow files
/// have this field. Earlier builds wrote it as `KEY`.
pub const PATH: u8 = 27;
/// The last time at which a search could not decide whether an object names an overflow file (ns, 8
/// bytes, little-endian, signed). Only overflow files have this field.
pub const UNSURE: u8 = 28;
/// The length and the text of an id, then the text of a name.
pub const INITIATOR: u8 = 29;
/// The id of a version, which was given out before its order was known (8 bytes, big-endian).
pub const VERSION_ID: u8 = 30;
/// The order of a version (8 bytes, big-endian); then, unless the order is the id and it is no
/// delete marker, 1 byte: 0, 1 (an id of 8 bytes follows) or 2 (null), and 0x80 more for a delete
/// marker.
pub const VERSION: u8 = ATTACHED | 0x10;
/// For each tag the length and the text of its key, and then of its value.
pub const TAGS: u8 = ATTACHED | 0x1f;
/// A user id. Critical, since a gateway that does not know it would give the upload to others.
pub const USER: u8 = CRITICAL | 0x1e;
/// The lock that the object of an upload gets: the mode (0 for no retention, 1 GOVERNANCE, 2
/// COMPLIANCE), its end in ms (8 bytes, little-endian, signed), and the legal hold (0 never set, 1
/// OFF, 2 ON). Critical, since a gateway that does not know it would make an object without it.
pub const LOCK: u8 = CRITICAL | 0x1d;
