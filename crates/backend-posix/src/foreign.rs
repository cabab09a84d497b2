//! Attributes of files that other programs made, or edited.

use backend::ObjectAttributes;
use s3_types::{ETag, ObjectMetadata};

use crate::file_info::{self, FileInfo};
use crate::record::Record;

/// The attributes of a file: from its record if that describes the file as it is now, else from what the file itself tells.
pub(crate) fn attributes_of(record: Option<Record>, info: &FileInfo, key: &str) -> ObjectAttributes {
    record
        .filter(|record| record.stamp == Some(info.stamp))
        .and_then(|record| record.into_attributes(info.stamp))
        .unwrap_or_else(|| attributes(info, key))
}

/// The attributes of a file without a record.
pub(crate) fn attributes(info: &FileInfo, key: &str) -> ObjectAttributes {
    ObjectAttributes {
        size_bytes: info.stamp.size_bytes,
        last_modified: file_info::timestamp(info.stamp.modified_ns),
        etag: etag(info),
        checksum: None,
        metadata: metadata(key),
        parts: None,
    }
}

/// The metadata of a file without a record: its MIME type, by the extension of its name.
pub(crate) fn metadata(key: &str) -> ObjectMetadata {
    let content_type = mime_guess::from_path(key).first_raw().map(str::to_owned);
    ObjectMetadata { content_type, ..ObjectMetadata::default() }
}

/// Changes whenever the file does, and looks like no MD5.
fn etag(info: &FileInfo) -> ETag {
    let FileInfo { stamp, inode, .. } = info;
    ETag::Opaque(format!("foreign-{inode:x}-{:x}-{:x}", stamp.size_bytes, stamp.modified_ns).into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::FileType;

    use super::*;
    use crate::file_info::Stamp;

    #[test]
    fn a_foreign_etag_is_taken_for_no_md5() {
        let stamp = Stamp { size_bytes: 7, modified_ns: -3 };
        let info =
            FileInfo { kind: FileType::RegularFile, stamp, inode: 0xabc, device: 1, links: 1, changed_ns: 0 };
        let etag = attributes(&info, "x.html").etag;
        assert_eq!(ETag::parse(&etag.to_string()), etag);
        assert!(matches!(etag, ETag::Opaque(_)));
        assert_eq!(metadata("a/x.html").content_type.as_deref(), Some("text/html"));
        assert_eq!(metadata("a/x").content_type, None);
    }
}
