//! A finished request as a span: the fields of OTLP's `Span` (opentelemetry-proto,
//! trace/v1/trace.proto), with the attributes of OpenTelemetry's semantic conventions 1.44 for HTTP
//! servers and for S3.

use std::time::Duration;

use http::{Method, Version};
use s3_types::BucketName;
use s3_wire::Query;
use s3_wire::honoured::Signed;
use s3_wire::operation::Operation;

use super::protobuf::{begin_message, bytes, field_bytes, fixed_32, fixed_64, message, number};
use crate::limits::{TRACE_STATE_BYTES_MAX, TRACES_SPAN_BYTES};
use crate::line::{Ended, Line};
use crate::trace_context::SpanContext;

/// The semantic conventions that the names come from.
pub const SCHEMA: &str = "https://opentelemetry.io/schemas/1.44.0";

/// The number of the field `Span.attributes`.
const ATTRIBUTES: u32 = 9;
const KIND_SERVER: u64 = 2;
const STATUS_ERROR: u64 = 2;
/// W3C's flag `sampled`.
const SAMPLED: u32 = 1;
/// OTLP's flag that it is known whether the parent is in another process.
const KNOWS_IF_REMOTE: u32 = 0x100;
/// OTLP's flag that the parent is in another process.
const IS_REMOTE: u32 = 0x200;

/// The span of a request that was answered, without the fields that are known only at its end.
#[derive(Debug)]
pub struct BegunSpan {
    fields: Vec<u8>,
    /// The time of the request, in nanoseconds since 1970.
    start: u64,
}

impl BegunSpan {
    /// Makes the span of this request, at this place of a trace.
    pub fn new(line: &Line<'_>, context: &SpanContext) -> Self {
        let mut fields = Vec::with_capacity(TRACES_SPAN_BYTES);
        let out = &mut fields;
        bytes(out, 1, &context.trace.0);
        bytes(out, 2, &context.span.0);
        let mut flags = SAMPLED | KNOWS_IF_REMOTE;
        if let Some(parent) = &context.parent {
            flags |= IS_REMOTE;
            if let Some(state) = trace_state(line) {
                bytes(out, 3, state.as_bytes());
            }
            bytes(out, 4, &parent.0);
        }
        message(out, 5, |out| push_name(out, line));
        number(out, 6, KIND_SERVER);
        let start = u64::try_from(line.time.as_nanosecond()).unwrap_or(0);
        fixed_64(out, 7, start);
        of_http(out, line);
        of_url(out, line);
        of_s3(out, line);
        message(out, 11, |out| {
            fixed_64(out, 1, after(start, line.answered));
            bytes(out, 2, b"answered");
        });
        // What a client did wrong is no error of a server's span.
        if line.status.is_server_error() {
            message(out, 15, |out| number(out, 3, STATUS_ERROR));
        }
        fixed_32(out, 16, flags);
        Self { fields, start }
    }

    /// Appends the whole span, as the field with the number `field` of a message.
    pub fn write(&self, out: &mut Vec<u8>, field: u32, ended: &Ended<'_>) {
        let mut end = Vec::with_capacity(64);
        fixed_64(&mut end, 8, after(self.start, ended.elapsed));
        count(&mut end, "http.response.body.size", ended.bytes_out);
        begin_message(out, field, self.fields.len() + end.len());
        out.extend_from_slice(&self.fields);
        out.extend_from_slice(&end);
    }
}

fn after(start: u64, time: Duration) -> u64 {
    start.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Appends an attribute with a text.
pub fn text(out: &mut Vec<u8>, field: u32, name: &str, value: &str) {
    // A span has some twenty: their lengths are known before, so that nothing is moved.
    let any_value = field_bytes(value.len());
    let pair = field_bytes(name.len()) + field_bytes(any_value);
    out.reserve(field_bytes(pair));
    begin_message(out, field, pair);
    bytes(out, 1, name.as_bytes());
    begin_message(out, 2, any_value);
    bytes(out, 1, value.as_bytes());
}

fn count(out: &mut Vec<u8>, name: &str, value: u64) {
    message(out, ATTRIBUTES, |out| {
        bytes(out, 1, name.as_bytes());
        message(out, 2, |out| number(out, 3, value));
    });
}

fn attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    text(out, ATTRIBUTES, name, value);
}

/// Appends the name of the span: `S3.GetObject`, as SDKs name their spans, or the method if the
/// operation is not known.
fn push_name(out: &mut Vec<u8>, line: &Line<'_>) {
    match line.known.operation {
        Some(operation) => {
            out.extend_from_slice(b"S3.");
            out.extend_from_slice(operation.name().as_bytes());
        }
        None if is_known(&line.head.method) => out.extend_from_slice(line.head.method.as_str().as_bytes()),
        None => out.extend_from_slice(b"HTTP"),
    }
}

/// True for the methods of RFC 9110, and PATCH.
fn is_known(method: &Method) -> bool {
    [
        Method::GET,
        Method::PUT,
        Method::HEAD,
        Method::POST,
        Method::DELETE,
        Method::OPTIONS,
        Method::PATCH,
        Method::TRACE,
        Method::CONNECT,
    ]
    .contains(method)
}

fn of_http(out: &mut Vec<u8>, line: &Line<'_>) {
    let method = &line.head.method;
    if is_known(method) {
        attribute(out, "http.request.method", method.as_str());
    } else {
        attribute(out, "http.request.method", "_OTHER");
        attribute(out, "http.request.method_original", line.method());
    }
    count(out, "http.response.status_code", line.status.as_u16().into());
    if let Some(code) = line.code {
        attribute(out, "error.type", code.into());
    }
    count(out, "http.request.body.size", line.bytes_in);
    let version = if line.head.version == Version::HTTP_10 { "1.0" } else { "1.1" };
    attribute(out, "network.protocol.version", version);
    if let Some(address) = line.remote() {
        attribute(out, "client.address", &address.to_string());
    }
    let headers = line.headers();
    if let Some(user_agent) = headers.user_agent {
        // Other bytes than UTF-8 would make all that is sent with them unreadable.
        attribute(out, "user_agent.original", &String::from_utf8_lossy(user_agent));
    }
    if let Some(host) = headers.host {
        let host = String::from_utf8_lossy(host);
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !name.is_empty() => (name, port.parse::<u16>().ok()),
            _ => (&*host, None),
        };
        if let Some(port) = port {
            attribute(out, "server.address", name);
            count(out, "server.port", port.into());
        } else {
            attribute(out, "server.address", &host);
        }
    }
}

fn of_url(out: &mut Vec<u8>, line: &Line<'_>) {
    attribute(out, "url.scheme", if line.peer.secure { "https" } else { "http" });
    let (path, query) = line.path_and_query();
    attribute(out, "url.path", &line.shown(path));
    // One that is known to be signed need not be searched.
    let is_signed = matches!(line.known.signed, Some(Signed::UrlV4 | Signed::UrlV2));
    if let Some(query) = query.filter(|_| !is_signed) {
        let start = out.len();
        let is_secret = line.push_target(out);
        out.truncate(start);
        // A signed one is left out as a whole: who signed it may be told by the rest.
        if !is_secret {
            attribute(out, "url.query", query);
        }
    }
}

fn of_s3(out: &mut Vec<u8>, line: &Line<'_>) {
    attribute(out, "aws.request_id", line.id.as_str());
    if let Some(target) = &line.known.target {
        if let Some(bucket) = target.bucket().map(BucketName::as_str) {
            attribute(out, "aws.s3.bucket", bucket);
        }
        if let Some(key) = line.key() {
            attribute(out, "aws.s3.key", &key);
        }
    }
    if let Some(Operation::CopyObject | Operation::UploadPartCopy) = line.known.operation
        && let Some(source) = line.head.headers.get("x-amz-copy-source").and_then(|value| value.to_str().ok())
    {
        attribute(out, "aws.s3.copy_source", source);
    }
    let query = line.path_and_query().1.filter(|query| query.contains("uploadId"));
    if let Some(query) = query.and_then(|query| Query::parse(query).ok()) {
        if let Some(upload) = query.get_non_empty("uploadId") {
            attribute(out, "aws.s3.upload_id", upload);
        }
        if let Some(part) = query.get("partNumber").and_then(|part| part.parse().ok()) {
            count(out, "aws.s3.part_number", part);
        }
    }
}

/// Returns the `tracestate` header of the trace that is continued.
fn trace_state<'l>(line: &Line<'l>) -> Option<&'l str> {
    let mut all = line.head.headers.get_all("tracestate").into_iter();
    let (state, None) = (all.next()?, all.next()) else { return None };
    state.to_str().ok().filter(|state| state.len() <= TRACE_STATE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::protobuf::{Value, fields};
    use http::Request;
    use s3_wire::limits::TARGET_BYTES_MAX;

    use super::*;
    use crate::line::tests::{ENDED, with_line, with_line_of};

    fn write(out: &mut Vec<u8>, line: &Line<'_>) {
        BegunSpan::new(line, line.trace.unwrap()).write(out, 2, &ENDED);
    }

    fn text_of(value: Value<'_>) -> String {
        match value {
            Value::Number(number) => number.to_string(),
            Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    fn inner(value: Value<'_>) -> Vec<(u64, Value<'_>)> {
        let Value::Bytes(bytes) = value else { panic!("{value:?}") };
        fields(bytes).collect()
    }

    /// The attributes of a span, each of which must have a name and a value.
    fn attributes(span: &[(u64, Value<'_>)]) -> BTreeMap<String, String> {
        let of = |(_, value): &(u64, Value<'_>)| {
            let [(1, name), (2, value)] = inner(*value)[..] else { panic!() };
            (text_of(name), text_of(inner(value)[0].1))
        };
        span.iter().filter(|(field, _)| *field == u64::from(ATTRIBUTES)).map(of).collect()
    }

    /// If a query was cut, it may have been signed, so that it is left out.
    #[test]
    fn attributes_of_a_request_that_is_too_long() {
        let padding = "a".repeat(30_000);
        for (target, path) in [
            (format!("/b/k?uploadId=1&{padding}&Signature=secret"), 4),
            (format!("/{padding}?x=1&uploadId={padding}"), TARGET_BYTES_MAX),
        ] {
            let request = Request::builder().method(&*"M".repeat(100)).uri(&target).body(()).unwrap();
            let mut out = Vec::new();
            with_line_of(request, |line| write(&mut out, line));
            let [(2, span)] = fields(&out).collect::<Vec<_>>()[..] else { panic!() };
            let found = attributes(&inner(span));
            assert_eq!(found["url.path"], target[..path]);
            assert_eq!(found["http.request.method_original"], "M".repeat(32));
            assert!(!found.contains_key("url.query") && !found.contains_key("aws.s3.upload_id"));
        }
    }

    #[test]
    fn attributes_of_a_request_full_of_strange_bytes() {
        let mut out = Vec::new();
        with_line(|line| write(&mut out, line));
        let [(2, span)] = fields(&out).collect::<Vec<_>>()[..] else { panic!() };
        let span = inner(span);
        let found = attributes(&span);
        for (name, value) in [
            ("http.request.method", "PUT"),
            ("http.response.status_code", "403"),
            ("error.type", "AccessDenied"),
            ("url.path", "/bucket/a%22%0Ab"),
            ("aws.s3.bucket", "bucket"),
            ("aws.s3.key", "a\"\nb"),
            ("aws.request_id", "0123456789ABCDEF"),
            ("client.address", "192.0.2.7"),
            ("server.address", "s3.test"),
            ("http.request.body.size", "5"),
            ("http.response.body.size", "240"),
        ] {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(found["user_agent.original"].starts_with("a \"quoted\" \\agent\t"));
        assert!(!found.contains_key("url.query"), "it has a signature");
        let of = |field| span.iter().find(|(found, _)| *found == field).map(|(_, value)| *value);
        assert_eq!(of(5).map(text_of).as_deref(), Some("S3.PutObject"));
        assert_eq!(of(7), Some(Value::Number(1_700_000_000_123_456_000)));
        assert_eq!(of(8), Some(Value::Number(1_700_000_000_125_955_000)));
        assert_eq!(of(15), None, "the client did it");
    }
}
