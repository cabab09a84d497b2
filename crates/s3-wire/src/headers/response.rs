//! The headers of answers about objects.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE,
    ETAG, EXPIRES, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use s3_types::{Checksum, ETag, ObjectLock, ObjectMetadata, Timestamp};

use super::metadata::USER_PREFIX;
use super::words;
use crate::error::{ErrorCode, Result, S3Error};
use crate::query::Query;
use crate::time::{format_http_date, format_iso8601_millis};

/// The maximum number of entries of user metadata in a response. S3 accepts far fewer (2 KB in
/// all), but other programs may have stored any number.
const USER_METADATA_ENTRIES_MAX: usize = 1000;
const CHECKSUM_TYPE: HeaderName = HeaderName::from_static("x-amz-checksum-type");
const MISSING_META: HeaderName = HeaderName::from_static("x-amz-missing-meta");
const PARTS_COUNT: HeaderName = HeaderName::from_static("x-amz-mp-parts-count");
const TAGGING_COUNT: HeaderName = HeaderName::from_static("x-amz-tagging-count");
const LOCK_MODE: HeaderName = HeaderName::from_static("x-amz-object-lock-mode");
const RETAIN_UNTIL: HeaderName = HeaderName::from_static("x-amz-object-lock-retain-until-date");
const LEGAL_HOLD: HeaderName = HeaderName::from_static("x-amz-object-lock-legal-hold");
const REDIRECT_LOCATION: HeaderName = HeaderName::from_static("x-amz-website-redirect-location");
const DEFAULT_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("binary/octet-stream");

/// The headers of GetObject and HeadObject about the object, without those of length and range.
#[derive(Debug, Clone, Copy)]
pub struct ObjectHeaders<'a> {
    /// `ETag`, written in quotes.
    pub etag: &'a ETag,
    /// `Last-Modified`.
    pub last_modified: Timestamp,
    /// `Content-*`, `Cache-Control`, `Expires`, `x-amz-meta-*`, `x-amz-website-redirect-location`.
    pub metadata: &'a ObjectMetadata,
    /// The values of `x-amz-checksum-*` and `x-amz-checksum-type`; only to be set if
    /// [`super::checksum_mode_enabled`].
    pub checksum: Option<&'a Checksum>,
    /// The value of `x-amz-mp-parts-count`; only to be set if the request asks for a part.
    pub parts_count: Option<usize>,
    /// The lock of the version; only what the requester may read of it.
    pub lock: ObjectLock,
    /// The value of `x-amz-tagging-count`; only to be set if there are tags, and if the requester
    /// may read them.
    pub tag_count: Option<usize>,
}

impl ObjectHeaders<'_> {
    /// Adds all of these headers to `headers`. There is no `x-amz-storage-class`: S3 sends none for
    /// STANDARD.
    pub fn append_to(&self, headers: &mut HeaderMap) {
        let metadata = self.metadata;
        headers.reserve(12 + metadata.user.len().min(USER_METADATA_ENTRIES_MAX));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        self.append_validators_to(headers);
        insert(headers, CONTENT_ENCODING, metadata.content_encoding.as_deref());
        insert(headers, CONTENT_LANGUAGE, metadata.content_language.as_deref());
        insert(headers, CONTENT_DISPOSITION, metadata.content_disposition.as_deref());
        insert(headers, REDIRECT_LOCATION, metadata.website_redirect_location.as_deref());
        headers.insert(CONTENT_TYPE, DEFAULT_CONTENT_TYPE);
        insert(headers, CONTENT_TYPE, metadata.content_type.as_deref());
        append_user_metadata(headers, &metadata.user);
        if let Some(checksum) = self.checksum {
            append_checksum(headers, checksum);
        }
        if let Some(count) = self.parts_count {
            headers.insert(PARTS_COUNT, HeaderValue::from(count));
        }
        self.append_lock_to(headers);
        if let Some(count) = self.tag_count {
            headers.insert(TAGGING_COUNT, HeaderValue::from(count));
        }
    }

    fn append_lock_to(&self, headers: &mut HeaderMap) {
        let ObjectLock { retention, legal_hold } = self.lock;
        if let Some(retention) = retention {
            headers.insert(LOCK_MODE, HeaderValue::from_static(retention.mode.as_str()));
            insert(headers, RETAIN_UNTIL, Some(&format_iso8601_millis(retention.until())));
        }
        if let Some(held) = legal_hold {
            headers.insert(LEGAL_HOLD, HeaderValue::from_static(if held { "ON" } else { "OFF" }));
        }
    }

    /// Adds the headers that a 304 also has (RFC 9110, section 15.4.5).
    pub fn append_validators_to(&self, headers: &mut HeaderMap) {
        headers.insert(ETAG, etag_value(self.etag));
        // Digits and letters, so that it is always a header's value.
        if let Ok(date) = HeaderValue::try_from(format_http_date(self.last_modified)) {
            headers.insert(LAST_MODIFIED, date);
        }
        insert(headers, CACHE_CONTROL, self.metadata.cache_control.as_deref());
        insert(headers, EXPIRES, self.metadata.expires.as_deref());
    }
}

/// Returns the value of the header `ETag`, in quotes.
pub fn etag_value(etag: &ETag) -> HeaderValue {
    HeaderValue::try_from(etag.quoted()).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Adds `x-amz-checksum-<algorithm>` and `x-amz-checksum-type`.
pub fn append_checksum(headers: &mut HeaderMap, checksum: &Checksum) {
    let name = HeaderName::from_static(checksum.value.algorithm().header());
    insert(headers, name, Some(&checksum.to_string()));
    headers.insert(CHECKSUM_TYPE, HeaderValue::from_static(checksum.checksum_type.name()));
}

/// Adds a header if its text can be a header's value; other programs may have stored any text.
fn insert(headers: &mut HeaderMap, name: HeaderName, text: Option<&str>) {
    if let Some(value) = text.and_then(|text| HeaderValue::from_bytes(text.as_bytes()).ok()) {
        headers.insert(name, value);
    }
}

/// Adds the user metadata. Values beyond printable ASCII are sent as encoded words, as S3 does.
/// Names that no header can have are counted in `x-amz-missing-meta`, and so are entries beyond
/// [`USER_METADATA_ENTRIES_MAX`]: a [`HeaderMap`] that is full panics.
fn append_user_metadata(headers: &mut HeaderMap, user: &[(String, String)]) {
    let mut missing = 0;
    for (n, (short, text)) in user.iter().enumerate() {
        if n == USER_METADATA_ENTRIES_MAX {
            missing += user.len() - n;
            break;
        }
        let mut name = String::with_capacity(USER_PREFIX.len() + short.len());
        name.push_str(USER_PREFIX);
        name.push_str(short);
        match (HeaderName::try_from(name), HeaderValue::from_str(&words::encode(text))) {
            (Ok(name), Ok(value)) if !short.is_empty() => {
                headers.append(name, value);
            }
            _ => missing += 1,
        }
    }
    if missing > 0 {
        headers.insert(MISSING_META, HeaderValue::from(missing));
    }
}

/// The `response-*` parameters of GetObject and HeadObject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResponseOverrides {
    values: Vec<(HeaderName, HeaderValue)>,
}

impl ResponseOverrides {
    /// Reads the query. An anonymous request may not have any of these parameters
    /// (`InvalidRequest`). A value that cannot be a header's is `InvalidArgument`.
    pub fn parse(query: &Query<'_>, is_signed: bool) -> Result<Self> {
        const NAMES: [(&str, HeaderName); 6] = [
            ("response-content-type", CONTENT_TYPE),
            ("response-content-language", CONTENT_LANGUAGE),
            ("response-expires", EXPIRES),
            ("response-cache-control", CACHE_CONTROL),
            ("response-content-disposition", CONTENT_DISPOSITION),
            ("response-content-encoding", CONTENT_ENCODING),
        ];
        let mut values = Vec::new();
        if !query.iter().any(|(name, _)| name.starts_with("response-")) {
            return Ok(Self { values });
        }
        for (parameter, header) in NAMES {
            let Some(text) = query.get_non_empty(parameter) else { continue };
            if !is_signed {
                return Err(S3Error::with_message(
                    ErrorCode::InvalidRequest,
                    "Request specific response headers cannot be used for anonymous GET requests.",
                ));
            }
            values.push((header, override_value(parameter, text)?));
        }
        Ok(Self { values })
    }

    /// Replaces the headers that the parameters name.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.values {
            headers.insert(name.clone(), value.clone());
        }
    }
}

/// Converts a value to ISO 8859-1, in which S3 sends it. S3 refuses other characters.
fn override_value(parameter: &'static str, text: &str) -> Result<HeaderValue> {
    let refuse = |message: &'static str| S3Error::invalid_argument(parameter, text, message);
    let bytes = text
        .chars()
        .map(|c| u8::try_from(c).ok())
        .collect::<Option<Vec<u8>>>()
        .ok_or_else(|| refuse("Header value cannot be represented using ISO-8859-1."))?;
    HeaderValue::from_bytes(&bytes)
        .map_err(|_| refuse("Header value contains characters that are not allowed."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3_types::{ChecksumAlgorithm, ChecksumValue};

    fn text(headers: &HeaderMap) -> Vec<(String, String)> {
        let mut all: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect();
        all.sort();
        all
    }

    fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn render(
        metadata: &ObjectMetadata,
        checksum: Option<&Checksum>,
        parts_count: Option<usize>,
    ) -> HeaderMap {
        let etag = ETag::Multipart { md5: [0xab; 16], parts: 2 };
        let last_modified = Timestamp::new(784_111_777, 999_000_000).unwrap();
        let mut headers = HeaderMap::new();
        ObjectHeaders {
            etag: &etag,
            last_modified,
            metadata,
            checksum,
            parts_count,
            lock: ObjectLock::default(),
            tag_count: None,
        }
        .append_to(&mut headers);
        headers
    }

    #[test]
    fn an_object_without_anything() {
        let expected = [
            ("accept-ranges", "bytes"),
            ("content-type", "binary/octet-stream"),
            ("etag", "\"abababababababababababababababab-2\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ];
        assert_eq!(text(&render(&ObjectMetadata::default(), None, None)), pairs(&expected));
    }

    #[test]
    fn an_object_with_everything() {
        let metadata = ObjectMetadata {
            content_type: Some("text/plain".into()),
            content_encoding: Some("gzip".into()),
            content_language: Some("de".into()),
            content_disposition: Some("attachment; filename=é".into()),
            cache_control: Some("no-cache".into()),
            expires: Some("bad\r\nvalue".into()),
            website_redirect_location: Some("/there".into()),
            user: [("a", "plain"), ("b", "naïve\n"), ("bad name", "x"), ("", "x")]
                .map(|(n, v)| (n.into(), v.into()))
                .into(),
        };
        let checksum = Checksum::full_object(ChecksumValue::new(ChecksumAlgorithm::Crc32, &[0; 4]).unwrap());
        let expected = [
            ("accept-ranges", "bytes"),
            ("cache-control", "no-cache"),
            ("content-disposition", "attachment; filename=é"),
            ("content-encoding", "gzip"),
            ("content-language", "de"),
            ("content-type", "text/plain"),
            ("etag", "\"abababababababababababababababab-2\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-amz-checksum-crc32", "AAAAAA=="),
            ("x-amz-checksum-type", "FULL_OBJECT"),
            ("x-amz-meta-a", "plain"),
            ("x-amz-meta-b", "=?UTF-8?Q?na=C3=AFve=0A?="),
            ("x-amz-missing-meta", "2"),
            ("x-amz-mp-parts-count", "2"),
            ("x-amz-website-redirect-location", "/there"),
        ];
        assert_eq!(text(&render(&metadata, Some(&checksum), Some(2))), pairs(&expected));
    }

    #[test]
    fn what_is_beyond_all_bounds_is_counted() {
        let user = (0..60_000).map(|n| (format!("n{n}"), "x".to_owned())).collect();
        let headers = render(&ObjectMetadata { user, ..ObjectMetadata::default() }, None, Some(7));
        assert_eq!(headers["x-amz-missing-meta"], "59000");
        assert!(headers.contains_key("x-amz-meta-n999") && headers["x-amz-mp-parts-count"] == "7");
        assert_eq!(headers.len(), 1000 + 6);
    }

    #[test]
    fn overrides_replace() {
        let query = "response-content-type=a/b&response-content-language=l&response-expires=e&response-cache-control=c\
                     &response-content-disposition=attachment;%20filename=%C3%A9&response-content-encoding=x&response-x=y";
        let overrides = ResponseOverrides::parse(&Query::parse(query).unwrap(), true).unwrap();
        let mut headers = render(&ObjectMetadata::default(), None, None);
        overrides.apply(&mut headers);
        assert_eq!(headers["content-type"], "a/b");
        assert_eq!(headers["content-language"], "l");
        assert_eq!(headers["expires"], "e");
        assert_eq!(headers["cache-control"], "c");
        assert_eq!(headers["content-disposition"].as_bytes(), b"attachment; filename=\xe9");
        assert_eq!(headers["content-encoding"], "x");
        let none = Query::parse("response-content-type=&x=response-expires").unwrap();
        assert_eq!(ResponseOverrides::parse(&none, false).unwrap(), ResponseOverrides::default());
    }

    #[test]
    fn overrides_that_cannot_be() {
        let parse = |text: &str, is_signed| {
            ResponseOverrides::parse(&Query::parse(text).unwrap(), is_signed).unwrap_err()
        };
        let anonymous = parse("response-expires=x", false);
        assert_eq!(anonymous.code(), ErrorCode::InvalidRequest);
        let message = "Request specific response headers cannot be used for anonymous GET requests.";
        assert_eq!(anonymous.message(), message);
        let wide = parse("response-content-disposition=%E5%BE%AE", true);
        assert_eq!(wide.message(), "Header value cannot be represented using ISO-8859-1.");
        assert_eq!(wide.details()[0], ("ArgumentName", "response-content-disposition".to_owned()));
        assert_eq!(wide.details()[1], ("ArgumentValue", "微".to_owned()));
        let split = parse("response-content-type=a%0d%0aSet-Cookie:%20x", true);
        assert_eq!(
            (split.code(), split.details()[0].1.as_str()),
            (ErrorCode::InvalidArgument, "response-content-type")
        );
    }
}
