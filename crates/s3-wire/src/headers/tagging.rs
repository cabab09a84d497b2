use http::HeaderMap;
use s3_types::limits::OBJECT_TAGS_MAX;
use s3_types::{InvalidTags, Tags};

use super::text::lossless;
use crate::error::{Result, S3Error};
use crate::query::Query;
use crate::tags::{Tagged, refused};

const NAME: &str = "x-amz-tagging";

/// The source of a copy's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TaggingDirective {
    /// The tags of the copied object.
    #[default]
    Copy,
    /// The tags of the request.
    Replace,
}

/// Reads `x-amz-tagging-directive`.
pub fn tagging_directive(headers: &HeaderMap) -> Result<TaggingDirective> {
    const NAME: &str = "x-amz-tagging-directive";
    match lossless(headers, NAME).as_deref() {
        None | Some("COPY") => Ok(TaggingDirective::Copy),
        Some("REPLACE") => Ok(TaggingDirective::Replace),
        Some(text) => Err(S3Error::invalid_argument(NAME, text, "Unknown tagging directive.")),
    }
}

/// Reads `x-amz-tagging`: tags in the form of a query, where a tag without `=` has an empty value.
/// As on S3, most of what an object's tags may not be is `InvalidArgument` here.
pub fn object_tags(headers: &HeaderMap) -> Result<Tags> {
    let Some(raw) = lossless(headers, NAME).filter(|raw| !raw.is_empty()) else { return Ok(Tags::default()) };
    let wrong = || {
        S3Error::invalid_argument(
            NAME,
            raw.as_ref(),
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without \
             tag name duplicates.",
        )
    };
    let query = Query::parse(&raw).map_err(|_| wrong())?;
    let tags = query.iter().map(|(key, value)| (key.into(), value.into())).collect();
    Tags::new(tags, OBJECT_TAGS_MAX).map_err(|invalid| match invalid {
        InvalidTags::Duplicate { .. } | InvalidTags::Key { .. } | InvalidTags::Value { .. } => wrong(),
        InvalidTags::Reserved { .. } | InvalidTags::TooMany => refused(invalid, Tagged::Object),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::error::ErrorCode;

    fn read(value: &str) -> Result<Tags> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        object_tags(&headers)
    }

    fn pairs(value: &str) -> Vec<(String, String)> {
        let tags = read(value).unwrap();
        tags.as_slice().iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    /// Each value in the first lines was recorded at Amazon S3.
    #[test]
    fn tags_are_a_query() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (value, tags) in [
            ("tag1=tag1&tag2=tag2&tag=", vec![pair("tag1", "tag1"), pair("tag2", "tag2"), pair("tag", "")]),
            ("wrongquery&wrongagain", vec![pair("wrongquery", ""), pair("wrongagain", "")]),
            ("key1&&&key2", vec![pair("key1", ""), pair("key2", "")]),
            ("a%20b=c+d&%C3%A9=%2B", vec![pair("a b", "c d"), pair("é", "+")]),
            ("", vec![]),
        ] {
            assert_eq!(pairs(value), tags, "{value}");
        }
    }

    #[test]
    fn what_is_no_query_is_an_invalid_argument() {
        for value in ["key1=val1&key1=val2", "key1=val1,key2=val2", "=a", "a=%FF", "a=%00", "a*=1"] {
            let error = read(value).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{value}");
            assert_eq!(
                error.details(),
                [("ArgumentName", NAME.to_owned()), ("ArgumentValue", value.to_owned())]
            );
        }
        assert_eq!(read("aws:a=1").unwrap_err().code(), ErrorCode::InvalidTag);
        let many: Vec<_> = (0..11).map(|n| format!("k{n}=v")).collect();
        assert_eq!(read(&many.join("&")).unwrap_err().code(), ErrorCode::BadRequest);
        assert_eq!(read(&many[..10].join("&")).unwrap().len(), 10);
        // Of more parameters than a query may have.
        assert_eq!(read(&vec!["a"; 300].join("&")).unwrap_err().code(), ErrorCode::InvalidArgument);
    }
}
