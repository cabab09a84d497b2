use s3_types::{Checksum, ChecksumValue, ETag};

use super::writer::Writer;

/// The answer of GetObjectAttributes: what was asked for and is known.
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectAttributesResult<'a> {
    /// `ETag`, the only one that S3 sends without quotes.
    pub etag: Option<&'a ETag>,
    /// `Checksum`. S3 leaves the number of parts out of a composite one here.
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
    /// How many there are.
    pub total_parts: usize,
    /// One page of them. S3 shows it only for objects with a composite checksum.
    pub page: Option<AttributePartsPage<'a>>,
}

/// One page of an object's parts.
#[derive(Debug, Clone, Copy)]
pub struct AttributePartsPage<'a> {
    /// As asked for.
    pub part_number_marker: u32,
    /// The last number on this page; 0 where there is none.
    pub next_part_number_marker: u32,
    /// As asked for, lowered to 1000.
    pub max_parts: usize,
    /// Whether there are more.
    pub is_truncated: bool,
    /// By number.
    pub parts: &'a [AttributePart],
}

/// One part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributePart {
    /// Its number.
    pub part_number: u32,
    /// Length.
    pub size_bytes: u64,
    /// Its checksum.
    pub checksum: Option<ChecksumValue>,
}

impl ObjectAttributesResult<'_> {
    /// The document.
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
