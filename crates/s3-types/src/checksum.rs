use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The algorithms of checksums in S3 (`x-amz-checksum-*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32 = 1,
    /// CRC-32C (iSCSI).
    Crc32c = 2,
    /// CRC-64/NVME, the default.
    Crc64Nvme = 3,
    /// SHA-1.
    Sha1 = 4,
    /// SHA-256.
    Sha256 = 5,
    /// SHA-512.
    Sha512 = 6,
    /// MD5.
    Md5 = 7,
    /// XXH64, seed 0, big-endian.
    Xxhash64 = 8,
    /// XXH3, 64 bits, seed 0, big-endian.
    Xxhash3 = 9,
    /// XXH3, 128 bits, seed 0, big-endian.
    Xxhash128 = 10,
}

use ChecksumAlgorithm as A;

impl ChecksumAlgorithm {
    /// All algorithms, in the order of their discriminants.
    pub const ALL: [Self; 10] = [
        A::Crc32,
        A::Crc32c,
        A::Crc64Nvme,
        A::Sha1,
        A::Sha256,
        A::Sha512,
        A::Md5,
        A::Xxhash64,
        A::Xxhash3,
        A::Xxhash128,
    ];

    /// Returns S3's name, as in `x-amz-checksum-algorithm` (`CRC64NVME`).
    pub const fn name(self) -> &'static str {
        match self {
            A::Crc32 => "CRC32",
            A::Crc32c => "CRC32C",
            A::Crc64Nvme => "CRC64NVME",
            A::Sha1 => "SHA1",
            A::Sha256 => "SHA256",
            A::Sha512 => "SHA512",
            A::Md5 => "MD5",
            A::Xxhash64 => "XXHASH64",
            A::Xxhash3 => "XXHASH3",
            A::Xxhash128 => "XXHASH128",
        }
    }

    /// Returns the name of the header or trailer that carries a value (`x-amz-checksum-crc64nvme`).
    pub const fn header(self) -> &'static str {
        match self {
            A::Crc32 => "x-amz-checksum-crc32",
            A::Crc32c => "x-amz-checksum-crc32c",
            A::Crc64Nvme => "x-amz-checksum-crc64nvme",
            A::Sha1 => "x-amz-checksum-sha1",
            A::Sha256 => "x-amz-checksum-sha256",
            A::Sha512 => "x-amz-checksum-sha512",
            A::Md5 => "x-amz-checksum-md5",
            A::Xxhash64 => "x-amz-checksum-xxhash64",
            A::Xxhash3 => "x-amz-checksum-xxhash3",
            A::Xxhash128 => "x-amz-checksum-xxhash128",
        }
    }

    /// Returns the name of the XML element that carries a value (`ChecksumCRC64NVME`).
    pub const fn element(self) -> &'static str {
        match self {
            A::Crc32 => "ChecksumCRC32",
            A::Crc32c => "ChecksumCRC32C",
            A::Crc64Nvme => "ChecksumCRC64NVME",
            A::Sha1 => "ChecksumSHA1",
            A::Sha256 => "ChecksumSHA256",
            A::Sha512 => "ChecksumSHA512",
            A::Md5 => "ChecksumMD5",
            A::Xxhash64 => "ChecksumXXHASH64",
            A::Xxhash3 => "ChecksumXXHASH3",
            A::Xxhash128 => "ChecksumXXHASH128",
        }
    }

    /// Returns the algorithm with this name, in any case of letters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.name().eq_ignore_ascii_case(name))
    }

    /// Returns the algorithm with this discriminant.
    pub fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|a| *a as u8 == n)
    }

    /// Returns the length of a value in bytes.
    pub const fn length_bytes(self) -> usize {
        match self {
            A::Crc32 | A::Crc32c => 4,
            A::Crc64Nvme | A::Xxhash64 | A::Xxhash3 => 8,
            A::Md5 | A::Xxhash128 => 16,
            A::Sha1 => 20,
            A::Sha256 => 32,
            A::Sha512 => 64,
        }
    }

    /// True for the CRCs: their value for a whole object can be computed from the values of its
    /// parts.
    pub const fn is_crc(self) -> bool {
        matches!(self, A::Crc32 | A::Crc32c | A::Crc64Nvme)
    }

    /// Returns the type that CreateMultipartUpload assumes if the client names an algorithm but no
    /// type. It is `FULL_OBJECT` only for CRC64NVME (S3 user guide, "Checking object integrity").
    pub const fn default_multipart_type(self) -> ChecksumType {
        match self {
            A::Crc64Nvme => ChecksumType::FullObject,
            _ => ChecksumType::Composite,
        }
    }
}

/// The input of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumType {
    /// The bytes of the object.
    FullObject,
    /// The concatenated checksums of the parts.
    Composite,
}

impl ChecksumType {
    /// Returns S3's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FullObject => "FULL_OBJECT",
            Self::Composite => "COMPOSITE",
        }
    }

    /// Returns the type with this name, in any case of letters.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::FullObject, Self::Composite].into_iter().find(|t| t.name().eq_ignore_ascii_case(name))
    }
}

/// A checksum of one algorithm, without its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ChecksumValue {
    algorithm: ChecksumAlgorithm,
    bytes: [u8; 64],
}

impl ChecksumValue {
    /// Makes a value from its bytes; `None` if they do not have the algorithm's length.
    pub fn new(algorithm: ChecksumAlgorithm, value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 64];
        (value.len() == algorithm.length_bytes()).then(|| bytes[..value.len()].copy_from_slice(value))?;
        Some(Self { algorithm, bytes })
    }

    pub(crate) const fn from_array(algorithm: ChecksumAlgorithm, bytes: [u8; 64]) -> Self {
        Self { algorithm, bytes }
    }

    /// Reads the base64 form of headers and XML; `None` if the text is not base64 of the
    /// algorithm's length.
    pub fn from_base64(algorithm: ChecksumAlgorithm, text: &str) -> Option<Self> {
        Self::new(algorithm, &BASE64.decode(text.trim()).ok()?)
    }

    /// Returns the algorithm.
    pub const fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Returns the bytes of the value, most significant byte first.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.length_bytes()]
    }
}

impl fmt::Display for ChecksumValue {
    /// Writes the value as base64, the form in headers and XML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.as_bytes()))
    }
}

impl fmt::Debug for ChecksumValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.algorithm.name())
    }
}

/// The checksum of an object, as it is stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// The value.
    pub value: ChecksumValue,
    /// The input of the checksum.
    pub checksum_type: ChecksumType,
    /// The number of parts, for a composite checksum.
    pub parts: Option<u32>,
}

impl Checksum {
    /// Makes a checksum of the object's bytes.
    pub const fn full_object(value: ChecksumValue) -> Self {
        Self { value, checksum_type: ChecksumType::FullObject, parts: None }
    }

    /// Makes a checksum of the checksums of `parts` parts.
    pub const fn composite(value: ChecksumValue, parts: u32) -> Self {
        Self { value, checksum_type: ChecksumType::Composite, parts: Some(parts) }
    }
}

impl fmt::Display for Checksum {
    /// Writes the value as base64, followed by `-N` for a composite checksum of N parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts {
            Some(parts) => write!(f, "{}-{parts}", self.value),
            None => self.value.fmt(f),
        }
    }
}
