//! A line as a JSON object.

use s3_types::{BucketName, ObjectKey};
use s3_wire::operation::Operation;
use s3_wire::time::IsoMicros;
use serde::Serialize;

use super::line::Line;
use crate::server::Tls;

/// The fields, in their order. What is not known of a request is left out.
#[derive(Serialize)]
struct Fields<'a> {
    time: &'a str,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_ip: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    method: &'a str,
    target: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    bytes_in: u64,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_bytes: Option<u64>,
    answered_us: u64,
    total_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presigned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    referer: Option<&'a str>,
}

/// Appends the line, without its end.
pub fn write(out: &mut Vec<u8>, line: &Line<'_>) {
    let target = line.known.target.as_ref();
    let identity = line.identity();
    let signature = line.signature();
    let (host, user_agent, referer) = (line.host(), line.user_agent(), line.referer());
    let time = IsoMicros::new(line.time);
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let fields = Fields {
        time: time.as_str(),
        request_id: line.id,
        remote_ip: line.remote(),
        user: identity.map(|identity| identity.name.as_str()),
        access_key: identity.map(|identity| identity.credential.access_key.as_str()),
        operation: line.known.operation.map(Operation::name),
        bucket: target.and_then(|target| target.bucket()).map(BucketName::as_str),
        key: target.and_then(|target| target.key()).map(ObjectKey::as_str),
        method: line.head.method.as_str(),
        target: &line.target(),
        status: line.status,
        error: line.code.map(Into::into),
        bytes_in: line.bytes_in,
        bytes_out: line.bytes_out,
        object_bytes: line.object_bytes,
        answered_us: micros(line.answered),
        total_us: micros(line.elapsed),
        signature: signature.map(|signature| signature.version),
        presigned: signature.map(|signature| signature.in_query),
        tls: line.peer.tls.map(Tls::version),
        host: host.as_deref(),
        user_agent: user_agent.as_deref(),
        referer: referer.as_deref(),
    };
    // Numbers and text can't fail to become JSON, nor a vector to grow.
    let _ = serde_json::to_writer(out, &fields);
}

#[cfg(test)]
mod tests {
    use super::super::line::tests::with_line;
    use super::*;

    #[test]
    fn fields() {
        let mut out = Vec::new();
        with_line(|line| write(&mut out, line));
        assert!(!out.contains(&b'\n'));
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(
            line,
            serde_json::json!({
                "time": "2023-11-14T22:13:20.123456Z",
                "request_id": "0123456789ABCDEF",
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
                "referer": "http://s3.test/b/k?a=1&Signature=REDACTED",
            })
        );
    }
}
