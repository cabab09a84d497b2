use s3_types::{Checksum, ChecksumValue, ETag};

use super::writer::Writer;

/// The answer of GetObjectAttributes: the attributes that were asked for and are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectAttributesResult<'a> {
    /// `ETag`, the only one that S3 writes without quotes.
    pub etag: Option<&'a ETag>,
    /// `Checksum`. S3 omits the number of parts of a composite one here.
    pub checksum: Option<&'a Checksum>,
    /// `ObjectParts`, for an object that was uploaded in parts.
    pub object_parts: Option<AttributeParts<'a>>,
    /// `StorageClass`.
    pub storage_class: Option<&'a str>,
    /// `ObjectSize` in bytes.
    pub object_size: Option<u64>,
}

/// The parts of an object.
#[derive(Debug, Clone, Copy)]
pub struct AttributeParts<'a> {
    /// The number of the object's parts.
    pub total_parts: usize,
    /// One page of the parts. S3 shows it only for objects with a composite checksum.
    pub page: Option<AttributePartsPage<'a>>,
}

/// One page of an object's parts.
#[derive(Debug, Clone, Copy)]
pub struct AttributePartsPage<'a> {
    /// The part number marker of the request.
    pub part_number_marker: u32,
    /// The last part number on this page; 0 if there is none.
    pub next_part_number_marker: u32,
    /// The `x-amz-max-parts` of the request, lowered to 1000.
    pub max_parts: usize,
    /// True if there are more pages.
    pub is_truncated: bool,
    /// The parts, sorted by number.
    pub parts: &'a [AttributePart],
}

/// One part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributePart {
    /// The part's number.
    pub part_number: u32,
    /// The part's length in bytes.
    pub size_bytes: u64,
    /// The part's checksum.
    pub checksum: Option<ChecksumValue>,
}

impl ObjectAttributesResult<'_> {
    /// Writes the document.
    pub fn render(&self) -> String {
        let mut writer = Writer::document("GetObjectAttributesResponse", 512);
        if let Some(etag) = self.etag {
            writer.bare_etag("ETag", etag);
        }
        if let Some(checksum) = self.checksum {
            writer.open("Checksum");
            writer.checksum(checksum);
            writer.close("Checksum");
        }
        if let Some(parts) = &self.object_parts {
            object_parts(&mut writer, parts);
        }
        writer.optional_text("StorageClass", self.storage_class);
        if let Some(size) = self.object_size {
            writer.number("ObjectSize", size);
        }
        writer.finish()
    }
}

fn object_parts(writer: &mut Writer, parts: &AttributeParts<'_>) {
    writer.open("ObjectParts");
    writer.number("PartsCount", parts.total_parts);
    if let Some(page) = &parts.page {
        writer.number("PartNumberMarker", page.part_number_marker);
        writer.number("NextPartNumberMarker", page.next_part_number_marker);
        writer.number("MaxParts", page.max_parts);
        writer.boolean("IsTruncated", page.is_truncated);
        for part in page.parts {
            writer.open("Part");
            writer.number("PartNumber", part.part_number);
            writer.number("Size", part.size_bytes);
            if let Some(checksum) = &part.checksum {
                writer.checksum_value(checksum);
            }
            writer.close("Part");
        }
    }
    writer.close("ObjectParts");
}
