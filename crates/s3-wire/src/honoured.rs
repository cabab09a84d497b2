//! Checks that an operation implements the `x-amz-*` headers and the parameters of its request.
//!
//! A write with any other header or parameter is refused. If it were performed without regard to
//! it, the client would get something else than it asked for, and might lose data that existed
//! before (docs/decisions/0017-refused-not-guessed.md). A read destroys nothing: it is refused only
//! for a header that would change the answer. All others are ignored, as by S3.

mod once;

use http::HeaderMap;

use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::{check_value, describes_body, stands_for_header};
use crate::operation::Operation;
use crate::query::Query;

/// The place of a request's signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signed {
    /// The signature is in the headers, or there is none.
    Headers,
    /// The signature is in the query and made by SigV4, which signs all other parameters.
    UrlV4,
    /// The signature is in the query and made by SigV2, which signs only the parameters that it
    /// knows.
    UrlV2,
}

/// Refuses the first header or parameter that the operation does not implement: `NotImplemented`,
/// with its name. A write is also refused if a header or parameter is given twice
/// (`InvalidArgument`).
///
/// `headers` are those that the operation will read, including those that parameters of a presigned
/// URL stand for.
pub fn check(operation: Operation, query: &Query<'_>, headers: &HeaderMap, signed: Signed) -> Result<()> {
    if operation.info().method.is_read() {
        return check_read(operation, headers);
    }
    for (name, value) in headers {
        if writes_differ(name.as_str()) || is_foreign_condition(operation, name.as_str()) {
            return Err(S3Error::header_not_implemented(name.as_str()));
        }
        let Some(rest) = name.as_str().strip_prefix("x-amz-") else { continue };
        if is_common(rest) {
            continue;
        }
        check_value(name, value)?;
        if !honours_header(operation, rest) {
            return Err(S3Error::header_not_implemented(name.as_str()));
        }
    }
    for (name, value) in query.iter() {
        if !honours_parameter(operation, name, signed) {
            return Err(S3Error::parameter_not_implemented(name));
        }
        if name == "x-id" && !value.is_empty() && value != operation.name() {
            return Err(another_operation(operation, value));
        }
    }
    once::check(query, headers)
}

/// Makes `NotImplemented` for a request that names another operation in `x-id`, in which SDKs write
/// the operation they mean. The parts of the request that select that operation may have been lost,
/// or be too new to be known here.
fn another_operation(operation: Operation, meant: &str) -> S3Error {
    let message = format!("x-id asks for {meant}, and the rest of the request for {}.", operation.name());
    S3Error::with_message(ErrorCode::NotImplemented, message).detail("Parameter", "x-id")
}

/// Refuses a read for a header that would change its answer.
fn check_read(operation: Operation, headers: &HeaderMap) -> Result<()> {
    let differs = |name: &str| name.strip_prefix("x-amz-").is_some_and(|rest| reads_differ(operation, rest));
    match headers.keys().find(|name| differs(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(S3Error::header_not_implemented(name.as_str())),
    }
}

/// True for headers that any request may have: those of its signature and framing, and those in
/// which an SDK describes itself.
///
/// `request-payer` only says that the client agrees to pay, and no client has to pay here.
fn is_common(rest: &str) -> bool {
    matches!(
        rest,
        "date"
            | "content-sha256"
            | "security-token"
            | "user-agent"
            | "decoded-content-length"
            | "trailer"
            | "sdk-checksum-algorithm"
            | "expected-bucket-owner"
            | "request-payer"
    )
}

/// True for a header with the client's own key for encryption (SSE-C). It would change the answer
/// of a read, and this server does not implement it.
fn reads_differ(operation: Operation, rest: &str) -> bool {
    use Operation as Op;
    rest.starts_with("server-side-encryption")
        && matches!(operation, Op::GetObject | Op::HeadObject | Op::GetObjectAttributes | Op::ListParts)
}

/// True for a header that is not S3's, by which a client asks a write to do something else than
/// this server does.
///
/// `Content-Range` writes a part of an object (RFC 9110, section 14.5: a partial PUT must not be
/// taken for a whole one; curl's `-C` sends it). So does `Range`, by which Dell ECS writes in the
/// middle of an object. The others are extensions of other servers ([`is_of_another_server`]).
fn writes_differ(name: &str) -> bool {
    matches!(name, "content-range" | "range") || is_of_another_server(name)
}

/// True for a condition (`If-...`) that `operation`, a write, does not implement.
///
/// S3 has conditions only on some writes, and a client that sends one on another write relies on
/// it: R2 has them on CreateMultipartUpload. Conditions by date are refused where conditions are
/// read, with S3's own sentence. `If-Range` has no meaning without `Range` (RFC 9110, section
/// 13.1.5), which no write may have.
fn is_foreign_condition(operation: Operation, name: &str) -> bool {
    use Operation as Op;
    let Some(rest) = name.strip_prefix("if-") else { return false };
    let conditional =
        matches!(operation, Op::PutObject | Op::CopyObject | Op::CompleteMultipartUpload | Op::DeleteObject);
    rest != "range"
        && !(conditional && matches!(rest, "match" | "none-match" | "modified-since" | "unmodified-since"))
}

/// The beginnings, in lower case, of headers and parameters to which other servers with S3's API,
/// or one like it, give a meaning: `x-goog-if-generation-match`, `x-oss-forbid-overwrite`,
/// `x-tigris-rename`, ...
///
/// The only one of Cloudflare's is for conditions on the object that a copy in R2 would replace:
/// its proxies add other headers that begin with `cf-` to every request.
const OTHER_SERVERS: [&str; 12] = [
    "cf-copy-destination-if-",
    "x-archive-",
    "x-bce-",
    "x-cos-",
    "x-emc-",
    "x-goog-",
    "x-minio-",
    "x-obs-",
    "x-oss-",
    "x-tigris-",
    "x-tos-",
    "x-wasabi-",
];

/// True for a name in lower case that begins with one of [`OTHER_SERVERS`].
fn is_of_another_server(name: &str) -> bool {
    OTHER_SERVERS.iter().any(|start| name.starts_with(start))
}

/// True if `operation`, a write, implements the header `x-amz-<rest>`.
fn honours_header(operation: Operation, rest: &str) -> bool {
    use Operation as Op;
    let creates_object = matches!(operation, Op::PutObject | Op::CopyObject | Op::CreateMultipartUpload);
    let copies = matches!(operation, Op::CopyObject | Op::UploadPartCopy);
    match rest {
        "acl" => creates_object || operation == Op::CreateBucket,
        "storage-class" | "tagging" | "website-redirect-location" => creates_object,
        // On PutObject and UploadPart, clients also name the algorithm of their trailer in this
        // header, which S3 ignores.
        "checksum-algorithm" => creates_object || operation == Op::UploadPart,
        "checksum-type" => {
            matches!(operation, Op::CreateMultipartUpload | Op::CompleteMultipartUpload | Op::PutObject)
        }
        "confirm-remove-self-bucket-access" => operation == Op::PutBucketPolicy,
        "mp-object-size" => operation == Op::CompleteMultipartUpload,
        "if-match-initiated-time" => operation == Op::AbortMultipartUpload,
        "copy-source"
        | "copy-source-if-match"
        | "copy-source-if-none-match"
        | "copy-source-if-modified-since"
        | "copy-source-if-unmodified-since"
        | "source-expected-bucket-owner" => copies,
        "copy-source-range" => operation == Op::UploadPartCopy,
        "metadata-directive" | "tagging-directive" => operation == Op::CopyObject,
        "object-lock-mode" | "object-lock-retain-until-date" | "object-lock-legal-hold" => creates_object,
        "bypass-governance-retention" => {
            matches!(operation, Op::DeleteObject | Op::DeleteObjects | Op::PutObjectRetention)
        }
        "object-ownership" | "bucket-namespace" | "bucket-object-lock-enabled" => {
            operation == Op::CreateBucket
        }
        _ if rest.starts_with("meta-") => creates_object,
        // An unknown algorithm is refused later, where checksums are read.
        _ => rest
            .strip_prefix("checksum-")
            .is_some_and(|algorithm| algorithm != "mode" && may_have_checksum(operation)),
    }
}

/// True if the request may have a checksum (`x-amz-checksum-<algorithm>`): that of its body, which
/// is empty in CreateMultipartUpload, or that of the whole object.
fn may_have_checksum(operation: Operation) -> bool {
    use Operation as Op;
    matches!(
        operation,
        Op::PutObject
            | Op::UploadPart
            | Op::CompleteMultipartUpload
            | Op::CreateMultipartUpload
            | Op::DeleteObjects
            | Op::CreateBucket
            | Op::PutBucketPolicy
            | Op::PutBucketVersioning
            | Op::PutObjectTagging
            | Op::PutBucketTagging
            | Op::PutObjectLockConfiguration
            | Op::PutObjectRetention
            | Op::PutObjectLegalHold
            | Op::PutBucketOwnershipControls
            | Op::PutPublicAccessBlock
    )
}

/// True if `operation`, a write, implements the parameter, or may ignore it.
fn honours_parameter(operation: Operation, name: &str, signed: Signed) -> bool {
    use Operation as Op;
    match name {
        "x-id" => true,
        "versionId" => {
            matches!(
                operation,
                Op::DeleteObject
                    | Op::PutObjectTagging
                    | Op::DeleteObjectTagging
                    | Op::PutObjectRetention
                    | Op::PutObjectLegalHold
            )
        }
        "tagging" => matches!(
            operation,
            Op::PutObjectTagging | Op::DeleteObjectTagging | Op::PutBucketTagging | Op::DeleteBucketTagging
        ),
        "uploads" => operation == Op::CreateMultipartUpload,
        "delete" => operation == Op::DeleteObjects,
        "publicAccessBlock" => matches!(operation, Op::PutPublicAccessBlock | Op::DeletePublicAccessBlock),
        "ownershipControls" => operation == Op::PutBucketOwnershipControls,
        "versioning" => operation == Op::PutBucketVersioning,
        "object-lock" => operation == Op::PutObjectLockConfiguration,
        "retention" => operation == Op::PutObjectRetention,
        "legal-hold" => operation == Op::PutObjectLegalHold,
        "policy" => matches!(operation, Op::PutBucketPolicy | Op::DeleteBucketPolicy),
        "partNumber" => matches!(operation, Op::UploadPart | Op::UploadPartCopy),
        "uploadId" => matches!(
            operation,
            Op::UploadPart | Op::UploadPartCopy | Op::CompleteMultipartUpload | Op::AbortMultipartUpload
        ),
        // Parameters of SigV2.
        "AWSAccessKeyId" | "Signature" | "Expires" => signed == Signed::UrlV2,
        _ => match name.get(..2) {
            // These are parameters of SigV4, and those that stand for a header, which were checked
            // as headers.
            Some(start) if start.eq_ignore_ascii_case("x-") => {
                let reserved = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"));
                if reserved {
                    return signed != Signed::Headers;
                }
                // Other parameters that begin with `x-` are for access logs (S3 User Guide, "Adding
                // custom fields").
                !is_of_another_server(&name.to_ascii_lowercase())
            }
            _ => match signed {
                Signed::Headers => false,
                Signed::UrlV4 => stands_for_header(name),
                // SigV2 signs two of these parameters, which are honoured. S3 ignores the others.
                Signed::UrlV2 => describes_body(name),
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn ask(operation: Operation, query: &str, header: &str, signed: Signed) -> &'static str {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header.split_once(": ") {
            headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        match check(operation, &Query::parse(query).unwrap(), &headers, signed) {
            Ok(()) => "",
            Err(error) => error.code().into(),
        }
    }

    #[test]
    fn writes_refuse_what_they_do_not_know() {
        use Operation::{DeleteBucket, DeleteObject, PutObject, UploadPart};
        for (operation, query, header, answer) in [
            (PutObject, "", "x-amz-meta-a: b", ""),
            (PutObject, "", "x-amz-checksum-crc32: AAAAAA==", ""),
            (PutObject, "", "x-amz-frob: 1", "NotImplemented"),
            (PutObject, "", "x-amz-if-match-size: 1", "NotImplemented"),
            (PutObject, "", "x-amz-acl: public-read", "AccessControlListNotSupported"),
            (UploadPart, "partNumber=1&uploadId=x", "x-amz-meta-a: b", "NotImplemented"),
            (DeleteObject, "versionId=null", "", ""),
            (DeleteObject, "", "x-amz-mfa: 1 2", "NotImplemented"),
            (PutObject, "x-id=PutObject", "", ""),
            (PutObject, "x-id", "", ""),
            (PutObject, "x-id=PutObjectTagging", "", "NotImplemented"),
            (UploadPart, "partNumber=1&uploadId=x&x-id=PutObject", "", "NotImplemented"),
            (PutObject, "x-oss-forbid-overwrite=true", "", "NotImplemented"),
            (PutObject, "X-Goog-If-Generation-Match=0", "", "NotImplemented"),
            (PutObject, "", "x-cos-forbid-overwrite: true", "NotImplemented"),
            (PutObject, "", "cf-copy-destination-if-none-match: *", "NotImplemented"),
            (PutObject, "", "cf-ray: 1", ""),
            (PutObject, "", "if-none-match: *", ""),
            (PutObject, "", "if-range: a", ""),
            (PutObject, "", "if-frob: a", "NotImplemented"),
            (UploadPart, "partNumber=1&uploadId=x", "if-match: a", "NotImplemented"),
            (DeleteBucket, "", "if-unmodified-since: a", "NotImplemented"),
            (DeleteObject, "versionId=null&versionId=abc", "", "InvalidArgument"),
            (PutObject, "x-a=1&x-a=2", "", ""),
            (PutObject, "x-whatever=1", "", ""),
            (PutObject, "frob", "", "NotImplemented"),
            (PutObject, "frob=1", "", "NotImplemented"),
            (PutObject, "x-amz-meta-a=1", "", "NotImplemented"),
            (PutObject, "if-none-match=*", "", "NotImplemented"),
            (PutObject, "AWSAccessKeyId=1", "", "NotImplemented"),
        ] {
            assert_eq!(
                ask(operation, query, header, Signed::Headers),
                answer,
                "{} {query} {header}",
                operation.name()
            );
        }
        assert_eq!(ask(PutObject, "If-None-Match=*&X-Amz-Date=1", "", Signed::UrlV4), "");
        assert_eq!(ask(PutObject, "AWSAccessKeyId=1&Signature=x&Expires=1", "", Signed::UrlV2), "");
        assert_eq!(ask(PutObject, "If-None-Match=*", "", Signed::UrlV2), "NotImplemented");
        for described in ["Content-Type=a", "content-type=a", "Cache-Control=a"] {
            assert_eq!(ask(PutObject, described, "", Signed::UrlV4), "");
            assert_eq!(ask(PutObject, described, "", Signed::UrlV2), "");
            assert_eq!(ask(PutObject, described, "", Signed::Headers), "NotImplemented");
        }
        assert_eq!(ask(PutObject, "frob=*", "", Signed::UrlV4), "NotImplemented");
        assert_eq!(ask(PutObject, "If-Match=a&if-match=b", "", Signed::UrlV4), "InvalidArgument");
    }

    #[test]
    fn reads_pass_over_noise() {
        use Operation::{GetObject, ListObjects};
        assert_eq!(ask(GetObject, "frob&x=1", "x-amz-frob: 1", Signed::Headers), "");
        assert_eq!(ask(GetObject, "", "x-amz-acl: public-read", Signed::Headers), "");
        assert_eq!(
            ask(GetObject, "", "x-amz-server-side-encryption-customer-key: k", Signed::Headers),
            "NotImplemented"
        );
        assert_eq!(ask(ListObjects, "", "x-amz-server-side-encryption-customer-key: k", Signed::Headers), "");
    }
}
