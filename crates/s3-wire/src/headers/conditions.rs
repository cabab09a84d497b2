use http::HeaderMap;
use s3_types::{Conditions, ETag, ETagCondition, Timestamp};

use super::{ascii, joined, lossless};
use crate::Result;
use crate::error::S3Error;
use crate::time::{parse_http_date, parse_iso8601};

/// `If-Match`, `If-None-Match`, `If-Modified-Since` and `If-Unmodified-Since` of GetObject and HeadObject. Dates that
/// are none are ignored (RFC 9110, section 13.1.3).
pub fn read_conditions(headers: &HeaderMap) -> Conditions {
    Conditions {
        if_match: etags(headers, "if-match"),
        if_none_match: etags(headers, "if-none-match"),
        if_modified_since: date(headers, "if-modified-since"),
        if_unmodified_since: date(headers, "if-unmodified-since"),
        ..Conditions::default()
    }
}

/// `x-amz-copy-source-if-*`: the same four for the source of CopyObject and UploadPartCopy.
pub fn copy_source_conditions(headers: &HeaderMap) -> Conditions {
    Conditions {
        if_match: etags(headers, "x-amz-copy-source-if-match"),
        if_none_match: etags(headers, "x-amz-copy-source-if-none-match"),
        if_modified_since: date(headers, "x-amz-copy-source-if-modified-since"),
        if_unmodified_since: date(headers, "x-amz-copy-source-if-unmodified-since"),
        ..Conditions::default()
    }
}

/// `If-Match` and `If-None-Match` of PutObject, CompleteMultipartUpload and the target of CopyObject.
///
/// S3 knows `If-None-Match` with `*` alone, and not both headers at once; the conditions by date are of reads only.
/// All else gives `NotImplemented`.
pub fn write_conditions(headers: &HeaderMap) -> Result<Conditions> {
    refuse(headers, &["If-Modified-Since", "If-Unmodified-Since"])?;
    let if_match = strict_etags(headers, "if-match");
    let if_none_match = strict_etags(headers, "if-none-match");
    if if_none_match.as_ref().is_some_and(|c| if_match.is_some() || *c != ETagCondition::Any) {
        return Err(S3Error::header_not_implemented("If-None-Match"));
    }
    Ok(Conditions { if_match, if_none_match, ..Conditions::default() })
}

/// `If-Match`, `x-amz-if-match-size` and `x-amz-if-match-last-modified-time` of DeleteObject. A value that cannot be
/// understood is `InvalidArgument`: to ignore it would delete what the client wants kept.
pub fn delete_conditions(headers: &HeaderMap) -> Result<Conditions> {
    refuse(headers, &["If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])?;
    let modified = understood(headers, "x-amz-if-match-last-modified-time", parse_time)?;
    Ok(Conditions {
        if_match: strict_etags(headers, "if-match"),
        if_match_size: understood(headers, "x-amz-if-match-size", |text| text.parse().ok())?,
        if_match_last_modified: modified,
        ..Conditions::default()
    })
}

/// When the upload that AbortMultipartUpload ends must have been created
/// (`x-amz-if-match-initiated-time`), to the second.
pub fn if_match_initiated_time(headers: &HeaderMap) -> Result<Option<Timestamp>> {
    understood(headers, "x-amz-if-match-initiated-time", parse_time)
}

fn understood<T>(
    headers: &HeaderMap,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(text) = lossless(headers, name) else { return Ok(None) };
    let refuse =
        || S3Error::invalid_argument(name, text.as_ref(), format!("Value for {name} header is invalid."));
    parse(&text).map(Some).ok_or_else(refuse)
}

fn parse_time(text: &str) -> Option<Timestamp> {
    parse_http_date(text).or_else(|| parse_iso8601(text))
}

fn refuse(headers: &HeaderMap, names: &[&'static str]) -> Result<()> {
    match names.iter().find(|name| headers.contains_key(**name)) {
        Some(name) => Err(S3Error::header_not_implemented(name)),
        None => Ok(()),
    }
}

fn date(headers: &HeaderMap, name: &str) -> Option<Timestamp> {
    parse_http_date(ascii(headers, name)?)
}

/// A header without any ETag counts as missing.
fn etags(headers: &HeaderMap, name: &str) -> Option<ETagCondition> {
    strict_etags(headers, name).filter(|c| *c != ETagCondition::OneOf(Vec::new()))
}

/// A header without any ETag matches nothing.
fn strict_etags(headers: &HeaderMap, name: &str) -> Option<ETagCondition> {
    let text = joined(headers, name)?;
    if text.trim() == "*" {
        return Some(ETagCondition::Any);
    }
    let mut quoted = false;
    let list = text.split(|c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    });
    Some(ETagCondition::OneOf(list.map(str::trim).filter(|tag| !tag.is_empty()).map(ETag::parse).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[allow(clippy::unnecessary_wraps, reason = "the form in which conditions hold it")]
    fn one_of(tags: &[&str]) -> Option<ETagCondition> {
        Some(ETagCondition::OneOf(tags.iter().map(|t| ETag::parse(t)).collect()))
    }

    fn refused(error: &S3Error) -> (&'static str, Option<&str>) {
        (error.code().into(), error.details().first().map(|(_, text)| text.as_str()))
    }

    #[test]
    fn lists_of_etags() {
        let read = |value| read_conditions(&headers(&[("if-match", value)])).if_match;
        assert_eq!(read("*"), Some(ETagCondition::Any));
        assert_eq!(read(" * "), Some(ETagCondition::Any));
        assert_eq!(read("\"*\""), one_of(&["*"]));
        assert_eq!(read("\"a\""), one_of(&["a"]));
        assert_eq!(read("a"), one_of(&["a"]));
        assert_eq!(read("W/\"a\", b ,\"c,d\","), one_of(&["a", "b", "c,d"]));
        assert_eq!(read(""), None);
        assert_eq!(read(" ,"), None);
        let twice = headers(&[("if-none-match", "\"a\""), ("if-none-match", "\"b\"")]);
        assert_eq!(read_conditions(&twice).if_none_match, one_of(&["a", "b"]));
    }

    #[test]
    fn dates_that_are_none_are_ignored() {
        let map = headers(&[
            ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("if-unmodified-since", "yesterday"),
            ("x-amz-copy-source-if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-amz-copy-source-if-modified-since", "\u{e9}"),
            ("x-amz-copy-source-if-match", "x"),
        ]);
        let time = Timestamp::from_second(784_111_777).ok();
        assert_eq!(read_conditions(&map), Conditions { if_modified_since: time, ..Conditions::default() });
        let source =
            Conditions { if_unmodified_since: time, if_match: one_of(&["x"]), ..Conditions::default() };
        assert_eq!(copy_source_conditions(&map), source);
        assert!(read_conditions(&HeaderMap::new()).is_empty());
    }

    #[test]
    fn writes_know_two_conditions() {
        let write = |pairs: &[_]| write_conditions(&headers(pairs));
        assert_eq!(write(&[("if-match", "\"a\"")]).unwrap().if_match, one_of(&["a"]));
        assert_eq!(write(&[("if-none-match", "*")]).unwrap().if_none_match, Some(ETagCondition::Any));
        assert!(write(&[]).unwrap().is_empty());
        // An If-Match that names nothing must not turn into an unconditional write.
        assert_eq!(write(&[("if-match", "")]).unwrap().if_match, one_of(&[]));
        for (pairs, header) in [
            (&[("if-none-match", "\"a\"")][..], "If-None-Match"),
            (&[("if-none-match", "")], "If-None-Match"),
            (&[("if-none-match", "*"), ("if-match", "\"a\"")], "If-None-Match"),
            (&[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")], "If-Modified-Since"),
            (&[("if-unmodified-since", "garbage")], "If-Unmodified-Since"),
        ] {
            let error = write(pairs).unwrap_err();
            assert_eq!(refused(&error), ("NotImplemented", Some(header)));
            assert_eq!(error.details()[0].0, "Header");
            assert_eq!(
                error.message(),
                "A header you provided implies functionality that is not implemented."
            );
        }
    }

    #[test]
    fn deletes_know_three() {
        let all = headers(&[
            ("if-match", "*"),
            ("x-amz-if-match-size", "12"),
            ("x-amz-if-match-last-modified-time", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        let conditions = delete_conditions(&all).unwrap();
        assert_eq!(conditions.if_match, Some(ETagCondition::Any));
        assert_eq!(conditions.if_match_size, Some(12));
        assert_eq!(conditions.if_match_last_modified.unwrap().as_second(), 784_111_777);
        for (name, value) in [
            ("x-amz-if-match-size", "-1"),
            ("x-amz-if-match-size", ""),
            ("x-amz-if-match-last-modified-time", "yesterday"),
        ] {
            let error = delete_conditions(&headers(&[(name, value)])).unwrap_err();
            assert_eq!(refused(&error), ("InvalidArgument", Some(name)));
        }
        let error = delete_conditions(&headers(&[("if-none-match", "*")])).unwrap_err();
        assert_eq!(refused(&error), ("NotImplemented", Some("If-None-Match")));
    }
}
