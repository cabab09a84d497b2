//! Writes a line as a JSON object. This is written by hand: a serializer took three times as many
//! instructions, and a line costs a request up to a few per cent (decision 0021).

use std::io::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use s3_types::{BucketName, Timestamp};
use s3_wire::operation::Operation;

use super::buffer::Buffer;
use crate::line::{Ended, Line, Signature};
use crate::peer::Tls;
use crate::text::is_hidden;
use crate::trace_context::SpanContext;

/// Appends the part of the line that is known before the request's end.
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
pub fn end(buffer: &mut Buffer, time: Timestamp, begun: &[u8], ended: &Ended) {
    let time = buffer.time(time);
    let out = &mut buffer.bytes;
    out.extend_from_slice(b"{\"time\":\"");
    out.extend_from_slice(time.as_bytes());
    out.extend_from_slice(begun);
    number(out, b",\"bytes_out\":", ended.bytes_out);
    if let Some(bytes) = ended.object_bytes {
        number(out, b",\"object_bytes\":", bytes);
    }
    number(out, b",\"total_us\":", micros(ended.elapsed));
    out.push(b'}');
}

fn micros(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000).saturating_add(time.subsec_micros().into())
}

fn number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn push_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            for (place, byte) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                if byte >= 100 {
                    out.push(b'0' + byte / 100);
                }
                if byte >= 10 {
                    out.push(b'0' + byte / 10 % 10);
                }
                out.push(b'0' + byte % 10);
            }
        }
        IpAddr::V6(_) => out.extend_from_slice(address.to_string().as_bytes()),
    }
}

/// Appends a field whose text needs no escapes.
fn word(out: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    }
}

fn text(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    if is_plain(value) {
        out.extend_from_slice(value);
    } else {
        escape(out, value);
    }
    out.push(b'"');
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

/// True for ASCII that JSON does not escape. Looks at eight bytes at a time.
fn is_plain(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let any = words.iter().fold(0, |any, word| any | specials(*word));
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    any | specials(last) == 0
}

/// Not zero if one of these bytes is not printable ASCII, or is `"` or `\`. A byte that is too
/// small borrows from the next one, which may then be reported too, but only in addition.
fn specials(word: [u8; 8]) -> u64 {
    const fn all(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_ne_bytes(word);
    let control = word.wrapping_sub(all(b' '));
    let delete = word.wrapping_add(all(1));
    let quote = (word ^ all(b'"')).wrapping_sub(all(1));
    let backslash = (word ^ all(b'\\')).wrapping_sub(all(1));
    (word | control | delete | quote | backslash) & all(0x80)
}

/// Appends a text with escapes. It escapes more than JSON requires: also characters that control a
/// terminal, end a line or change the direction of writing.
#[cold]
fn escape(out: &mut Vec<u8>, value: &[u8]) {
    for char in String::from_utf8_lossy(value).chars() {
        match char {
            '"' | '\\' => out.extend_from_slice(&[b'\\', char as u8]),
            _ if is_hidden(char) => escape_unit(out, char),
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn escape_unit(out: &mut Vec<u8>, char: char) {
    // A vector grows.
    let _ = write!(out, "\\u{:04x}", u32::from(char));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::{ENDED, with_line};

    #[test]
    fn what_terminals_obey_is_escaped() {
        let mut out = Vec::new();
        text(&mut out, b"\"", "a\"\\\u{7}\u{9b}31m\u{2028}\u{202e}\u{e9}\u{1f600}".as_bytes());
        let json = String::from_utf8(out).unwrap();
        assert_eq!(json, "\"a\\\"\\\\\\u0007\\u009b31m\\u2028\\u202e\u{e9}\u{1f600}\"");
        let read: String = serde_json::from_str(&json).unwrap();
        assert_eq!(read, "a\"\\\u{7}\u{9b}31m\u{2028}\u{202e}\u{e9}\u{1f600}");
    }

    #[test]
    fn plain_is_what_needs_no_escape() {
        for length in 0..20 {
            assert!(is_plain(&b"abcdefghijk~ !#[]^_z"[..length]));
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut value = [b'a'; 20];
                    value[place] = byte;
                    let is_special = !(b' '..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
                    assert_eq!(is_plain(&value[..length]), !is_special, "{byte} at {place} of {length}");
                }
            }
        }
    }

    #[test]
    fn addresses() {
        for address in ["0.1.9.10", "99.100.109.110", "192.0.2.255", "2001:db8::1"] {
            let mut out = Vec::new();
            push_address(&mut out, address.parse().unwrap());
            assert_eq!(out, address.as_bytes());
        }
    }

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
                "answered_us": 1200,
                "total_us": 2499,
                "host": "s3.test",
                "user_agent": "a \"quoted\" \\agent\té",
                "referer": "http://s3.test/b/k",
            })
        );
    }
}
