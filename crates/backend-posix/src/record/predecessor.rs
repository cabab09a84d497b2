//! The object that a key had when an upload was created, in the upload's record.

use s3_types::ETag;

/// The object that the key had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// No object.
    Nothing,
    /// The object with this identity.
    Object(ObjectIdentity),
}

/// The identity of an object, which distinguishes it from others that have its key before or after
/// it.
///
/// A write through S3 makes a new file. Two files that exist at the same time differ in their
/// inode; a file that got the inode of a removed one differs in its time, unless both were made
/// within one tick of the file system's clock. If inode numbers do not last, time, size and ETag
/// are compared: an object that was replaced by the same bytes in the same tick (a second, on some
/// file systems) is then mistaken for the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectIdentity {
    /// The object's time, in ns.
    pub modified_ns: i64,
    /// The object's size, in bytes.
    pub size_bytes: u64,
    /// The inode number of the object's file, if such numbers last.
    pub inode: Option<u64>,
    /// The object's ETag; `None` for a file without a record, whose ETag changes when it is
    /// rehashed.
    pub etag: Option<ETag>,
}
