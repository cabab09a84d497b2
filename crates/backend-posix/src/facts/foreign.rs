//! Attributes of files that other programs made, or edited.

use backend::ObjectAttributes;
use rustix::fd::AsFd;
use s3_types::{ETag, ObjectMetadata};

use super::versitygw::{self, Source};
use crate::base::options::Options;
use crate::fs::file_info::{self, FileInfo};
use crate::record::{self, ObjectRecord};

const ETAG_PREFIX: &str = "foreign-";

/// The selection of versitygw's attributes with which a file without a record is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VersitygwUse {
    /// None of the attributes is used; they are not even read.
    Ignored,
    /// Content headers and user metadata. They may belong to older bytes, but claim nothing about
    /// bytes.
    Metadata,
    /// In addition the ETag and the parts, but not the checksum: an SDK that compares checksums
    /// could never read a file that was changed.
    ETag,
}

impl VersitygwUse {
    /// Returns the use for callers that need all attributes.
    pub const fn for_reads(options: &Options) -> Self {
        if options.trust_versitygw { Self::ETag } else { Self::Metadata }
    }

    /// Returns the use for callers that need only ETag and size.
    pub const fn for_etags(options: &Options) -> Self {
        if options.trust_versitygw { Self::ETag } else { Self::Ignored }
    }
}

/// Returns the attributes of an open file: from its record if that describes the present file,
/// otherwise from the file itself.
pub(crate) fn attributes_of(
    file: impl AsFd,
    record: Option<ObjectRecord>,
    info: &FileInfo,
    key: &str,
    versitygw_use: VersitygwUse,
) -> ObjectAttributes {
    // One without an ETag was made for what is set on the object, and tells nothing of its bytes.
    let Some(record) = record.filter(|record| record.content.etag.is_some()) else {
        let mut attributes = attributes(info, key);
        if versitygw_use != VersitygwUse::Ignored
            && let Ok(Some(theirs)) = versitygw::Attributes::read(&Source::File(file.as_fd()))
        {
            take_over(&mut attributes, theirs, versitygw_use);
        }
        return attributes;
    };
    // One that is stale is still younger than what a former gateway noted.
    let described = (record.content.stamp == Some(info.stamp)).then(|| record.into_attributes(info.stamp));
    described.flatten().unwrap_or_else(|| attributes(info, key))
}

fn take_over(attributes: &mut ObjectAttributes, theirs: versitygw::Attributes, versitygw_use: VersitygwUse) {
    if versitygw_use == VersitygwUse::ETag
        && theirs.is_possible(attributes.size_bytes)
        && record::is_etag(&theirs.etag)
    {
        attributes.etag = theirs.etag;
        attributes.parts = theirs.parts;
    }
    let by_name = attributes.metadata.content_type.take();
    attributes.metadata = theirs.metadata;
    if !record::fits(&attributes.metadata) {
        attributes.metadata.user.clear();
    }
    attributes.metadata.content_type = attributes.metadata.content_type.take().or(by_name);
}

/// Returns the attributes of a file without a record.
pub(crate) fn attributes(info: &FileInfo, key: &str) -> ObjectAttributes {
    ObjectAttributes {
        size_bytes: info.stamp.size_bytes,
        last_modified: file_info::timestamp(info.stamp.modified_ns),
        etag: etag(info),
        checksum: None,
        metadata: metadata(key),
        parts: None,
        version: None,
        tag_count: 0,
    }
}

/// Returns the metadata of a file without a record: its MIME type, by the extension of its name.
pub(crate) fn metadata(key: &str) -> ObjectMetadata {
    let content_type = mime_guess::from_path(key).first_raw().map(str::to_owned);
    ObjectMetadata { content_type, ..ObjectMetadata::default() }
}

/// True for the ETag of a file without a record.
pub(crate) fn is_foreign(etag: &ETag) -> bool {
    matches!(etag, ETag::Opaque(text) if text.starts_with(ETAG_PREFIX))
}

/// Returns the ETag of a file without a record. It changes whenever the file does, and does not
/// look like an MD5. The inode is 0 where numbers do not last
/// ([`Store::lasting`](crate::tree::store::Store::lasting)): the ETag of an unchanged file must not
/// change. If another file with the same size and time takes its place there, the ETag does not
/// show it.
fn etag(info: &FileInfo) -> ETag {
    let FileInfo { stamp, inode, .. } = info;
    ETag::Opaque(format!("{ETAG_PREFIX}{inode:x}-{:x}-{:x}", stamp.size_bytes, stamp.modified_ns).into())
}

#[cfg(test)]
mod tests {
    use rustix::fs::FileType;

    use super::*;
    use crate::fs::file_info::Stamp;

    /// On sshfs, a file gets another inode number whenever its daemon has forgotten the file.
    #[test]
    fn a_number_that_does_not_last_is_not_in_the_etag() {
        let mut scene = crate::testing::Scene::new();
        std::fs::write(scene.path().join("a"), "x").unwrap();
        let etag = |scene: &crate::testing::Scene| {
            let path = crate::layout::keymap::KeyPath::of("a");
            crate::object::open(&scene.store, &scene.name, &path).unwrap().attributes.etag.to_string()
        };
        scene.store.volume.inodes_last = true;
        let lasting = etag(&scene);
        scene.store.volume.inodes_last = false;
        let (first, second) = (etag(&scene), etag(&scene));
        assert!(!lasting.starts_with("foreign-0-") && first.starts_with("foreign-0-"), "{lasting} {first}");
        assert_eq!(first, second);
    }

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
