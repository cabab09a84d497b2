//! Writes a line in the format of Amazon S3's server access log ("Amazon S3 server access log
//! format" in its user guide): 26 fields separated by spaces, `-` for those without a value.

use std::io::Write as _;
use std::time::Duration;

use iam::{PrincipalKind, Session};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_encode, utf8_percent_encode};
use s3_types::BucketName;
use s3_wire::operation::{Operation, OperationInfo, Selector};
use s3_wire::subresource::Subresource;
use s3_wire::time::format_log_time;

use crate::line::{Ended, Line};
use crate::peer::Tls;

/// The characters that are escaped in keys. As in Amazon's log, it is done as in a URL.
const KEY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'*');
/// The characters that are escaped in a quoted field, since they would end the field or the line.
const QUOTED: &AsciiSet = &CONTROLS.add(b'"').add(b'\\');
/// The characters that are escaped in a field without quotes, since they would end the field or the
/// line.
const BARE: &AsciiSet = &QUOTED.add(b' ');

/// Returns the requester as Amazon's log names it: root by the canonical id of its account, others
/// by their ARN.
fn requester(session: &Session) -> &str {
    match session.principal.kind {
        PrincipalKind::Root => &session.facts.canonical_id,
        PrincipalKind::User
        | PrincipalKind::Role
        | PrincipalKind::FederatedUser
        | PrincipalKind::DirectoryUser => &session.principal.arn,
    }
}

/// Appends the part of a line that is known before the request has ended. Returns the position in
/// the line at which the remaining fields are inserted.
pub fn begin(out: &mut Vec<u8>, line: &Line<'_>) -> usize {
    let target = line.known.target.as_ref();
    let bucket = target.and_then(|target| target.bucket()).map(BucketName::as_str);
    let key = line.key();
    let headers = line.headers();
    let signature = line.signature(&headers);
    let mut fields = Fields { out, is_first: true };
    fields.text(bucket.map(|_| line.owner));
    fields.text(bucket);
    fields.shown(format_args!("[{}]", format_log_time(line.time)));
    fields.value(line.remote());
    fields.text(line.session().map(requester));
    fields.text(Some(line.id.as_str()));
    fields.operation(line.known.operation, line);
    fields.value(key.as_deref().map(|key| utf8_percent_encode(key, KEY)));
    let mut target = Vec::new();
    line.push_target(&mut target);
    let target = percent_encode(&target, QUOTED);
    fields.shown(format_args!("\"{} {target} {:?}\"", line.method(), line.head.version));
    fields.text(Some(line.status.as_str()));
    fields.text(line.code.map(Into::into));
    let rest_at = fields.out.len();
    fields.value(Some(milliseconds(line.answered)));
    fields.quoted(headers.referer);
    fields.quoted(headers.user_agent);
    // The version is the one that the request names, as in Amazon's log.
    fields.text(line.known.query.as_ref().and_then(|query| query.get("versionId")));
    fields.text(Some(line.host_id));
    fields.text(signature.map(|signature| signature.version));
    fields.text(line.peer.tls.map(Tls::cipher));
    fields.text(signature.map(|s| if s.in_query { "QueryString" } else { "AuthHeader" }));
    fields.value(headers.host.filter(|host| !host.is_empty()).map(|host| percent_encode(host, BARE)));
    fields.text(line.peer.tls.map(Tls::version));
    // The access point's ARN, and whether an ACL was needed: there are neither.
    fields.text(None);
    fields.text(None);
    rest_at
}

/// Appends the whole line, without its line break.
pub fn end(out: &mut Vec<u8>, begun: &[u8], rest_at: usize, ended: &Ended<'_>) {
    let (before, behind) = begun.split_at(rest_at);
    out.extend_from_slice(before);
    let mut fields = Fields { out, is_first: false };
    fields.value((ended.bytes_out > 0).then_some(ended.bytes_out));
    fields.value(ended.object_bytes);
    fields.value(Some(milliseconds(ended.elapsed)));
    out.extend_from_slice(behind);
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

struct Fields<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl Fields<'_> {
    fn shown(&mut self, field: std::fmt::Arguments<'_>) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b' ');
        }
        // A vector grows.
        let _ = self.out.write_fmt(field);
    }

    fn value(&mut self, field: Option<impl std::fmt::Display>) {
        match field {
            Some(field) => self.shown(format_args!("{field}")),
            None => self.shown(format_args!("-")),
        }
    }

    fn text(&mut self, field: Option<&str>) {
        self.value(field.map(|text| utf8_percent_encode(text, BARE)));
    }

    fn quoted(&mut self, field: Option<&[u8]>) {
        self.shown(format_args!("\"{}\"", percent_encode(field.unwrap_or(b"-"), QUOTED)));
    }

    /// Appends the operation, such as `REST.GET.OBJECT`: the method, and Amazon's word for the
    /// resource.
    fn operation(&mut self, operation: Option<Operation>, line: &Line<'_>) {
        if let Some(info) = operation.map(Operation::info) {
            return self.shown(format_args!("REST.{}.{}", verb(info), word(info)));
        }
        let shape = line.known.target.as_ref().map(|target| target.shape().resource_type());
        let method = percent_encode(line.method().as_bytes(), BARE);
        self.shown(format_args!("REST.{method}.{}", shape.unwrap_or("UNKNOWN")));
    }
}

fn verb(info: &OperationInfo) -> &'static str {
    match info.operation {
        Operation::CopyObject | Operation::UploadPartCopy => "COPY",
        _ => info.method.as_str(),
    }
}

/// Returns Amazon's word for the resource of an operation: the one in its errors, except for a few
/// that only its logs use.
fn word(info: &OperationInfo) -> &'static str {
    let OperationInfo { operation, selector, shape, .. } = info;
    match operation {
        Operation::UploadPart | Operation::UploadPartCopy => return "PART",
        Operation::CopyObject => return "OBJECT",
        _ => {}
    }
    let name = match selector {
        Selector::Plain | Selector::Header(_) => None,
        Selector::Sub(name)
        | Selector::SubValue(name, _)
        | Selector::SubBoth(name, _)
        | Selector::SubBothHeader(name, ..) => Subresource::named(name),
    };
    name.and_then(|subresource| subresource.resource_type(*shape)).unwrap_or(shape.resource_type())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::tests::{ENDED, with_line, with_line_of};

    #[test]
    fn fields() {
        let mut out = Vec::new();
        with_line(|line| {
            let mut begun = Vec::new();
            let rest_at = begin(&mut begun, line);
            end(&mut out, &begun, rest_at, &ENDED);
        });
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "0123abcd bucket [14/Nov/2023:22:13:20 +0000] 192.0.2.7 - 0123456789ABCDEF REST.PUT.OBJECT \
             a%22%0Ab \"PUT /bucket/a%22%0Ab?X-Amz-Signature=REDACTED&x=%221%22 HTTP/1.1\" 403 AccessDenied \
             240 5 2 1 \"http://s3.test/b/k\" \"a %22quoted%22 %5Cagent%09%C3%A9\" - \
             host+id/= - - - s3.test - - -"
        );
    }

    #[test]
    fn a_version_that_the_request_names() {
        let request = http::Request::builder().uri("/bucket/k?versionId=17%20f2").body(()).unwrap();
        with_line_of(request, |line| {
            let query = s3_wire::Query::parse(line.head.uri.query().unwrap_or_default()).ok();
            let known = crate::request::Known { query, ..Default::default() };
            let (line, mut out) = (Line { known: &known, ..*line }, Vec::new());
            begin(&mut out, &line);
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains(" \"-\" \"-\" 17%20f2 host+id/= "), "{text}");
        });
    }

    #[test]
    fn words() {
        for (operation, word) in [
            (Operation::GetObject, "OBJECT"),
            (Operation::ListObjectsV2, "BUCKET"),
            (Operation::ListBuckets, "SERVICE"),
            (Operation::UploadPartCopy, "PART"),
            (Operation::GetBucketLocation, "LOCATION"),
            (Operation::GetBucketLogging, "LOGGING_STATUS"),
            (Operation::GetBucketPolicy, "BUCKETPOLICY"),
            (Operation::DeleteObjects, "MULTI_OBJECT_DELETE"),
            (Operation::CompleteMultipartUpload, "UPLOAD"),
            (Operation::CreateMultipartUpload, "UPLOADS"),
            (Operation::ListObjectVersions, "BUCKETVERSIONS"),
            (Operation::GetPublicAccessBlock, "PUBLIC_ACCESS_BLOCK"),
            (Operation::GetBucketRequestPayment, "REQUEST_PAYMENT"),
            (Operation::GetBucketTagging, "TAGGING"),
            (Operation::GetObjectTagging, "OBJECT_TAGGING"),
            (Operation::GetBucketAnalyticsConfiguration, "ANALYTICS"),
        ] {
            assert_eq!(super::word(operation.info()), word);
        }
    }
}
