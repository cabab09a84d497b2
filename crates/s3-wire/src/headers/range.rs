use std::ops::Range;

use http::HeaderMap;
use s3_types::ByteRange;
use s3_types::limits::PARTS_MAX;

use super::text::lossless;
use crate::error::{ErrorCode, Result, S3Error};
use crate::query::Query;

/// The part of an object that a GET or HEAD asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection<'h> {
    /// The whole object.
    Whole,
    /// A `Range`, with its text for the error `InvalidRange`.
    Range(ByteRange, &'h str),
    /// The part with this `partNumber`.
    Part(u32),
}

/// Reads `Range` and `partNumber`; S3 refuses both at once with `InvalidRequest`.
pub fn selection<'h>(headers: &'h HeaderMap, query: &Query<'_>) -> Result<Selection<'h>> {
    match (range(headers), part_number(query)?) {
        (None, None) => Ok(Selection::Whole),
        (Some((range, raw)), None) => Ok(Selection::Range(range, raw)),
        (None, Some(part)) => Ok(Selection::Part(part)),
        (Some(_), Some(_)) => Err(S3Error::with_message(
            ErrorCode::InvalidRequest,
            "Cannot specify both Range header and partNumber query parameter",
        )),
    }
}

/// Reads `Range`; returns it with its text for the error `InvalidRange`. A value that is malformed,
/// or names several ranges or another unit, is ignored: S3 then answers 200 with the whole object.
/// A value with white space inside is malformed too.
pub fn range(headers: &HeaderMap) -> Option<(ByteRange, &str)> {
    let mut values = headers.get_all(http::header::RANGE).iter();
    let raw = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    let (unit, set) = raw.trim().split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let range = match set.split_once('-')? {
        ("", last) => ByteRange::Last { length: offset(last)? },
        (first, "") => ByteRange::From { first: offset(first)? },
        (first, last) => {
            let (first, last) = (offset(first)?, offset(last)?);
            (first <= last).then_some(ByteRange::FromTo { first, last })?
        }
    };
    Some((range, raw))
}

/// Reads an offset of digits only. A number that does not fit 64 bits becomes the largest, which no
/// object reaches either.
fn offset(digits: &str) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Reads `x-amz-copy-source-range` of UploadPartCopy, as first byte and end.
pub fn copy_source_range(headers: &HeaderMap) -> Result<Option<Range<u64>>> {
    const NAME: &str = "x-amz-copy-source-range";
    const MESSAGE: &str = "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last \
                           are the zero-based offsets of the first and last bytes to copy";
    let Some(text) = lossless(headers, NAME) else { return Ok(None) };
    let parsed = text.strip_prefix("bytes=").and_then(|set| set.split_once('-')).and_then(|(first, last)| {
        let (first, last) = (offset(first)?, offset(last)?);
        (first <= last).then(|| first..last.saturating_add(1))
    });
    match parsed {
        Some(range) => Ok(Some(range)),
        None => Err(S3Error::invalid_argument(NAME, text, MESSAGE)),
    }
}

/// Returns the value of `Content-Range` for a range that is not empty.
pub fn content_range(range: &Range<u64>, size_bytes: u64) -> String {
    format!("bytes {}-{}/{size_bytes}", range.start, range.end.saturating_sub(1))
}

/// Reads `partNumber`: 1 to 10,000.
pub fn part_number(query: &Query<'_>) -> Result<Option<u32>> {
    let Some(text) = query.get("partNumber") else { return Ok(None) };
    match offset(text).and_then(|n| u32::try_from(n).ok()) {
        Some(number @ 1..=PARTS_MAX) => Ok(Some(number)),
        _ => Err(S3Error::invalid_argument(
            "partNumber",
            text,
            "Part number must be an integer between 1 and 10000, inclusive",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut map = HeaderMap::new();
        map.insert(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        map
    }

    #[test]
    fn one_range_of_bytes() {
        use ByteRange::{From, FromTo, Last};
        let parse = |text| range(&headers("range", text)).map(|(range, _)| range);
        assert_eq!(parse("bytes=0-9"), Some(FromTo { first: 0, last: 9 }));
        assert_eq!(parse("bytes=5-"), Some(From { first: 5 }));
        assert_eq!(parse("bytes=-5"), Some(Last { length: 5 }));
        assert_eq!(parse("bytes=-0"), Some(Last { length: 0 }));
        assert_eq!(parse(" Bytes=1-2 "), Some(FromTo { first: 1, last: 2 }));
        let beyond = format!("bytes=0-{}0", u64::MAX);
        assert_eq!(parse(&beyond), Some(FromTo { first: 0, last: u64::MAX }));
        for ignored in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=9-0",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "bytes=+1-2",
            "bytes=0x1-2",
            "chars=0-1",
            "bytes=1",
            "0-1",
            "bytes=--1",
            "bytes=1--2",
            "bytes= -1",
            "bytes=0 -1",
            "bytes=0- 1",
            "bytes =0-1",
            "bytes=\u{e9}-1",
        ] {
            assert_eq!(parse(ignored), None, "{ignored}");
        }
        let mut twice = headers("range", "bytes=0-1");
        twice.append("range", HeaderValue::from_static("bytes=2-3"));
        assert_eq!(range(&twice), None);
        assert_eq!(range(&headers("range", " bytes=0-1")).unwrap().1, " bytes=0-1");
    }

    #[test]
    fn a_copy_range_is_exact() {
        let parse = |text| copy_source_range(&headers("x-amz-copy-source-range", text));
        assert_eq!(parse("bytes=0-9").unwrap(), Some(0..10));
        assert_eq!(parse("bytes=7-7").unwrap(), Some(7..8));
        assert_eq!(copy_source_range(&HeaderMap::new()).unwrap(), None);
        for bad in ["", "bytes=0-", "bytes=-5", "bytes=5-4", "bytes=0-1,2-3", "0-1", "bytes=a-b"] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument);
            assert!(
                error.message().ends_with(
                    "first and last are the zero-based offsets of the first and last bytes to copy"
                )
            );
            assert!(
                error.message().starts_with(
                    "The x-amz-copy-source-range value must be of the form bytes=first-last where"
                )
            );
            let details: Vec<_> = error.details().iter().map(|(n, t)| (*n, t.as_str())).collect();
            assert_eq!(details, [("ArgumentName", "x-amz-copy-source-range"), ("ArgumentValue", bad)]);
        }
    }

    #[test]
    fn parts_are_numbered_from_one() {
        let parse = |text: &str| part_number(&Query::parse(text).unwrap());
        assert_eq!(parse("x=1").unwrap(), None);
        assert_eq!(parse("partNumber=1").unwrap(), Some(1));
        assert_eq!(parse("partNumber=10000").unwrap(), Some(10_000));
        for bad in ["0", "10001", "-1", "", "a", "1.0", "99999999999999999999"] {
            let error = parse(&format!("partNumber={bad}")).unwrap_err();
            assert_eq!(error.message(), "Part number must be an integer between 1 and 10000, inclusive");
            assert_eq!(error.details()[0].1, "partNumber");
            assert_eq!(error.details()[1].1, bad);
        }
    }

    #[test]
    fn a_range_or_a_part() {
        let none = Query::default();
        let part = Query::parse("partNumber=3").unwrap();
        let ranged = headers("range", "bytes=0-1");
        assert_eq!(selection(&HeaderMap::new(), &none).unwrap(), Selection::Whole);
        assert_eq!(selection(&HeaderMap::new(), &part).unwrap(), Selection::Part(3));
        let range = Selection::Range(ByteRange::FromTo { first: 0, last: 1 }, "bytes=0-1");
        assert_eq!(selection(&ranged, &none).unwrap(), range);
        assert_eq!(selection(&ranged, &part).unwrap_err().code(), ErrorCode::InvalidRequest);
        assert_eq!(content_range(&(0..10), 100), "bytes 0-9/100");
    }
}
