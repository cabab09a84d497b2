use s3_types::{ChecksumAlgorithm, ChecksumType, Timestamp};

use super::writer::Writer;
use super::{KeyEncoding, Owner};

/// An upload in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedUpload<'a> {
    /// The key it will make.
    pub key: &'a str,
    /// Its id.
    pub upload_id: &'a str,
    /// When it was begun.
    pub initiated: Timestamp,
    /// What CreateMultipartUpload chose.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
}

/// The answer of ListMultipartUploads.
#[derive(Debug, Clone, Copy)]
pub struct ListUploadsResult<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// As asked for.
    pub key_marker: &'a str,
    /// As asked for.
    pub upload_id_marker: &'a str,
    /// Where the next page begins.
    pub next_key_marker: Option<&'a str>,
    /// Where the next page begins.
    pub next_upload_id_marker: Option<&'a str>,
    /// As asked for.
    pub delimiter: Option<&'a str>,
    /// As asked for.
    pub prefix: &'a str,
    /// As asked for.
    pub encoding: KeyEncoding,
    /// As asked for, lowered to 1000.
    pub max_uploads: usize,
    /// Whether there are more.
    pub is_truncated: bool,
    /// Who began the uploads and whose the objects will be.
    pub owner: Owner<'a>,
}

impl ListUploadsResult<'_> {
    /// The document.
    pub fn render<'b>(
        &self,
        uploads: impl IntoIterator<Item = ListedUpload<'b>>,
        common_prefixes: impl IntoIterator<Item = &'b str>,
    ) -> String {
        let uploads = uploads.into_iter();
        let mut writer = Writer::document("ListMultipartUploadsResult", 768 + uploads.size_hint().0 * 512);
        writer.text("Bucket", self.bucket);
        writer.key("KeyMarker", self.key_marker, self.encoding);
        writer.text("UploadIdMarker", self.upload_id_marker);
        writer.optional_key("NextKeyMarker", self.next_key_marker, self.encoding);
        writer.optional_text("NextUploadIdMarker", self.next_upload_id_marker);
        writer.optional_key("Delimiter", self.delimiter, self.encoding);
        writer.key("Prefix", self.prefix, self.encoding);
        if self.encoding == KeyEncoding::Url {
            writer.text("EncodingType", "url");
        }
        writer.number("MaxUploads", self.max_uploads);
        writer.boolean("IsTruncated", self.is_truncated);
        for upload in uploads {
            self.upload(&mut writer, &upload);
        }
        writer.common_prefixes(common_prefixes, self.encoding);
        writer.finish()
    }

    fn upload(&self, writer: &mut Writer, upload: &ListedUpload<'_>) {
        writer.open("Upload");
        writer.key("Key", upload.key, self.encoding);
        writer.text("UploadId", upload.upload_id);
        writer.owner("Initiator", self.owner);
        writer.owner("Owner", self.owner);
        writer.text("StorageClass", "STANDARD");
        writer.time("Initiated", upload.initiated);
        if let Some((algorithm, checksum_type)) = upload.checksum {
            writer.text("ChecksumAlgorithm", algorithm.name());
            writer.text("ChecksumType", checksum_type.name());
        }
        writer.close("Upload");
    }
}
