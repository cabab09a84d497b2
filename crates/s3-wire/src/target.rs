//! The bucket and key that a request names: path style and virtual-host style.

use std::borrow::Cow;

use memchr::memchr;
use percent_encoding::percent_decode_str;
use s3_types::{BucketName, InvalidName, ObjectKey};

use crate::error::{ErrorCode, Result, S3Error};
use crate::split::cut;

/// The kind of a request's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The service: `/`.
    Service,
    /// A bucket: `/bucket`.
    Bucket,
    /// An object: `/bucket/key`.
    Object,
}

impl Shape {
    /// Returns S3's name for the kind in `ResourceType`.
    pub const fn resource_type(self) -> &'static str {
        match self {
            Self::Service => "SERVICE",
            Self::Bucket => "BUCKET",
            Self::Object => "OBJECT",
        }
    }
}

/// The bucket and key of a request, decoded and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The service itself.
    Service,
    /// A bucket.
    Bucket(BucketName),
    /// An object.
    Object(BucketName, ObjectKey),
}

impl Target {
    /// Reads the target from the raw path (as it was sent, percent-encoded), and from the bucket in
    /// the host, if there is one ([`bucket_of_host`]).
    pub fn parse(virtual_bucket: Option<&str>, raw_path: &str) -> Result<Self> {
        let path = raw_path.strip_prefix('/').ok_or(ErrorCode::InvalidURI)?;
        let (bucket, raw_key) = if let Some(bucket) = virtual_bucket {
            (Cow::Borrowed(bucket), path)
        } else {
            let (bucket, key) = cut(path, b'/');
            if bucket.is_empty() {
                return if key.is_empty() { Ok(Self::Service) } else { Err(invalid_bucket("")) };
            }
            (decode(bucket)?, key)
        };
        let name = BucketName::new(&bucket).map_err(|_| invalid_bucket(&bucket))?;
        if raw_key.is_empty() {
            return Ok(Self::Bucket(name));
        }
        Ok(Self::Object(name, parse_key(raw_key)?))
    }

    /// Returns the kind of target.
    pub const fn shape(&self) -> Shape {
        match self {
            Self::Service => Shape::Service,
            Self::Bucket(_) => Shape::Bucket,
            Self::Object(..) => Shape::Object,
        }
    }

    /// Returns the bucket; `None` for the service.
    pub const fn bucket(&self) -> Option<&BucketName> {
        match self {
            Self::Service => None,
            Self::Bucket(bucket) | Self::Object(bucket, _) => Some(bucket),
        }
    }

    /// Returns the key; `None` for the service and for a bucket.
    pub const fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(_, key) => Some(key),
            _ => None,
        }
    }
}

/// Reads a percent-encoded key: `InvalidURI` if it is not UTF-8, `KeyTooLongError` if it is longer
/// than 1024 bytes.
pub fn parse_key(raw: &str) -> Result<ObjectKey> {
    checked_key(&decode(raw)?)
}

/// Decodes percent-encoded text. Text without encoded characters is returned without a second
/// search.
fn decode(raw: &str) -> Result<Cow<'_, str>> {
    if memchr(b'%', raw.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(raw));
    }
    percent_decode_str(raw).decode_utf8().map_err(|_| ErrorCode::InvalidURI.into())
}

/// Makes a key of decoded text (from XML or a copy source): `InvalidURI` if it is empty,
/// `KeyTooLongError` if it is longer than 1024 bytes.
pub fn checked_key(key: &str) -> Result<ObjectKey> {
    ObjectKey::new(key).map_err(|invalid| match invalid {
        InvalidName::TooLong => S3Error::new(ErrorCode::KeyTooLongError)
            .detail("Size", key.len().to_string())
            .detail("MaxSizeAllowed", s3_types::limits::KEY_BYTES_MAX.to_string()),
        _ => S3Error::new(ErrorCode::InvalidURI),
    })
}

fn invalid_bucket(name: &str) -> S3Error {
    S3Error::new(ErrorCode::InvalidBucketName).detail("BucketName", name)
}

/// Returns the bucket that a host names (virtual-host style); `None` for a host of path style.
///
/// `domains` are the names, in lower case, below which buckets are hosts (`bucket.s3.example.org`).
/// A host that is one of them, or is not below one, is path style. Both styles work at the same
/// time. Ports and case do not matter.
pub fn bucket_of_host(host: &str, domains: &[String]) -> Option<String> {
    if domains.is_empty() {
        return None;
    }
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if domains.contains(&host) {
        return None;
    }
    // The longest counts of domains that lie below each other.
    let below = |domain: &&String| {
        host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
    };
    let domain = domains.iter().filter(below).max_by_key(|domain| domain.len())?;
    host.get(..host.len() - domain.len() - 1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(host: &str, path: &str) -> std::result::Result<(String, String), &'static str> {
        let domains = ["s3.example.org".to_owned(), "localhost".to_owned()];
        Target::parse(bucket_of_host(host, &domains).as_deref(), path)
            .map(|t| {
                let text = |s: Option<&str>| s.unwrap_or("-").to_owned();
                (text(t.bucket().map(BucketName::as_str)), text(t.key().map(ObjectKey::as_str)))
            })
            .map_err(|e| e.code().into())
    }

    fn pair(bucket: &str, key: &str) -> (String, String) {
        (bucket.into(), key.into())
    }

    #[test]
    fn both_styles_at_once() {
        assert_eq!(parse("s3.example.org", "/"), Ok(pair("-", "-")));
        assert_eq!(parse("s3.example.org", "/abc"), Ok(pair("abc", "-")));
        assert_eq!(parse("s3.example.org:9000", "/abc/"), Ok(pair("abc", "-")));
        assert_eq!(parse("127.0.0.1:9000", "/abc/d/e"), Ok(pair("abc", "d/e")));
        assert_eq!(parse("abc.S3.example.org:9000", "/d/e"), Ok(pair("abc", "d/e")));
        assert_eq!(parse("a.b.localhost", "/"), Ok(pair("a.b", "-")));
        assert_eq!(parse("abc.localhost", "//x/"), Ok(pair("abc", "/x/")));
        assert_eq!(parse("h", "/abc//x"), Ok(pair("abc", "/x")));
        assert_eq!(parse("h", "/abc/a%2Fb%20c+d"), Ok(pair("abc", "a/b c+d")));
        assert_eq!(parse("h", "/abc/../x"), Ok(pair("abc", "../x")));
    }

    #[test]
    fn the_longest_domain_counts() {
        for domains in [["lab.example", "s3.lab.example"], ["s3.lab.example", "lab.example"]] {
            let domains = domains.map(str::to_owned);
            let bucket = |host| bucket_of_host(host, &domains);
            assert_eq!(bucket("s3.lab.example"), None);
            assert_eq!(bucket("s3.lab.example:9000"), None);
            assert_eq!(bucket("s3.lab.example.:9000"), None);
            assert_eq!(bucket("abc.S3.lab.example."), Some("abc".to_owned()));
            assert_eq!(bucket("abc.lab.example"), Some("abc".to_owned()));
            assert_eq!(bucket(".lab.example"), None);
            assert_eq!(bucket("xlab.example"), None);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert_eq!(parse("h", "/A_b/x"), Err("InvalidBucketName"));
        assert_eq!(parse("h", "//x"), Err("InvalidBucketName"));
        assert_eq!(parse("h", "/abc/%FF"), Err("InvalidURI"));
        assert_eq!(parse("h", &format!("/abc/{}", "k".repeat(1025))), Err("KeyTooLongError"));
        assert!(parse("h", &format!("/abc/{}", "k".repeat(1024))).is_ok());
    }
}
