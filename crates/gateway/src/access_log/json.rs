//! Writes a line as a JSON object. This is written by hand: a serializer took three times as many
//! instructions, and a line costs a request up to a few per cent (decision 0021).

use std::io::Write as _;
use std::time::Duration;

use s3_types::{BucketName, Timestamp};
use s3_wire::operation::Operation;

use crate::json_fields::{escape, is_plain, number, push_address, text, word};
use crate::line::{Ended, Line, Signature};
use crate::line_log::Buffer;
use crate::peer::Tls;
use crate::trace_context::SpanContext;

/// Appends the part of the line that is known before the request has ended.
pub fn begin(out: &mut Vec<u8>, line: &Line<'_>) {
    out.extend_from_slice(b"\",\"request_id\":\"");
    out.extend_from_slice(line.id.as_bytes());
    out.push(b'"');
    if let Some(SpanContext { trace, span, .. }) = line.trace {
        // A vector grows.
        let _ = write!(out, ",\"trace_id\":\"{trace}\",\"span_id\":\"{span}\"");
    }
    if let Some(address) = line.remote() {
        out.extend_from_slice(b",\"remote_ip\":\"");
        push_address(out, address);
        out.push(b'"');
    }
    let session = line.session();
    if let Some(session) = session {
        text(out, b",\"user\":\"", session.principal.name.as_bytes());
        // Access keys have nothing to escape, nor have the names of operations, methods, codes and
        // buckets.
        word(out, b",\"access_key\":\"", Some(session.credential.access_key.as_str()));
    }
    word(out, b",\"operation\":\"", line.known.operation.map(Operation::name));
    if let Some(target) = &line.known.target {
        word(out, b",\"bucket\":\"", target.bucket().map(BucketName::as_str));
        if let Some(key) = line.key() {
            text(out, b",\"key\":\"", key.as_bytes());
        }
    }
    word(out, b",\"method\":\"", Some(line.method()));
    out.extend_from_slice(b",\"target\":\"");
    url(out, line);
    out.extend_from_slice(b"\",\"status\":");
    out.extend_from_slice(line.status.as_str().as_bytes());
    word(out, b",\"error\":\"", line.code.map(Into::into));
    number(out, b",\"bytes_in\":", line.bytes_in);
    number(out, b",\"answered_us\":", micros(line.answered));
    let headers = line.headers();
    if session.is_some()
        && let Some(Signature { version, in_query }) = line.signature(&headers)
    {
        word(out, b",\"signature\":\"", Some(version));
        let presigned: &[u8] = if in_query { b",\"presigned\":true" } else { b",\"presigned\":false" };
        out.extend_from_slice(presigned);
    }
    word(out, b",\"tls\":\"", line.peer.tls.map(Tls::version));
    if let Some(host) = headers.host {
        text(out, b",\"host\":\"", host);
    }
    if let Some(user_agent) = headers.user_agent {
        text(out, b",\"user_agent\":\"", user_agent);
    }
    if let Some(referer) = headers.referer {
        text(out, b",\"referer\":\"", referer);
    }
}

/// Appends the whole line, without its line break.
pub fn end(buffer: &mut Buffer, time: Timestamp, begun: &[u8], ended: &Ended<'_>) {
    let time = buffer.time(time);
    let out = &mut buffer.bytes;
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(begun);
    number(out, b",\"bytes_out\":", ended.bytes_out);
    if let Some(bytes) = ended.object_bytes {
        number(out, b",\"object_bytes\":", bytes);
    }
    if let Some(version) = ended.version {
        text(out, b",\"version\":\"", version.as_bytes());
    }
    number(out, b",\"total_us\":", micros(ended.elapsed));
    out.push(b'}');
}

fn micros(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros().into())
}

fn url(out: &mut Vec<u8>, line: &Line<'_>) {
    if is_plain(line.target().as_bytes()) {
        line.push_target(out);
        return;
    }
    let mut clean = Vec::new();
    line.push_target(&mut clean);
    escape(out, &clean);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::{ENDED, with_line};

    #[test]
    fn fields() {
        let mut buffer = Buffer::default();
        with_line(|line| {
            let mut begun = Vec::new();
            begin(&mut begun, line);
            end(&mut buffer, line.time, &begun, &ENDED);
        });
        let out = buffer.bytes;
        assert!(!out.contains(&b'\n'));
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            line,
            serde_json::json!({
                "time": "2023-11-14T22:13:20.123456Z",
                "request_id": "0123456789ABCDEF",
                "trace_id": "abababababababababababababababab",
                "span_id": "0123456789abcdef",
                "remote_ip": "192.0.2.7",
                "operation": "PutObject",
                "bucket": "bucket",
                "key": "a\"\nb",
                "method": "PUT",
                "target": "/bucket/a%22%0Ab?X-Amz-Signature=REDACTED&x=%221%22",
                "status": 403,
                "error": "AccessDenied",
                "bytes_in": 5,
                "bytes_out": 240,
                "object_bytes": 5,
                "version": "17f2",
                "answered_us": 1200,
                "total_us": 2499,
                "host": "s3.test",
                "user_agent": "a \"quoted\" \\agent\té",
                "referer": "http://s3.test/b/k",
            })
        );
    }
}
