//! What a record says.

use std::sync::Arc;

use backend::{ObjectAttributes, ObjectPart};
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, ETag, ObjectMetadata};

use super::predecessor::Predecessor;
use crate::fs::file_info::{self, Stamp};
use crate::layout::overflow::OverflowId;
use crate::limits::{ETAG_BYTES_MAX, METADATA_BYTES_MAX, METADATA_ENTRIES_MAX};

/// What one `user.slipway` says. Which fields are set depends on what it describes: an object, a
/// directory, a bucket, a part, an upload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "as many as there are to be stored")]
pub(crate) struct Record {
    /// The file that it describes. A record whose stamp does not match its file says nothing about
    /// that file.
    pub stamp: Option<Stamp>,
    /// The ETag.
    pub etag: Option<ETag>,
    /// The checksum.
    pub checksum: Option<Checksum>,
    /// What the client attached.
    pub metadata: ObjectMetadata,
    /// The parts of a multipart object.
    pub parts: Option<Arc<[ObjectPart]>>,
    /// On a directory: a PUT made it, so that it goes with its last object.
    pub directory_made: bool,
    /// On a directory: it is a directory object.
    pub directory_object: bool,
    /// When it was made or last written, for what has no stamp (directory objects, buckets,
    /// uploads).
    pub time_ns: Option<i64>,
    /// The key it belongs to, of an upload. The path of what a companion is for.
    pub key: Option<String>,
    /// The upload that made the object.
    pub upload_id: Option<String>,
    /// Algorithm and type that an upload was created with.
    pub upload_checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
    /// On an upload: what its key had when it was created, where that could be looked at.
    pub predecessor: Option<Predecessor>,
    /// Size of what is described elsewhere: of a completed upload's object (in its receipt), of a
    /// part in place, of an assembly's slots (in its layout).
    pub size_bytes: Option<u64>,
    /// The rest of the record is in this companion file.
    pub overflow: Option<OverflowId>,
    /// On a part: its bytes are in its slot of this assembly.
    pub assembly: Option<u8>,
    /// On the layout of an assembly: no one writes to that any more.
    pub sealed: bool,
    /// What is stored is of a newer version, and not understood: it may keep its object from being
    /// read, replaced or deleted. All else is empty then. Only of records that were read.
    pub newer: bool,
    /// Fields of a newer version, kept as they are.
    pub unknown: Vec<(u8, Box<[u8]>)>,
}

impl Record {
    /// The mark of a directory that a PUT made.
    pub fn made_directory() -> Self {
        Self { directory_made: true, ..Self::default() }
    }

    /// One of a newer version.
    pub fn of_newer() -> Self {
        Self { newer: true, ..Self::default() }
    }

    /// The attributes of the file with stamp `stamp`; `None` if the record has no ETag.
    pub fn into_attributes(self, stamp: Stamp) -> Option<ObjectAttributes> {
        Some(ObjectAttributes {
            size_bytes: stamp.size_bytes,
            last_modified: file_info::timestamp(stamp.modified_ns),
            etag: self.etag?,
            checksum: self.checksum,
            metadata: self.metadata,
            parts: self.parts,
            version: None,
        })
    }

    /// The attributes of the directory object that it describes, if it does.
    pub fn directory_attributes(&self) -> Option<ObjectAttributes> {
        let stamp = Stamp { size_bytes: 0, modified_ns: i128::from(self.time_ns?) };
        if self.directory_object { self.clone().into_attributes(stamp) } else { None }
    }
}

/// True for metadata that a record may hold.
pub(crate) fn fits(metadata: &ObjectMetadata) -> bool {
    let headers = metadata.headers().into_iter().flatten().map(str::len);
    let user = metadata.user.iter().map(|(name, value)| name.len() + value.len());
    metadata.user.len() <= METADATA_ENTRIES_MAX && headers.chain(user).sum::<usize>() <= METADATA_BYTES_MAX
}

/// True for an ETag that a record may hold: one that headers and documents can show.
pub(crate) fn is_etag(etag: &ETag) -> bool {
    match etag {
        ETag::Opaque(text) => {
            text.len() <= ETAG_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"')
        }
        ETag::Md5(_) | ETag::Multipart { .. } => true,
    }
}
