use std::fmt::{self, Write as _};

use crate::checksum::ChecksumValue;
use crate::hex::decode;

/// An entity tag, without its quotes.
///
/// S3 uses the MD5 of the bytes for a plain object, and the MD5 of the parts' MD5s with `-N` for an
/// object that was uploaded in N parts. A backend that computes no MD5 makes an opaque ETag, which
/// must have neither of these forms.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ETag {
    /// The MD5 of the content.
    Md5([u8; 16]),
    /// The MD5 of the concatenated MD5s of `parts` parts.
    Multipart {
        /// The MD5 of the parts' MD5s.
        md5: [u8; 16],
        /// The number of parts.
        parts: u32,
    },
    /// Any other text. A backend makes printable ASCII without quotes; a client may send anything.
    Opaque(Box<str>),
}

const HEX: &[u8; 16] = b"0123456789abcdef";
const CRC64NVME_PREFIX: &str = "crc64nvme-";

impl ETag {
    /// Makes the ETag of bytes with this CRC64NVME: `crc64nvme-` and the value in hex. Clients see
    /// from the hyphen that it is not an MD5.
    pub fn of_crc64nvme(value: &ChecksumValue) -> Self {
        let mut text = String::from(CRC64NVME_PREFIX);
        for byte in value.as_bytes() {
            text.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
        Self::Opaque(text.into())
    }

    /// True if the ETag depends only on the bytes: the same bytes have the same ETag elsewhere.
    pub fn is_of_bytes(&self) -> bool {
        match self {
            Self::Md5(_) => true,
            Self::Multipart { .. } => false,
            Self::Opaque(text) => text.strip_prefix(CRC64NVME_PREFIX).is_some_and(|value| value.len() == 16),
        }
    }

    /// Reads an ETag as a client sends it. Quotes and a weak mark are optional, and hex digits may
    /// have either case. A text that has neither form of MD5 becomes [`ETag::Opaque`].
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let text = text.strip_prefix("W/").unwrap_or(text);
        let text = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        let opaque = || Self::Opaque(text.into());
        match text.split_once('-') {
            None => decode(text.as_bytes()).map_or_else(opaque, Self::Md5),
            Some((digits, parts)) => match (decode(digits.as_bytes()), parts.parse()) {
                (Some(md5), Ok(parts)) if !parts_has_leading_zero(text) => Self::Multipart { md5, parts },
                _ => opaque(),
            },
        }
    }
}

fn parts_has_leading_zero(text: &str) -> bool {
    text.split_once('-').is_some_and(|(_, n)| n.starts_with(['0', '+']))
}

impl ETag {
    /// Returns the text in quotes, the form in headers.
    pub fn quoted(&self) -> String {
        // An MD5 with the number of parts fits this capacity: a text that grows would be copied.
        let mut quoted = String::with_capacity(40);
        quoted.push('"');
        match self {
            // Almost all, of each answer: without the formatter.
            Self::Md5(md5) => quoted.push_str(hex_str(&hex(md5))),
            // Writing to a string does not fail.
            Self::Multipart { .. } | Self::Opaque(_) => {
                let _ = write!(quoted, "{self}");
            }
        }
        quoted.push('"');
        quoted
    }
}

fn hex(md5: &[u8; 16]) -> [u8; 32] {
    let mut hex = [0; 32];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(md5) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    hex
}

/// Returns hex digits as text.
fn hex_str(hex: &[u8; 32]) -> &str {
    str::from_utf8(hex).unwrap_or_default()
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (md5, parts) = match self {
            Self::Md5(md5) => (md5, None),
            Self::Multipart { md5, parts } => (md5, Some(parts)),
            Self::Opaque(text) => return f.write_str(text),
        };
        f.write_str(hex_str(&hex(md5)))?;
        parts.map_or(Ok(()), |n| write!(f, "-{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::ChecksumAlgorithm;

    #[test]
    fn parses_what_it_prints() {
        for text in [
            "d41d8cd98f00b204e9800998ecf8427e",
            "d41d8cd98f00b204e9800998ecf8427e-12",
            "d41d8cd98f00b204e9800998ecf8427e-012",
            "f-12ab-1-2",
            "",
        ] {
            assert_eq!(ETag::parse(text).to_string(), text);
            assert_eq!(ETag::parse(&format!("\"{text}\"")), ETag::parse(text));
        }
        assert!(matches!(ETag::parse("D41D8CD98F00B204E9800998ECF8427E"), ETag::Md5(_)));
    }

    #[test]
    fn a_checksum_is_no_md5() {
        let value =
            ChecksumValue::new(ChecksumAlgorithm::Crc64Nvme, &0xae8b_1486_0a79_9888_u64.to_be_bytes());
        let etag = ETag::of_crc64nvme(&value.unwrap());
        assert_eq!(etag.to_string(), "crc64nvme-ae8b14860a799888");
        assert_eq!(ETag::parse("\"crc64nvme-ae8b14860a799888\""), etag);
        assert!(etag.is_of_bytes() && ETag::Md5([0; 16]).is_of_bytes());
        assert!(!ETag::parse("foreign-1-2-3").is_of_bytes());
        assert!(!ETag::parse("d41d8cd98f00b204e9800998ecf8427e-1").is_of_bytes());
    }
}
