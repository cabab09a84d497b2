use http::HeaderMap;

use super::text::{joined, number};
use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::LIST_ITEMS_MAX;

const NAME: &str = "x-amz-object-attributes";

/// The arguments of GetObjectAttributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "a set of five names, each asked for or not")]
pub struct AttributesRequest {
    /// True if the request asks for `ETag`.
    pub etag: bool,
    /// True if the request asks for `Checksum`.
    pub checksum: bool,
    /// True if the request asks for `ObjectParts`.
    pub object_parts: bool,
    /// True if the request asks for `StorageClass`.
    pub storage_class: bool,
    /// True if the request asks for `ObjectSize`.
    pub object_size: bool,
    /// The maximum number of parts on a page: 0 to 1000.
    pub max_parts: usize,
    /// The part number after which the page begins.
    pub part_number_marker: u32,
}

/// Makes S3's error for a request without attributes, which S3 gives after it has found the bucket.
pub fn no_attributes() -> S3Error {
    S3Error::with_message(
        ErrorCode::InvalidRequest,
        "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty",
    )
}

impl AttributesRequest {
    /// Reads the headers; `None` if the request asks for no attribute. S3 ignores `x-amz-max-parts`
    /// and `x-amz-part-number-marker` that are not numbers. Names are separated by commas. Empty
    /// names are ignored at the end of the list, and refused elsewhere, as are unknown ones
    /// (`InvalidArgument`).
    pub fn parse(headers: &HeaderMap) -> Result<Option<Self>> {
        let Some(names) = joined(headers, NAME) else { return Ok(None) };
        let asked = names.trim_end_matches(',');
        if asked.is_empty() && !names.is_empty() {
            return Ok(None);
        }
        let marker = number(headers, "x-amz-part-number-marker").and_then(|n| u32::try_from(n).ok());
        let max_parts = number(headers, "x-amz-max-parts").and_then(|n| usize::try_from(n).ok());
        let mut request = Self {
            max_parts: max_parts.map_or(LIST_ITEMS_MAX, |n| n.min(LIST_ITEMS_MAX)),
            part_number_marker: marker.unwrap_or_default(),
            ..Self::default()
        };
        for name in asked.split(',').map(str::trim) {
            match name {
                "ETag" => request.etag = true,
                "Checksum" => request.checksum = true,
                "ObjectParts" => request.object_parts = true,
                "StorageClass" => request.storage_class = true,
                "ObjectSize" => request.object_size = true,
                _ => return Err(S3Error::invalid_argument(NAME, name, "Invalid attribute name specified.")),
            }
        }
        Ok(Some(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(*name, HeaderValue::from_static(value));
            map
        })
    }

    #[test]
    fn a_list_of_names() {
        let request = AttributesRequest::parse(&headers(&[
            (NAME, "ETag, ObjectSize"),
            (NAME, "ObjectParts"),
            ("x-amz-max-parts", "2000"),
            ("x-amz-part-number-marker", "7"),
        ]));
        let expected = AttributesRequest {
            etag: true,
            object_size: true,
            object_parts: true,
            max_parts: 1000,
            part_number_marker: 7,
            ..AttributesRequest::default()
        };
        assert_eq!(request.unwrap(), Some(expected));
        let all = headers(&[
            (NAME, "ETag,Checksum,ObjectParts,StorageClass,ObjectSize"),
            ("x-amz-max-parts", "-1"),
        ]);
        let request = AttributesRequest::parse(&all).unwrap().unwrap();
        assert!(request.checksum && request.storage_class);
        assert_eq!((request.max_parts, request.part_number_marker), (1000, 0));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for (names, refused) in [
            ("ETag,Dummy", "Dummy"),
            ("etag", "etag"),
            ("", ""),
            (",ETag", ""),
            ("ETag,,ObjectSize", ""),
            ("ETag, ,ObjectSize", ""),
            (" , ", ""),
        ] {
            let error = AttributesRequest::parse(&headers(&[(NAME, names)])).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{names}");
            assert_eq!(error.message(), "Invalid attribute name specified.");
            assert_eq!(error.details()[0], ("ArgumentName", NAME.to_owned()));
            assert_eq!(error.details()[1], ("ArgumentValue", refused.to_owned()));
        }
    }

    #[test]
    fn nothing_may_be_asked_for() {
        for none in [&[][..], &[(NAME, ",")], &[(NAME, ",,")]] {
            assert_eq!(AttributesRequest::parse(&headers(none)).unwrap(), None);
        }
        assert!(AttributesRequest::parse(&headers(&[(NAME, "ETag,,")])).unwrap().unwrap().etag);
    }
}
