use std::fmt;

use crate::limits::{
    BUCKET_NAME_MAX, BUCKET_NAME_MIN, KEY_BYTES_MAX, UPLOAD_ID_BYTES_MAX, VERSION_ID_BYTES_MAX,
};

/// The reason why a string is not a bucket name, key, upload id or version id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidName {
    /// The string is empty.
    Empty,
    /// The string is longer than S3 allows.
    TooLong,
    /// The string has a character or form that S3 does not allow.
    Malformed,
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the name is empty",
            Self::TooLong => "the name is too long",
            Self::Malformed => "the name is not well formed",
        })
    }
}

impl std::error::Error for InvalidName {}

/// The name of a general purpose bucket.
///
/// It has 3 to 63 lower-case letters, digits, dots and hyphens, and starts and ends with a letter
/// or digit. It has neither two dots in a row nor a dot beside a hyphen (each label is one of a
/// host name), is not an IPv4 address, and has none of the prefixes and suffixes that S3 reserves
/// (S3 user guide, "General purpose bucket naming rules").
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketName(Box<str>);

const RESERVED_PREFIXES: [&str; 4] = ["xn--", "sthree-", "amzn-s3-demo-", "amzn_s3_demo_"];
const RESERVED_SUFFIXES: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

impl BucketName {
    /// Checks `name` against the naming rules.
    pub fn new(name: &str) -> Result<Self, InvalidName> {
        if name.is_empty() {
            return Err(InvalidName::Empty);
        }
        if name.len() > BUCKET_NAME_MAX {
            return Err(InvalidName::TooLong);
        }
        let bytes = name.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let well_formed = bytes.len() >= BUCKET_NAME_MIN
            && bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && (bytes.iter().all(plain) || has_labels(name));
        if well_formed { Ok(Self(name.into())) } else { Err(InvalidName::Malformed) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the bucket's ARN.
    pub fn arn(&self) -> String {
        format!("arn:aws:s3:::{}", self.0)
    }
}

/// Checks the rules about dots and hyphens in a bucket's name. A name without dots and hyphens
/// passes them.
fn has_labels(name: &str) -> bool {
    let allowed = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-');
    let bytes = name.as_bytes();
    bytes.iter().all(allowed)
        && !bytes.windows(2).any(|pair| matches!(pair, b".." | b".-" | b"-."))
        && name.parse::<std::net::Ipv4Addr>().is_err()
        && !RESERVED_PREFIXES.iter().any(|p| name.starts_with(p))
        && !RESERVED_SUFFIXES.iter().any(|s| name.ends_with(s))
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of an object: 1 to 1024 bytes of UTF-8, with any characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Box<str>);

impl ObjectKey {
    /// Checks the length of `key`; every string of 1 to 1024 bytes is a key.
    pub fn new(key: impl Into<Box<str>>) -> Result<Self, InvalidName> {
        let key = key.into();
        match key.len() {
            0 => Err(InvalidName::Empty),
            1..=KEY_BYTES_MAX => Ok(Self(key)),
            _ => Err(InvalidName::TooLong),
        }
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a multipart upload. A backend makes it, and clients do not interpret it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadId(Box<str>);

impl UploadId {
    /// Checks that `id` has 1 to 1024 visible ASCII characters. The backend decides which ids it
    /// cannot have made (`NoSuchUpload`): `..` and `a/b` are valid here.
    pub fn new(id: &str) -> Result<Self, InvalidName> {
        visible_ascii(id, UPLOAD_ID_BYTES_MAX).map(Self)
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a version of an object. A backend makes it, and clients do not interpret it, except
/// for `null`: the version of an object in a bucket that does not keep versions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId(Box<str>);

impl VersionId {
    /// Checks that `id` has 1 to 1024 visible ASCII characters.
    pub fn new(id: &str) -> Result<Self, InvalidName> {
        visible_ascii(id, VERSION_ID_BYTES_MAX).map(Self)
    }

    /// Returns `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// True for `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn visible_ascii(text: &str, bytes_max: usize) -> Result<Box<str>, InvalidName> {
    match text.len() {
        0 => Err(InvalidName::Empty),
        length if length > bytes_max => Err(InvalidName::TooLong),
        _ if !text.bytes().all(|byte| byte.is_ascii_graphic()) => Err(InvalidName::Malformed),
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_rules() {
        for good in ["abc", "a.b", "my-bucket", "0.0.0", "1.2.3.4.5", &"a".repeat(63)] {
            assert!(BucketName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ab",
            "Abc",
            "a_b",
            "-ab",
            "ab-",
            ".ab",
            "ab.",
            "a..b",
            "a.-b",
            "a-.b",
            "192.168.5.4",
            "xn--abc",
            "x-s3alias",
            "a b",
            "abc/",
            ".slipway",
            &"a".repeat(64),
        ] {
            assert!(BucketName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_are_visible_ascii() {
        for good in
            ["null", "3sL4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY+MTRCxf3vjVBH40Nr8X8gdRQBpUMLUo", &"a".repeat(1024)]
        {
            assert_eq!(VersionId::new(good).unwrap().as_str(), good);
            assert_eq!(UploadId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a\n", "\u{e9}", &"a".repeat(1025)] {
            assert!(VersionId::new(bad).is_err() && UploadId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_limited_by_bytes_not_characters() {
        assert!(ObjectKey::new("é".repeat(512)).is_ok());
        assert_eq!(ObjectKey::new("é".repeat(513)), Err(InvalidName::TooLong));
        assert_eq!(ObjectKey::new(""), Err(InvalidName::Empty));
    }
}
