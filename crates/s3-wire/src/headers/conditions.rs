use http::HeaderMap;
use s3_types::{Conditions, ETag, ETagCondition, IfRange, Timestamp};

use super::text::{ascii, has, joined, lossless};
use crate::error::{Result, S3Error};
use crate::time::{parse_http_date, parse_iso8601};

/// Reads `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since` and `If-Range` of
/// GetObject and HeadObject.
pub fn read_conditions(headers: &HeaderMap, now: Timestamp) -> Conditions {
    if !has_any(headers) {
        return Conditions::default();
    }
    Conditions { if_range: if_range(headers), ..conditions_named(&OF_READS, headers, now) }
}

/// Reads `x-amz-copy-source-if-*`, the conditions on the source of CopyObject and UploadPartCopy.
/// They are those of [`read_conditions`] without `If-Range`.
///
/// A value that is not a date, or names no ETag, is refused (`InvalidArgument`), although S3
/// ignores it: otherwise the copy would be made whether the condition holds or not.
pub fn copy_source_conditions(headers: &HeaderMap, now: Timestamp) -> Result<Conditions> {
    let names = &OF_COPY_SOURCES;
    for name in [names.modified_since, names.unmodified_since] {
        understood(headers, name, parse_http_date)?;
    }
    let etags = |name| strict_etags(headers, name).filter(|c| *c == ETagCondition::OneOf(Vec::new()));
    match [names.matches, names.none_match].into_iter().find(|name| etags(name).is_some()) {
        Some(name) => Err(not_understood(name, "")),
        None => Ok(conditions_named(names, headers, now)),
    }
}

/// The names of the headers with conditions on an object that is read.
struct Names {
    matches: &'static str,
    none_match: &'static str,
    modified_since: &'static str,
    unmodified_since: &'static str,
}

const OF_READS: Names = Names {
    matches: "if-match",
    none_match: "if-none-match",
    modified_since: "if-modified-since",
    unmodified_since: "if-unmodified-since",
};

const OF_COPY_SOURCES: Names = Names {
    matches: "x-amz-copy-source-if-match",
    none_match: "x-amz-copy-source-if-none-match",
    modified_since: "x-amz-copy-source-if-modified-since",
    unmodified_since: "x-amz-copy-source-if-unmodified-since",
};

/// Reads the headers with these names. A date in another form than HTTP's is ignored, as by S3, and
/// so is an `If-Modified-Since` later than `now` (RFC 9110, sections 13.1.3 and 13.1.4; for copies
/// this was recorded, too).
fn conditions_named(names: &Names, headers: &HeaderMap, now: Timestamp) -> Conditions {
    Conditions {
        if_match: etags(headers, names.matches),
        if_none_match: etags(headers, names.none_match),
        if_modified_since: date(headers, names.modified_since).filter(|date| *date <= now),
        if_unmodified_since: date(headers, names.unmodified_since),
        if_range: None,
    }
}

/// Reads `If-Match` and `If-None-Match` of PutObject, CompleteMultipartUpload and the target of
/// CopyObject.
///
/// S3 accepts `If-None-Match` only with `*`, `If-Match` only with other values, and not both
/// headers at once; conditions by date are only for reads. Everything else is `NotImplemented`.
pub fn write_conditions(headers: &HeaderMap) -> Result<Conditions> {
    if !has_any(headers) {
        return Ok(Conditions::default());
    }
    refuse(headers, &["If-Modified-Since", "If-Unmodified-Since"])?;
    let conditions = Conditions {
        if_match: strict_etags(headers, "if-match"),
        if_none_match: strict_etags(headers, "if-none-match"),
        ..Conditions::default()
    };
    match (&conditions.if_match, &conditions.if_none_match) {
        (Some(_), Some(_)) => Err(S3Error::condition_not_implemented(
            "If-Match,If-None-Match",
            "Multiple conditional request headers present in the request",
        )),
        (Some(ETagCondition::Any), None) => Err(value_not_implemented("If-Match")),
        (None, Some(ETagCondition::OneOf(_))) => Err(value_not_implemented("If-None-Match")),
        _ => Ok(conditions),
    }
}

/// True if there may be a condition. Most requests have none: then the headers are searched once,
/// and not once for each name.
fn has_any(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("if-"))
}

fn value_not_implemented(header: &'static str) -> S3Error {
    let why = format!("We don't accept the provided value of {header} header for this API");
    S3Error::condition_not_implemented(header, why)
}

/// Reads `x-amz-if-match-initiated-time`: the time, to the second, at which the upload that
/// AbortMultipartUpload ends must have been created. A value that is not a time is refused:
/// ignoring it could end an upload that should be kept.
pub fn if_match_initiated_time(headers: &HeaderMap) -> Result<Option<Timestamp>> {
    understood(headers, "x-amz-if-match-initiated-time", parse_time)
}

fn understood<T>(
    headers: &HeaderMap,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(text) = lossless(headers, name) else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| not_understood(name, &text))
}

fn not_understood(name: &'static str, value: &str) -> S3Error {
    S3Error::invalid_argument(name, value, format!("Value for {name} header is invalid."))
}

/// Reads `If-Match` of DeleteObject. Other conditions are `NotImplemented`: ignoring one could
/// delete an object that should be kept. Those that S3 has only for directory buckets
/// (`x-amz-if-match-size`, ...) are refused as headers that are not implemented
/// ([`crate::honoured`]).
pub fn delete_conditions(headers: &HeaderMap) -> Result<Conditions> {
    refuse(headers, &["If-None-Match", "If-Modified-Since", "If-Unmodified-Since"])?;
    Ok(Conditions { if_match: strict_etags(headers, "if-match"), ..Conditions::default() })
}

fn parse_time(text: &str) -> Option<Timestamp> {
    parse_http_date(text).or_else(|| parse_iso8601(text))
}

fn refuse(headers: &HeaderMap, names: &[&'static str]) -> Result<()> {
    match names.iter().find(|name| has(headers, name)) {
        Some(name) => Err(S3Error::header_not_implemented(name)),
        None => Ok(()),
    }
}

fn date(headers: &HeaderMap, name: &str) -> Option<Timestamp> {
    parse_http_date(ascii(headers, name)?)
}

/// Reads `If-Range`. A value that is neither a date nor a strong ETag matches nothing: then the
/// whole object is a correct answer.
fn if_range(headers: &HeaderMap) -> Option<IfRange> {
    let text = lossless(headers, "if-range")?;
    Some(match parse_http_date(&text) {
        Some(date) => IfRange::Unmodified(date),
        None if text.starts_with("W/") => IfRange::Never,
        None => IfRange::ETag(ETag::parse(&text)),
    })
}

/// Reads a condition on ETags. A header that names no ETag counts as missing.
fn etags(headers: &HeaderMap, name: &str) -> Option<ETagCondition> {
    strict_etags(headers, name).filter(|c| *c != ETagCondition::OneOf(Vec::new()))
}

/// Reads a condition on ETags. If the header names no ETag, the condition matches nothing.
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
    use crate::error::ErrorCode;
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

    fn now() -> Timestamp {
        Timestamp::new(784_111_777, 1).unwrap()
    }

    #[test]
    fn lists_of_etags() {
        let read = |value| read_conditions(&headers(&[("if-match", value)]), now()).if_match;
        assert_eq!(read("*"), Some(ETagCondition::Any));
        assert_eq!(read(" * "), Some(ETagCondition::Any));
        assert_eq!(read("\"*\""), one_of(&["*"]));
        assert_eq!(read("\"a\""), one_of(&["a"]));
        assert_eq!(read("a"), one_of(&["a"]));
        assert_eq!(read("W/\"a\", b ,\"c,d\","), one_of(&["a", "b", "c,d"]));
        assert_eq!(read(""), None);
        assert_eq!(read(" ,"), None);
        let twice = headers(&[("if-none-match", "\"a\""), ("if-none-match", "\"b\"")]);
        assert_eq!(read_conditions(&twice, now()).if_none_match, one_of(&["a", "b"]));
    }

    #[test]
    fn dates_that_are_none_are_ignored() {
        let map = headers(&[
            ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("if-unmodified-since", "yesterday"),
            ("x-amz-copy-source-if-unmodified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("x-amz-copy-source-if-match", "x"),
        ]);
        let time = Timestamp::from_second(784_111_777).ok();
        assert_eq!(
            read_conditions(&map, now()),
            Conditions { if_modified_since: time, ..Conditions::default() }
        );
        let source =
            Conditions { if_unmodified_since: time, if_match: one_of(&["x"]), ..Conditions::default() };
        assert_eq!(copy_source_conditions(&map, now()).unwrap(), source);
        assert!(read_conditions(&HeaderMap::new(), now()).is_empty());
    }

    #[test]
    fn a_copy_is_not_made_under_a_condition_that_is_not_understood() {
        for name in ["x-amz-copy-source-if-modified-since", "x-amz-copy-source-if-unmodified-since"] {
            for value in ["", "yesterday", "\u{e9}", "784111777", "1994-11-06T08:49:37Z"] {
                let error = copy_source_conditions(&headers(&[(name, value)]), now()).unwrap_err();
                assert_eq!(refused(&error), ("InvalidArgument", Some(name)), "{value}");
            }
        }
        for name in ["x-amz-copy-source-if-match", "x-amz-copy-source-if-none-match"] {
            for value in ["", " ", ",", " , ,"] {
                let error = copy_source_conditions(&headers(&[(name, value)]), now()).unwrap_err();
                assert_eq!(refused(&error), ("InvalidArgument", Some(name)), "{value}");
            }
        }
    }

    #[test]
    fn what_was_modified_since_a_time_to_come_is_not_asked() {
        for (date, counts) in [
            ("Sun, 06 Nov 1994 08:49:36 GMT", true),
            ("Sun, 06 Nov 1994 08:49:37 GMT", true),
            ("Sun, 06 Nov 1994 08:49:38 GMT", false),
        ] {
            let map = headers(&[
                ("if-modified-since", date),
                ("if-unmodified-since", date),
                ("x-amz-copy-source-if-modified-since", date),
            ]);
            let read = read_conditions(&map, now());
            assert_eq!(
                (read.if_modified_since.is_some(), read.if_unmodified_since.is_some()),
                (counts, true)
            );
            assert_eq!(copy_source_conditions(&map, now()).unwrap().if_modified_since.is_some(), counts);
        }
    }

    #[test]
    fn ranges_of_what_a_client_has_the_rest_of() {
        let read = |value| read_conditions(&headers(&[("if-range", value)]), now()).if_range;
        assert_eq!(read("\"a\""), Some(IfRange::ETag(ETag::parse("a"))));
        assert_eq!(read("a"), Some(IfRange::ETag(ETag::parse("a"))));
        assert_eq!(read("W/\"a\""), Some(IfRange::Never));
        let date = Timestamp::from_second(784_111_777).unwrap();
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(IfRange::Unmodified(date)));
        assert_eq!(read_conditions(&HeaderMap::new(), now()).if_range, None);
    }

    #[test]
    fn writes_know_two_conditions() {
        let write = |pairs: &[_]| write_conditions(&headers(pairs));
        assert_eq!(write(&[("if-match", "\"a\"")]).unwrap().if_match, one_of(&["a"]));
        assert_eq!(write(&[("if-none-match", "*")]).unwrap().if_none_match, Some(ETagCondition::Any));
        assert!(write(&[]).unwrap().is_empty());
        // An `If-Match` that names nothing must not become an unconditional write.
        assert_eq!(write(&[("if-match", "")]).unwrap().if_match, one_of(&[]));
        let value = |header| format!("We don't accept the provided value of {header} header for this API");
        let both = || "Multiple conditional request headers present in the request".to_owned();
        for (pairs, header, why) in [
            (&[("if-none-match", "\"a\"")][..], "If-None-Match", value("If-None-Match")),
            (&[("if-none-match", "")], "If-None-Match", value("If-None-Match")),
            (&[("if-match", "*")], "If-Match", value("If-Match")),
            (&[("if-none-match", "*"), ("if-match", "\"a\"")], "If-Match,If-None-Match", both()),
            (&[("if-none-match", "\"a\""), ("if-match", "*")], "If-Match,If-None-Match", both()),
        ] {
            let error = write(pairs).unwrap_err();
            assert_eq!(error.code(), ErrorCode::NotImplemented);
            let details = [("Header", header.to_owned()), ("additionalMessage", why)];
            assert_eq!(error.details(), details);
            assert_eq!(
                error.message(),
                "A header you provided implies functionality that is not implemented"
            );
        }
        for (name, value) in
            [("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"), ("if-unmodified-since", "garbage")]
        {
            let error = write(&[(name, value)]).unwrap_err();
            let (code, header) = refused(&error);
            assert_eq!(
                (code, header.map(str::to_ascii_lowercase).as_deref()),
                ("NotImplemented", Some(name))
            );
        }
    }

    #[test]
    fn deletes_know_one() {
        let conditions = delete_conditions(&headers(&[("if-match", "*")])).unwrap();
        assert_eq!(conditions.if_match, Some(ETagCondition::Any));
        for header in ["If-None-Match", "If-Modified-Since", "If-Unmodified-Since"] {
            let name = header.to_ascii_lowercase();
            let mut given = headers(&[("if-match", "*")]);
            given.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_static("*"));
            let error = delete_conditions(&given).unwrap_err();
            assert_eq!(refused(&error), ("NotImplemented", Some(header)));
        }
    }
}
