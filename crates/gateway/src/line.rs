//! The facts for a line of the access log, and for a span.

use std::borrow::Cow;
use std::iter::once;
use std::net::IpAddr;
use std::time::Duration;

use http::StatusCode;
use http::header::{AUTHORIZATION, HOST, REFERER, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use iam::Session;
use memchr::{memchr, memchr_iter, memchr2, memrchr};
use percent_encoding::percent_decode;
use s3_types::Timestamp;
use s3_wire::ErrorCode;
use s3_wire::honoured::Signed;
use s3_wire::limits::TARGET_BYTES_MAX;

use crate::json_fields::has;
use crate::limits::{ACCESS_LOG_FIELD_BYTES_MAX, ACCESS_LOG_METHOD_BYTES_MAX};
use crate::peer::Peer;
use crate::request::Known;
use crate::request_id::RequestId;
use crate::secrets::{REDACTED, is_secret, misplaced_secret, without_misplaced_secret};
use crate::trace_context::SpanContext;

/// A request that was answered, with the facts that are known before the answer's body is sent.
#[derive(Debug)]
pub struct Line<'a> {
    /// The time at which the request's head had arrived.
    pub time: Timestamp,
    /// The id of the request.
    pub id: RequestId,
    /// The gateway that answered.
    pub host_id: &'a str,
    /// The client that the request came from.
    pub peer: Peer,
    /// The head of the request.
    pub head: &'a Parts,
    /// The facts that became known while the request was performed, such as the operation and the
    /// requester.
    pub known: &'a Known<'a>,
    /// The canonical id of the account that owns all buckets.
    pub owner: &'a str,
    /// The answer's status.
    pub status: StatusCode,
    /// S3's code, if the answer is an error.
    pub code: Option<ErrorCode>,
    /// Bytes of the request's body that were read, including framing.
    pub bytes_in: u64,
    /// The time from the request's arrival until the answer was known.
    pub answered: Duration,
    /// The place of the request in a trace, if it has one.
    pub trace: Option<&'a SpanContext>,
}

/// The facts about a request that are known only when the answer's body was sent, or was dropped
/// before its end.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// Bytes of the body that were handed to the connection.
    pub bytes_out: u64,
    /// Bytes of the whole object that was read or written.
    pub object_bytes: Option<u64>,
    /// The version that was read, made or removed, if versions are kept.
    pub version: Option<&'a str>,
    /// The time that the whole request took.
    pub elapsed: Duration,
}

/// The version of a request's signature, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// `SigV4` or `SigV2`.
    pub version: &'static str,
    /// True if the signature is in the query, not in the headers.
    pub in_query: bool,
}

impl<'a> Line<'a> {
    /// Returns the client's address.
    pub fn remote(&self) -> Option<IpAddr> {
        self.peer.ip()
    }

    /// Returns the requester's session, if the signature was valid.
    pub fn session(&self) -> Option<&'a Session> {
        self.known.requester.as_ref()?.session().map(|session| &**session)
    }

    /// Returns the version and the place of the request's signature, if the signature was valid.
    pub fn signature(&self, headers: &Headers<'_>) -> Option<Signature> {
        self.session()?;
        let (version, in_query) = match self.known.signed? {
            Signed::UrlV4 => ("SigV4", true),
            Signed::UrlV2 => ("SigV2", true),
            Signed::Headers if headers.is_sigv2 => ("SigV2", false),
            Signed::Headers => ("SigV4", false),
        };
        Some(Signature { version, in_query })
    }

    /// Returns the request's method, cut to the length that is logged.
    pub fn method(&self) -> &'a str {
        let method = self.head.method.as_str();
        method.get(..ACCESS_LOG_METHOD_BYTES_MAX).unwrap_or(method)
    }

    /// Returns the object's key in the form that [`Self::shown`] returns.
    pub fn key(&self) -> Option<Cow<'a, str>> {
        Some(self.shown(self.known.target.as_ref()?.key()?.as_str()))
    }

    /// Returns a key or path without a secret that does not belong in it (see
    /// [`Self::push_target`]).
    pub fn shown(&self, text: &'a str) -> Cow<'a, str> {
        if self.session().is_none() { without_misplaced_secret(text) } else { text.into() }
    }

    /// Appends the request's target, with [`REDACTED`] in place of secret values in its query
    /// ([`is_secret`]). Returns true if there were any.
    ///
    /// In a presigned URL whose `?`, `&` or `=` was encoded once more, the secrets are elsewhere.
    /// Such a request is not authenticated, but a reader of the log who undoes the encoding could
    /// read the object. So for requests that are not authenticated, the target ends at the first
    /// secret's name, wherever it is.
    pub fn push_target(&self, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let had_secrets = self.push_target_without_parameters(out);
        if self.session().is_none()
            && let Some(value) = misplaced_secret(&out[start..])
        {
            out.truncate(start + value);
            out.extend_from_slice(REDACTED);
            return true;
        }
        had_secrets
    }

    fn push_target_without_parameters(&self, out: &mut Vec<u8>) -> bool {
        let target = self.target().as_bytes();
        match &self.known.query {
            // To take it apart once more would cost more than the rest of the line.
            Some(query) => {
                let start = target.len() - self.head.uri.query().map_or(0, str::len);
                let secrets = query.starts().filter(|(name, _)| is_secret(name.as_bytes()));
                push_without(out, target, secrets.map(|(_, at)| start + at))
            }
            None => push_without_secrets(out, target),
        }
    }

    /// Returns the request's target as it was sent; only [`Self::push_target`] removes its secrets.
    /// It is cut if it is longer than any target that is answered.
    pub fn target(&self) -> &'a str {
        let uri = &self.head.uri;
        let target = uri.path_and_query().map_or_else(|| uri.path(), PathAndQuery::as_str);
        if target.len() > TARGET_BYTES_MAX { beginning(target) } else { target }
    }

    /// Returns the path and the query of [`Self::target`]. If the target is cut, there is no query:
    /// the missing part may be what marks the query as secret.
    pub fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        let (path, query) = (self.head.uri.path(), self.head.uri.query());
        if path.len() + query.map_or(0, str::len) >= TARGET_BYTES_MAX {
            return (beginning(path), None);
        }
        (path, query)
    }

    /// Returns the headers that are logged.
    pub fn headers(&self) -> Headers<'a> {
        let mut headers = Headers::default();
        let authority = self.head.uri.authority().map(|authority| authority.as_str().as_bytes());
        let mut host = None;
        // Most requests have fewer headers than four lookups have steps.
        for (name, value) in &self.head.headers {
            let value = value.as_bytes();
            let field = match *name {
                HOST => {
                    host = Some(value);
                    continue;
                }
                USER_AGENT => &mut headers.user_agent,
                REFERER => &mut headers.referer,
                AUTHORIZATION => {
                    headers.is_sigv2 = value.starts_with(b"AWS ");
                    continue;
                }
                _ => continue,
            };
            *field = Some(shown(value));
        }
        headers.referer = headers.referer.map(without_query);
        headers.user_agent = headers.user_agent.map(without_query);
        headers.host = authority.or(host).map(|host| shown(without_password(host)));
        headers
    }
}

/// Returns a value up to a question mark, which begins the query of a URL, or of one within it.
fn without_query(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b'?').next().unwrap_or(value)
}

/// Returns a host without the user name and password before it.
fn without_password(host: &[u8]) -> &[u8] {
    // Few have one, and hosts have few bytes.
    let at = if has(host, b'@') { memrchr(b'@', host) } else { None };
    at.and_then(|at| host.get(at + 1..)).unwrap_or(host)
}

/// Returns a header's value, cut to the length that is logged.
fn shown(value: &[u8]) -> &[u8] {
    value.get(..ACCESS_LOG_FIELD_BYTES_MAX).unwrap_or(value)
}

/// Returns at most the first [`TARGET_BYTES_MAX`] of a target, cut before a parameter, so that
/// secret parameters are still recognized by their names.
#[cold]
fn beginning(target: &str) -> &str {
    let cut = &target[..target.floor_char_boundary(TARGET_BYTES_MAX)];
    let Some(query) = cut.find('?') else { return cut };
    &cut[..cut.rfind('&').filter(|end| *end > query).unwrap_or(query)]
}

/// The headers that are logged, cut to [`ACCESS_LOG_FIELD_BYTES_MAX`] each.
#[derive(Debug, Default)]
pub struct Headers<'a> {
    /// `Host`.
    pub host: Option<&'a [u8]>,
    /// `User-Agent`, up to a question mark, as for `Referer`: some clients put a URL in it.
    pub user_agent: Option<&'a [u8]>,
    /// `Referer`, without its query, which may hold secrets in any form: that of a presigned URL,
    /// or of a page with such a URL as a parameter.
    pub referer: Option<&'a [u8]>,
    /// True if `Authorization` has signature version 2.
    is_sigv2: bool,
}

/// Appends a target whose query could not be parsed, with the values of secret parameters
/// ([`is_secret`]) replaced. Returns true if there were any.
fn push_without_secrets(out: &mut Vec<u8>, target: &[u8]) -> bool {
    let query = memchr(b'?', target).map_or(target.len(), |mark| mark + 1);
    let starts = once(query).chain(memchr_iter(b'&', &target[query..]).map(|end| query + end + 1));
    let is_secret = |start: &usize| {
        let name = value_of(target, *start).map(|value| &target[*start..value - 1]);
        name.is_some_and(|name| is_secret(&Cow::from(percent_decode(name))))
    };
    push_without(out, target, starts.filter(is_secret))
}

/// Appends a target, with the values of the parameters that begin at `secrets` (in ascending order)
/// replaced. Returns true if there were any.
fn push_without(out: &mut Vec<u8>, target: &[u8], secrets: impl Iterator<Item = usize>) -> bool {
    let mut copied = 0;
    for value in secrets.filter_map(|start| value_of(target, start)) {
        out.extend_from_slice(&target[copied..value]);
        out.extend_from_slice(REDACTED);
        copied = memchr(b'&', &target[value..]).map_or(target.len(), |end| value + end);
    }
    out.extend_from_slice(&target[copied..]);
    copied > 0
}

/// Returns the position of the value of the parameter that begins at `start`, if it has a value.
fn value_of(target: &[u8], start: usize) -> Option<usize> {
    let mark = memchr2(b'=', b'&', target.get(start..)?)? + start;
    (target[mark] == b'=').then_some(mark + 1)
}

#[cfg(test)]
pub mod tests {
    use http::Request;
    use s3_wire::operation::Operation;
    use s3_wire::{Query, Target};

    use super::*;
    use crate::trace_context::{SpanId, TraceId};

    /// The end of the request of [`with_line`].
    pub const ENDED: Ended<'_> = Ended {
        bytes_out: 240,
        object_bytes: Some(5),
        version: Some("17f2"),
        elapsed: Duration::from_micros(2499),
    };

    /// Calls `with` with a line in which every field needs escapes.
    pub fn with_line(with: impl FnOnce(&Line<'_>)) {
        let request = Request::builder()
            .method("PUT")
            .uri("/bucket/a%22%0Ab?X-Amz-Signature=abc&x=%221%22")
            .header("host", "s3.test")
            .header("user-agent", "a \"quoted\" \\agent\t\u{e9}")
            .header("referer", "http://s3.test/b/k?a=1&Signature=secret");
        with_line_of(request.body(()).unwrap(), with);
    }

    /// Calls `with` with the line of a request.
    pub fn with_line_of(request: Request<()>, with: impl FnOnce(&Line<'_>)) {
        let (head, ()) = request.into_parts();
        let known = Known {
            operation: Some(Operation::PutObject),
            target: Target::parse(None, "/bucket/a%22%0Ab").ok(),
            ..Known::default()
        };
        with(&Line {
            time: Timestamp::from_microsecond(1_700_000_000_123_456).unwrap(),
            id: crate::request_id::tests::ID,
            host_id: "host+id/=",
            peer: Peer {
                address: Some("[::ffff:192.0.2.7]:5555".parse().unwrap()),
                tls: None,
                secure: false,
                proxied: false,
            },
            head: &head,
            known: &known,
            owner: "0123abcd",
            status: StatusCode::FORBIDDEN,
            code: Some(ErrorCode::AccessDenied),
            bytes_in: 5,
            answered: Duration::from_micros(1200),
            trace: Some(&SpanContext {
                trace: TraceId([0xAB; 16]),
                span: SpanId([1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]),
                parent: None,
                sampled: true,
            }),
        });
    }

    #[test]
    fn secrets() {
        for (target, logged) in [
            ("/b/k", "/b/k"),
            ("/b/k?x=1", "/b/k?x=1"),
            ("/b?X-Amz-Signature=a&x=1", "/b?X-Amz-Signature=REDACTED&x=1"),
            ("/b?x=1&Signature=a%2Fb", "/b?x=1&Signature=REDACTED"),
            ("/b?x-amz-security-token=a", "/b?x-amz-security-token=REDACTED"),
            ("/b?X-Amz-Sign%61ture=a", "/b?X-Amz-Sign%61ture=REDACTED"),
            ("/b?Signature", "/b?Signature"),
            ("/b?", "/b?"),
            ("/b?&&Signature=&=", "/b?&&Signature=REDACTED&="),
            ("http://h/b?x?Signatur=a&Signature=b=c", "http://h/b?x?Signatur=a&Signature=REDACTED"),
        ] {
            let mut out = b"before ".to_vec();
            assert_eq!(push_without_secrets(&mut out, target.as_bytes()), target != logged);
            assert_eq!(String::from_utf8(out).unwrap(), format!("before {logged}"));
            // And by the query that was understood.
            let Ok(request) = Request::builder().uri(target).body(()) else { panic!("{target}") };
            let is_absolute = target.starts_with("http");
            with_line_of(request, |line| {
                let query = Query::parse(line.head.uri.query().unwrap_or_default()).ok();
                let known = Known { query, ..Known::default() };
                let line = Line { known: &known, ..*line };
                let mut out = Vec::new();
                assert_eq!(line.push_target(&mut out), target != logged);
                let logged = if is_absolute { logged.trim_start_matches("http://h") } else { logged };
                assert_eq!(String::from_utf8(out).unwrap(), logged);
            });
        }
    }

    /// Returns the target as it is logged, and true if it differs from the target that was sent.
    fn target_of(target: &str) -> (String, bool) {
        let request = Request::builder().uri(target).body(()).unwrap();
        let mut told = String::new();
        with_line_of(request, |line| told = line.target().to_owned());
        let is_other = told != target;
        (told, is_other)
    }

    #[test]
    fn secrets_that_are_elsewhere() {
        for (target, logged, key) in [
            (
                "/bucket/k%3FX-Amz-Signature=abc&x",
                "/bucket/k%3FX-Amz-Signature=REDACTED",
                "k?X-Amz-Signature=REDACTED",
            ),
            (
                "/bucket/k%3Fx%26signature%3Dabc",
                "/bucket/k%3Fx%26signature%3DREDACTED",
                "k?x&signature=REDACTED",
            ),
            ("/bucket/k?x=1%26X-Amz-Signature=abc", "/bucket/k?x=1%26X-Amz-Signature=REDACTED", "k"),
            ("/bucket/k?x=1;X-Amz-Security-Token=abc&y", "/bucket/k?x=1;X-Amz-Security-Token=REDACTED", "k"),
            ("/bucket/signature", "/bucket/signature", "signature"),
            ("/bucket/%3", "/bucket/%3", "%3"),
        ] {
            let request = Request::builder().uri(target).body(()).unwrap();
            with_line_of(request, |line| {
                let path = line.head.uri.path();
                let known = Known { target: Target::parse(None, path).ok(), ..Known::default() };
                let line = Line { known: &known, ..*line };
                let mut out = Vec::new();
                assert_eq!(line.push_target(&mut out), target != logged, "{target}");
                assert_eq!(String::from_utf8(out).unwrap(), logged);
                assert_eq!(line.key().as_deref().unwrap_or("%3"), key, "{target}");
            });
        }
    }

    #[test]
    fn targets_that_are_too_long() {
        let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        assert_eq!(target_of(&path(TARGET_BYTES_MAX)), (path(TARGET_BYTES_MAX), false));
        assert_eq!(target_of(&path(60_000)), (path(TARGET_BYTES_MAX), true));
        let letters = format!("/{}", "\u{e9}".repeat(TARGET_BYTES_MAX));
        assert!(letters.starts_with(&target_of(&letters).0));
        // No part of a parameter.
        let long = "a".repeat(TARGET_BYTES_MAX);
        assert_eq!(target_of(&format!("/b?x=1&Signature={long}")), ("/b?x=1".to_owned(), true));
        assert_eq!(target_of(&format!("/b&c?Signature={long}")), ("/b&c".to_owned(), true));
        let padding = "a".repeat(TARGET_BYTES_MAX - 12);
        assert_eq!(target_of(&format!("/b?{padding}&Signature=secret")), (format!("/b?{padding}"), true));
    }

    #[test]
    fn methods_that_are_too_long() {
        let method = "A".repeat(60_000);
        let request = Request::builder().method(&*method).body(()).unwrap();
        with_line_of(request, |line| assert_eq!(line.method(), "A".repeat(ACCESS_LOG_METHOD_BYTES_MAX)));
    }

    #[test]
    fn hosts() {
        let long = "h".repeat(3000);
        let password = format!("me:{}@s3.test", "p".repeat(3000));
        for (host, uri, told) in [
            ("s3.test:9000", "/", "s3.test:9000"),
            ("me:hush@s3.test", "/", "s3.test"),
            ("me:hu@sh@s3.test", "/", "s3.test"),
            (&*password, "/", "s3.test"),
            (&*long, "/", &long[..ACCESS_LOG_FIELD_BYTES_MAX]),
            ("other", "http://me:hush@s3.test/", "s3.test"),
            ("other", &format!("http://{long}/"), &long[..ACCESS_LOG_FIELD_BYTES_MAX]),
        ] {
            let request = Request::builder().uri(uri).header("host", host).body(()).unwrap();
            with_line_of(request, |line| assert_eq!(line.headers().host, Some(told.as_bytes())));
        }
    }
}
