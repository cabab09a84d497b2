//! Proves that the metadata which another gateway stored belong to a file's present bytes.

use std::sync::Arc;

use backend::{ObjectPart, Result};
use s3_types::{BucketName, Checksum, ChecksumAlgorithm, ChecksumType, Checksummer, ETag};

use super::report::Imported;
use crate::base::options::DEFAULT_CHECKSUM;
use crate::facts::versitygw::Attributes;
use crate::layout::keymap;
use crate::record::{self, Attached, ObjectContent, ObjectRecord, Raw, Unknown};
use crate::tools::candidate::{Candidate, DAMAGED_VERSION, LOCKED};
use crate::tools::progress::Progress;

pub(super) const NEWER: &str = "its record was written by a newer version of Slipway";

pub(super) const TOO_MUCH: &str = "its metadata is more than a record holds (64 KiB, 1000 entries)";

/// The result for a file of the bucket `bucket_name` that already has a record, and is left
/// unchanged; `None` if it has no record, or a damaged one.
pub(super) fn standing(
    file: &mut Candidate<'_>,
    bucket_name: &BucketName,
    path: &str,
) -> Result<Option<Imported>> {
    let key = keymap::key_of_file(path).unwrap_or_default();
    Ok(match file.raw_record()? {
        Raw::Newer(_) => Some(Imported::Failed(NEWER.to_owned())),
        Raw::Known(_, record)
            if record.content.stamp != Some(file.info.stamp)
                && file.is_locked(bucket_name, &key, &record)? =>
        {
            Some(Imported::Failed(LOCKED.to_owned()))
        }
        // It was made for what is set on the object, and tells nothing of its bytes.
        Raw::Known(_, record) if record.content.etag.is_none() => None,
        Raw::Known(_, record) if record.content.stamp == Some(file.info.stamp) => Some(Imported::Known),
        Raw::Known(..) => Some(Imported::Stale(
            "it has a record of Slipway's already (written or imported later), and another program changed it since",
        )),
        Raw::Damaged(_) if !file.replace_damaged_record(bucket_name) => {
            Some(Imported::Failed(DAMAGED_VERSION.to_owned()))
        }
        // Of one that is damaged, S3 sees nothing.
        Raw::Absent | Raw::Damaged(_) => None,
    })
}

/// Makes the record of a file, or says why it can't have one. Unless `trust`, the file is read.
pub(super) fn record(
    file: &mut Candidate<'_>,
    theirs: Attributes,
    trust: bool,
    progress: &Progress,
) -> Result<Result<ObjectRecord, &'static str>> {
    if !theirs.is_possible(file.info.stamp.size_bytes) {
        return Ok(Err("its size differs from the sum of its parts"));
    }
    if !record::is_etag(&theirs.etag) {
        return Ok(Err("its ETag is too long, or contains characters that a header cannot have"));
    }
    if !record::fits(&theirs.metadata) {
        return Ok(Err(TOO_MUCH));
    }
    let checksum = if trust {
        file.wait_until_writes_show()?;
        theirs.checksum
    } else {
        match prove(file, &theirs, progress)? {
            Some(checksum) => Some(checksum),
            None => return Ok(Err("its bytes do not match its ETag, or cannot be compared with it")),
        }
    };
    // Of theirs, what was not proven is not believed.
    let Attributes { etag, checksum: _, metadata, parts, tags } = theirs;
    let content =
        ObjectContent { stamp: None, etag: Some(etag), checksum, metadata, parts, unknown: Unknown::none() };
    Ok(Ok(ObjectRecord {
        content,
        attached: Attached::requested(tags.unwrap_or_default()),
        version: None,
        upload_id: None,
        overflow: None,
    }))
}

/// The record to write for a file. It keeps what was set on the object in the meantime.
pub(super) fn imported(record: &ObjectRecord, old: Option<ObjectRecord>) -> ObjectRecord {
    let ObjectRecord { content, attached, version, upload_id, overflow } = record.clone();
    let (attached, version) = match old {
        None => (attached, version),
        // The upload made the bytes that were there before.
        Some(ObjectRecord { content: _, attached, version, upload_id: _, overflow: _ }) => {
            (attached, version)
        }
    };
    ObjectRecord { content, attached, version, upload_id, overflow }
}

/// Reads the file, and returns the checksum to record if the bytes are those that were uploaded.
fn prove(file: &mut Candidate<'_>, theirs: &Attributes, progress: &Progress) -> Result<Option<Checksum>> {
    let whole = theirs.checksum.filter(|checksum| checksum.checksum_type == ChecksumType::FullObject);
    let algorithm = whole.map_or(DEFAULT_CHECKSUM, |checksum| checksum.value.algorithm());
    let mut parts = theirs.parts.clone().map(PartHashes::new);
    let digests = file.digest(algorithm, progress, |piece| {
        if let Some(parts) = &mut parts {
            parts.update(piece);
        }
    })?;
    let proven = digests.etag == theirs.etag
        || parts.is_some_and(|parts| parts.finish() == theirs.etag)
        || (whole.is_some() && digests.checksum == whole);
    let composite = theirs.checksum.filter(|checksum| checksum.checksum_type == ChecksumType::Composite);
    Ok(proven.then(|| composite.or(digests.checksum)).flatten())
}

/// The ETag of a multipart object, from its bytes and the sizes of its parts.
struct PartHashes {
    parts: Arc<[ObjectPart]>,
    /// The index of the part that the next bytes belong to; `seen_bytes` of it were seen.
    at: usize,
    seen_bytes: u64,
    part: Checksummer,
    whole: Checksummer,
}

impl PartHashes {
    fn new(parts: Arc<[ObjectPart]>) -> Self {
        let md5 = || Checksummer::new(ChecksumAlgorithm::Md5);
        Self { parts, at: 0, seen_bytes: 0, part: md5(), whole: md5() }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        while let Some(part) = self.parts.get(self.at) {
            let left = part.size_bytes - self.seen_bytes;
            if left > bytes.len() as u64 {
                self.part.update(bytes);
                self.seen_bytes += bytes.len() as u64;
                return;
            }
            let (head, tail) = bytes.split_at(usize::try_from(left).unwrap_or(bytes.len()));
            self.part.update(head);
            let part = std::mem::replace(&mut self.part, Checksummer::new(ChecksumAlgorithm::Md5));
            self.whole.update(part.finish().as_bytes());
            (self.at, self.seen_bytes, bytes) = (self.at + 1, 0, tail);
        }
    }

    fn finish(mut self) -> ETag {
        // Parts without bytes at the end of a file without any.
        self.update(&[]);
        let mut md5 = [0; 16];
        md5.copy_from_slice(self.whole.finish().as_bytes());
        ETag::Multipart { md5, parts: u32::try_from(self.at).unwrap_or(u32::MAX) }
    }
}
