use http::HeaderMap;
use percent_encoding::percent_decode_str;
use s3_types::{BucketName, ObjectKey};

use super::text::lossless;
use crate::error::{Result, S3Error};
use crate::target::checked_key;

const NAME: &str = "x-amz-copy-source";

/// The object that CopyObject or UploadPartCopy copies from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySourceRef {
    /// The source's bucket.
    pub bucket: BucketName,
    /// The source's key.
    pub key: ObjectKey,
    /// The source's version (`?versionId=`).
    pub version_id: Option<String>,
}

/// Reads `x-amz-copy-source`: `bucket/key` or `/bucket/key`, URL-encoded as a whole or by segment,
/// where `+` means a space (a client that does not encode a `+` gets `NoSuchKey` from S3 too). The
/// ARN of an access point is `NotImplemented`.
pub fn copy_source(headers: &HeaderMap) -> Result<CopySourceRef> {
    let raw = lossless(headers, NAME).unwrap_or_default();
    let refuse = |message: &'static str| S3Error::invalid_argument(NAME, raw.as_ref(), message);
    if raw.starts_with("arn:") || raw.starts_with("/arn:") {
        return Err(S3Error::header_not_implemented(NAME));
    }
    // A key may contain a bare question mark, but not one followed by `versionId=`.
    let (path, version_id) = match raw.rsplit_once("?versionId=") {
        Some((path, id)) => (path, Some(id)),
        None => (raw.as_ref(), None),
    };
    let path = decode(path).ok_or_else(|| refuse("Invalid copy source encoding"))?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let bucket = BucketName::new(bucket).map_err(|_| refuse("Invalid copy source bucket name"))?;
    if key.is_empty() {
        // S3 gives the header's name here in place of its value.
        return Err(S3Error::invalid_argument(NAME, NAME, "Invalid copy source object key"));
    }
    let version_id = match version_id {
        Some("") => return Err(refuse("Version id cannot be the empty string")),
        Some(id) => Some(decode(id).ok_or_else(|| refuse("Invalid copy source encoding"))?),
        None => None,
    };
    Ok(CopySourceRef { bucket, key: checked_key(key)?, version_id })
}

/// Decodes percent-encoded text, with `+` for a space; `None` if a `%` is not followed by two hex
/// digits, or the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut escapes = text.split('%');
    escapes.next();
    if !escapes.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit())) {
        return None;
    }
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use http::HeaderValue;

    fn parse(value: &str) -> Result<CopySourceRef> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        copy_source(&headers)
    }

    fn parts(value: &str) -> (String, String, Option<String>) {
        let source = parse(value).unwrap();
        (source.bucket.as_str().into(), source.key.as_str().into(), source.version_id)
    }

    fn triple(bucket: &str, key: &str, version_id: Option<&str>) -> (String, String, Option<String>) {
        (bucket.into(), key.into(), version_id.map(Into::into))
    }

    #[test]
    fn all_the_ways_to_write_it() {
        assert_eq!(parts("bkt/a/b"), triple("bkt", "a/b", None));
        assert_eq!(parts("/bkt/a/b"), triple("bkt", "a/b", None));
        assert_eq!(parts("/bkt//b"), triple("bkt", "/b", None));
        assert_eq!(parts("bkt%2Fa%2Fb"), triple("bkt", "a/b", None));
        assert_eq!(parts("%2Fbkt/a"), triple("bkt", "a", None));
        assert_eq!(parts("bkt/a%20b+c%2Bd%25"), triple("bkt", "a b c+d%", None));
        assert_eq!(parts("bkt/\u{e9}%C3%A9"), triple("bkt", "éé", None));
        assert_eq!(parts("bkt/a?versionId=null"), triple("bkt", "a", Some("null")));
        assert_eq!(parts("bkt/what?"), triple("bkt", "what?", None));
        assert_eq!(parts("bkt/a%3FversionId=x"), triple("bkt", "a?versionId=x", None));
    }

    #[test]
    fn what_names_no_object_is_refused() {
        for (value, message) in [
            ("", "Invalid copy source bucket name"),
            ("/", "Invalid copy source bucket name"),
            ("/Bad_Bucket/key", "Invalid copy source bucket name"),
            ("bkt", "Invalid copy source object key"),
            ("bkt/", "Invalid copy source object key"),
            ("bkt/%%%%", "Invalid copy source encoding"),
            ("bkt/%F", "Invalid copy source encoding"),
            ("bkt/%FF", "Invalid copy source encoding"),
            ("bkt/a?versionId=", "Version id cannot be the empty string"),
        ] {
            let error = parse(value).unwrap_err();
            assert_eq!((error.code(), error.message()), (ErrorCode::InvalidArgument, message), "{value}");
            assert_eq!(error.details()[0], ("ArgumentName", NAME.to_owned()));
            let shown = if message.ends_with("object key") { NAME } else { value };
            assert_eq!(error.details()[1], ("ArgumentValue", shown.to_owned()));
        }
        let arn = parse("arn:aws:s3:us-west-2:123456789012:accesspoint/my-ap/object/k").unwrap_err();
        assert_eq!(arn.code(), ErrorCode::NotImplemented);
        assert_eq!(
            parse(&format!("bkt/{}", "k".repeat(1025))).unwrap_err().code(),
            ErrorCode::KeyTooLongError
        );
        assert!(copy_source(&HeaderMap::new()).is_err());
    }
}
