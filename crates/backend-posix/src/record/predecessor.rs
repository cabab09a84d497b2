//! What the description of an upload says of what its key had when it was created.

use s3_types::ETag;

/// What a key had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Predecessor {
    /// No object.
    Nothing,
    /// This one.
    Object(ObjectIdentity),
}

/// Tells an object from others that have its key before or after.
///
/// A write through S3 makes a new file. Two files that exist at the same time differ in their
/// inode; a file that got the inode of a removed one differs in its time, unless both were made
/// within one tick of the file system's clock. Where inode numbers do not last there are time, size
/// and ETag: what was replaced by the same bytes in the same tick (a second, on some) is taken for
/// what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectIdentity {
    /// The object's time, in ns.
    pub modified_ns: i64,
    /// Its size.
    pub size_bytes: u64,
    /// Its file's inode, where these last.
    pub inode: Option<u64>,
    /// Its ETag, unless it is a file without a record: such a one gets another when it is rehashed.
    pub etag: Option<ETag>,
}
