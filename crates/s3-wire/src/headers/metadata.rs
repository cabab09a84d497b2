use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
};
use http::{HeaderMap, HeaderName};
use s3_types::ObjectMetadata;
use s3_types::limits::USER_METADATA_BYTES_MAX;

use super::text::{decode, has, joined, lossless, trimmed};
use super::words;
use crate::error::{ErrorCode, Result, S3Error};

/// The prefix of the headers that carry user metadata.
pub(super) const USER_PREFIX: &str = "x-amz-meta-";

/// Reads the metadata that PutObject, CreateMultipartUpload or CopyObject attaches to an object.
///
/// User metadata is kept as S3 keeps it: repeated headers are joined by commas, encoded words (RFC
/// 2047) are decoded, and a header without a name after the prefix is dropped. More than 2 KiB of
/// it, as sent, is `MetadataTooLarge`.
pub fn object_metadata(headers: &HeaderMap) -> Result<ObjectMetadata> {
    let text = |name: HeaderName| {
        let text = trimmed(headers.get(&name)?);
        (!text.is_empty()).then(|| text.into_owned())
    };
    Ok(ObjectMetadata {
        content_type: text(CONTENT_TYPE),
        content_encoding: content_encoding(headers),
        content_language: text(CONTENT_LANGUAGE),
        content_disposition: text(CONTENT_DISPOSITION),
        cache_control: text(CACHE_CONTROL),
        expires: text(EXPIRES),
        website_redirect_location: redirect_location(headers)?,
        user: user_metadata(headers)?,
    })
}

/// Reads `Content-Encoding`. If the request gives the decoded length of a framed payload,
/// `aws-chunked` describes the framing, not the object, and is left out. Otherwise it is kept: S3
/// lets clients store an object with that encoding.
fn content_encoding(headers: &HeaderMap) -> Option<String> {
    let all = joined(headers, CONTENT_ENCODING.as_str())?;
    let kept = if has(headers, "x-amz-decoded-content-length") && all.split(',').any(is_framing) {
        all.split(',').filter(|token| !is_framing(token)).map(str::trim).collect::<Vec<_>>().join(",")
    } else {
        all.trim().to_owned()
    };
    (!kept.is_empty()).then_some(kept)
}

/// True if `Content-Encoding` names `aws-chunked`.
pub fn names_framing(headers: &HeaderMap) -> bool {
    has(headers, CONTENT_ENCODING.as_str())
        && joined(headers, CONTENT_ENCODING.as_str()).is_some_and(|all| all.split(',').any(is_framing))
}

fn is_framing(token: &str) -> bool {
    token.trim().eq_ignore_ascii_case("aws-chunked")
}

/// Reads `x-amz-website-redirect-location`, the address to which a website redirects requests for
/// the object.
pub fn redirect_location(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(text) = lossless(headers, "x-amz-website-redirect-location") else { return Ok(None) };
    if ["/", "http://", "https://"].iter().any(|start| text.starts_with(start)) {
        return Ok(Some(text.into_owned()));
    }
    Err(ErrorCode::InvalidRedirectLocation.into())
}

fn user_metadata(headers: &HeaderMap) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    let mut size_bytes = 0;
    for name in headers.keys() {
        let Some(short) = name.as_str().strip_prefix(USER_PREFIX).filter(|rest| !rest.is_empty()) else {
            continue;
        };
        let mut value = String::new();
        size_bytes += short.len();
        for (n, next) in headers.get_all(name).iter().map(decode).enumerate() {
            if n > 0 {
                value.push(',');
            }
            size_bytes += next.len() + usize::from(n > 0);
            value.push_str(&words::decode(&next));
        }
        all.push((short.to_owned(), value));
    }
    if size_bytes > USER_METADATA_BYTES_MAX {
        return Err(S3Error::new(ErrorCode::MetadataTooLarge)
            .detail("Size", size_bytes.to_string())
            .detail("MaxSizeAllowed", USER_METADATA_BYTES_MAX.to_string()));
    }
    Ok(all)
}

/// The source of a copy's metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataDirective {
    /// The metadata of the copied object.
    #[default]
    Copy,
    /// The metadata of the request.
    Replace,
}

/// Reads `x-amz-metadata-directive`.
pub fn metadata_directive(headers: &HeaderMap) -> Result<MetadataDirective> {
    const NAME: &str = "x-amz-metadata-directive";
    match lossless(headers, NAME).as_deref() {
        None | Some("COPY") => Ok(MetadataDirective::Copy),
        Some("REPLACE") => Ok(MetadataDirective::Replace),
        Some(text) => Err(S3Error::invalid_argument(NAME, text, "Unknown metadata directive.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap());
        }
        map
    }

    #[test]
    fn what_is_attached() {
        let metadata = object_metadata(&headers(&[
            ("content-type", b"text/plain"),
            ("content-language", b"de"),
            ("content-disposition", "attachment; filename=\"é\"".as_bytes()),
            ("cache-control", b"no-cache"),
            ("expires", b"whenever"),
            ("x-amz-website-redirect-location", b"/there"),
            ("x-amz-meta-a", b"1"),
            ("x-amz-meta-b", "é".as_bytes()),
            ("x-amz-meta-a", b"2"),
            ("x-amz-meta-latin", b"\xe9"),
            ("x-amz-meta-word", b"=?UTF-8?B?w6k=?="),
            ("x-amz-meta-", b"dropped"),
            ("x-amz-acl", b"private"),
        ]));
        let user = [("a", "1,2"), ("b", "é"), ("latin", "é"), ("word", "é")];
        let expected = ObjectMetadata {
            content_type: Some("text/plain".into()),
            content_encoding: None,
            content_language: Some("de".into()),
            content_disposition: Some("attachment; filename=\"é\"".into()),
            cache_control: Some("no-cache".into()),
            expires: Some("whenever".into()),
            website_redirect_location: Some("/there".into()),
            user: user.map(|(name, value)| (name.into(), value.into())).into(),
        };
        assert_eq!(metadata.unwrap(), expected);
        assert_eq!(object_metadata(&headers(&[("content-type", b"")])).unwrap(), ObjectMetadata::default());
    }

    #[test]
    fn framing_is_no_encoding() {
        let read = |values: &[&'static [u8]], length: &[(&'static str, &'static [u8])]| {
            let pairs = values.iter().map(|value| ("content-encoding", *value));
            let pairs: Vec<_> = pairs.chain(length.iter().copied()).collect();
            object_metadata(&headers(&pairs)).unwrap().content_encoding
        };
        let encoding = |values| read(values, &[("x-amz-decoded-content-length", b"1")]);
        assert_eq!(read(&[b"aws-chunked, gzip"], &[]).as_deref(), Some("aws-chunked, gzip"));
        assert_eq!(encoding(&[]), None);
        assert_eq!(encoding(&[b"aws-chunked"]), None);
        assert_eq!(encoding(&[b"AWS-Chunked, gzip"]).as_deref(), Some("gzip"));
        assert_eq!(encoding(&[b"gzip,aws-chunked"]).as_deref(), Some("gzip"));
        assert_eq!(encoding(&[b"aws-chunked", b"gzip, br"]).as_deref(), Some("gzip,br"));
        assert_eq!(encoding(&[b"gzip, br"]).as_deref(), Some("gzip, br"));
        assert_eq!(encoding(&[b""]), None);
    }

    #[test]
    fn user_metadata_is_limited() {
        let of = |length: usize| {
            let mut map = headers(&[("x-amz-meta-ab", b"")]);
            map.insert("x-amz-meta-c", HeaderValue::try_from("v".repeat(length)).unwrap());
            object_metadata(&map)
        };
        assert!(of(2045).is_ok());
        let error = of(2046).unwrap_err();
        assert_eq!(error.code(), ErrorCode::MetadataTooLarge);
        assert_eq!(error.message(), "Your metadata headers exceed the maximum allowed metadata size");
        assert_eq!(error.details(), [("Size", "2049".to_owned()), ("MaxSizeAllowed", "2048".to_owned())]);
    }

    #[test]
    fn redirects_and_directives() {
        let redirect = object_metadata(&headers(&[("x-amz-website-redirect-location", b"there")]));
        assert_eq!(redirect.unwrap_err().code(), ErrorCode::InvalidRedirectLocation);
        let directive =
            |value: &'static [u8]| metadata_directive(&headers(&[("x-amz-metadata-directive", value)]));
        assert_eq!(metadata_directive(&HeaderMap::new()).unwrap(), MetadataDirective::Copy);
        assert_eq!(directive(b"COPY").unwrap(), MetadataDirective::Copy);
        assert_eq!(directive(b"REPLACE").unwrap(), MetadataDirective::Replace);
        let error = directive(b"MOVE").unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (ErrorCode::InvalidArgument, "Unknown metadata directive.")
        );
        assert_eq!(error.details()[0].1, "x-amz-metadata-directive");
        assert_eq!(error.details()[1].1, "MOVE");
    }
}
