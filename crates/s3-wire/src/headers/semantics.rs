use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue};
use s3_types::ObjectOwnership;

use super::text::joined;
use crate::error::{ErrorCode, Result, S3Error};
use crate::query::Query;

/// Refuses a value of a header that writes implement, if it asks for something that this server
/// does not have. Headers that no write implements are refused with any value: [`crate::honoured`].
///
/// Most errors are `NotImplemented`. ACLs are refused as by a bucket with S3's default, where they
/// are switched off (`AccessControlListNotSupported`), except for the two that change nothing. A
/// storage class other than STANDARD is `InvalidStorageClass`.
pub fn check_value(name: &HeaderName, value: &HeaderValue) -> Result<()> {
    match name.as_str().strip_prefix("x-amz-") {
        Some(rest) => check(name, rest, value.to_str().unwrap_or("?").trim()),
        None => Ok(()),
    }
}

/// The canned ACLs that S3 knows.
const CANNED_ACLS: [&str; 8] = [
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
    "log-delivery-write",
];

fn check(name: &HeaderName, rest: &str, value: &str) -> Result<()> {
    let is = |accepted: &[&str]| accepted.iter().any(|a| value.eq_ignore_ascii_case(a));
    let harmless = match rest {
        "acl" if is(&["private", "bucket-owner-full-control"]) => true,
        "acl" if value.is_empty() || is(&CANNED_ACLS) => {
            return Err(ErrorCode::AccessControlListNotSupported.into());
        }
        // S3's own sentence is empty.
        "acl" => return Err(S3Error::invalid_argument("x-amz-acl", value, "")),
        "storage-class" if is(&["STANDARD"]) => true,
        "storage-class" => {
            return Err(S3Error::new(ErrorCode::InvalidStorageClass).detail("StorageClassRequested", value));
        }
        "object-ownership" => {
            let Ok(ownership) = value.parse::<ObjectOwnership>() else {
                let message = format!("Invalid x-amz-object-ownership header: {value}");
                return Err(S3Error::argument_named("x-amz-object-ownership", message));
            };
            ownership == ObjectOwnership::BucketOwnerEnforced
        }
        "bucket-namespace" => is(&["global"]),
        "bucket-object-lock-enabled" => is(&["true", "false"]),
        _ if rest.starts_with("grant-") => return Err(ErrorCode::AccessControlListNotSupported.into()),
        _ => true,
    };
    if harmless { Ok(()) } else { Err(S3Error::header_not_implemented(name.as_str())) }
}

/// Returns the account that must own the bucket (`x-amz-expected-bucket-owner`); S3 answers
/// `AccessDenied` if it does not.
///
/// All values are joined, so that two accounts match no account.
pub fn expected_bucket_owner(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    joined(headers, "x-amz-expected-bucket-owner")
}

/// Returns the account that must own the bucket of a copy's source
/// (`x-amz-source-expected-bucket-owner`).
pub fn source_expected_bucket_owner(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    joined(headers, "x-amz-source-expected-bucket-owner")
}

/// True if the query has a parameter that [`hoist_query`] turns into a header.
pub fn is_hoisted(query: &Query<'_>) -> bool {
    query.iter().any(|(parameter, _)| is_header(parameter))
}

/// True for a parameter that stands for a header without `x-amz-`, in any case of letters: a
/// condition of a write, which S3 honours in a signed query, or a description of a body. Clients
/// move both there.
pub fn stands_for_header(parameter: &str) -> bool {
    is_condition(parameter) || describes_body(parameter)
}

fn is_condition(parameter: &str) -> bool {
    ["if-match", "if-none-match"].iter().any(|name| parameter.eq_ignore_ascii_case(name))
}

/// True for a parameter with the name of a header that describes a body, in any case of letters.
pub fn describes_body(parameter: &str) -> bool {
    const NAMES: [&str; 6] = [
        "cache-control",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-md5",
        "content-type",
    ];
    NAMES.iter().any(|name| parameter.eq_ignore_ascii_case(name))
}

/// True for a parameter of a signature itself, in any case of letters.
pub fn is_of_signature(parameter: &str) -> bool {
    const NAMES: [&str; 9] = [
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-signedheaders",
        "x-amz-signature",
        "x-amz-security-token",
        "x-amz-content-sha256",
        "x-amz-sdk-checksum-algorithm",
    ];
    // The names as all clients write them.
    if matches!(
        parameter,
        "X-Amz-Algorithm"
            | "X-Amz-Credential"
            | "X-Amz-Date"
            | "X-Amz-Expires"
            | "X-Amz-SignedHeaders"
            | "X-Amz-Signature"
            | "X-Amz-Security-Token"
            | "X-Amz-Content-Sha256"
    ) {
        return true;
    }
    NAMES.iter().any(|name| parameter.eq_ignore_ascii_case(name))
}

/// True for a parameter that stands for a header, and is not a part of the signature itself.
///
/// S3 ignores checksums in the query: SDKs put the checksum of an empty body there, since they sign
/// before there is a body.
fn is_header(parameter: &str) -> bool {
    /// The parameters that choose a checksum; all others that begin with `x-amz-checksum-` have the
    /// value of one.
    const CHOOSES: [&str; 3] = ["x-amz-checksum-algorithm", "x-amz-checksum-mode", "x-amz-checksum-type"];
    let is = |name: &&str| parameter.eq_ignore_ascii_case(name);
    if !parameter.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-")) {
        return stands_for_header(parameter);
    }
    let of_checksum = parameter.get(6..15).is_some_and(|word| word.eq_ignore_ascii_case("checksum-"));
    !is_of_signature(parameter) && (!of_checksum || CHOOSES.iter().any(is))
}

/// Adds headers for the parameters of a presigned URL that stand for headers.
///
/// SDKs move headers into the query when they presign (`x-amz-meta-*`, `x-amz-acl`,
/// `If-None-Match`, `Content-Type`, ...), and S3 reads most of them there. The parameters of the
/// signature itself stay parameters.
///
/// Must be called after the signature is verified, since the parameters count as signed. By then
/// the operation is chosen: `x-amz-copy-source`, which would select another one, is
/// `NotImplemented` here, as is a name that no header can have. A value that no header can have is
/// `InvalidArgument`.
///
/// The client that uses the URL may also send headers, which need not be signed. These never
/// replace a parameter, which is signed: otherwise a condition could be removed, or other bytes
/// could be stored than were meant. (A header that the URL signs takes precedence over its
/// parameter.)
pub fn hoist_query(query: &Query<'_>, headers: &mut HeaderMap) -> Result<()> {
    let signed = query.get("X-Amz-SignedHeaders").unwrap_or_default();
    let is_signed = |name: &HeaderName| signed.split(';').any(|one| one.eq_ignore_ascii_case(name.as_str()));
    for (parameter, value) in query.iter().filter(|(parameter, _)| is_header(parameter)) {
        let Ok(name) = HeaderName::try_from(parameter) else {
            return Err(S3Error::parameter_not_implemented(parameter));
        };
        if headers.contains_key(&name) && is_signed(&name) {
            continue;
        }
        if name == "x-amz-copy-source" {
            return Err(S3Error::header_not_implemented("x-amz-copy-source"));
        }
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            S3Error::with_message(ErrorCode::InvalidArgument, "Invalid header value in query string")
        })?;
        headers.insert(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::honoured::{self, Signed};
    use crate::operation::Operation;

    fn refused(
        operation: Operation,
        name: &'static str,
        value: &'static str,
    ) -> Option<(ErrorCode, Option<String>)> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        let query = Query::parse("").unwrap();
        let error = honoured::check(operation, &query, &headers, Signed::Headers).err()?;
        Some((error.code(), error.details().first().map(|(_, text)| text.clone())))
    }

    #[test]
    fn what_is_lacking_is_said() {
        use Operation::{CopyObject, CreateBucket, DeleteObject, PutObject};
        for (operation, name, value) in [
            (PutObject, "x-amz-server-side-encryption", "AES256"),
            (PutObject, "x-amz-server-side-encryption-customer-key", "k"),
            (CopyObject, "x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
            (PutObject, "x-amz-object-lock-event-hold", "ON"),
            (PutObject, "x-amz-object-lock-event-hold-duration-days", "1"),
            (DeleteObject, "x-amz-object-lock-mode", "COMPLIANCE"),
            (CreateBucket, "x-amz-bucket-object-lock-enabled", "maybe"),
            (CreateBucket, "x-amz-bucket-object-lock-token", "x"),
            (PutObject, "x-amz-write-offset-bytes", "0"),
            (DeleteObject, "x-amz-mfa", "1 2"),
            (DeleteObject, "x-amz-if-match-size", "1"),
            (DeleteObject, "x-amz-if-match-last-modified-time", "x"),
            (PutObject, "x-amz-rename-source", "k"),
            (CreateBucket, "x-amz-object-ownership", "ObjectWriter"),
            (CreateBucket, "x-amz-bucket-namespace", "account-regional"),
            (PutObject, "x-amz-something-new", "x"),
        ] {
            assert_eq!(
                refused(operation, name, value),
                Some((ErrorCode::NotImplemented, Some(name.to_owned()))),
                "{name}"
            );
        }
        for (name, value) in [("x-amz-acl", "public-read"), ("x-amz-acl", ""), ("x-amz-grant-read", "id=x")] {
            assert_eq!(
                refused(PutObject, name, value),
                Some((ErrorCode::AccessControlListNotSupported, None))
            );
        }
        let acl = refused(PutObject, "x-amz-acl", "fake-acl");
        assert_eq!(acl, Some((ErrorCode::InvalidArgument, Some("x-amz-acl".to_owned()))));
        for value in ["RandomValue", "", "bucketownerenforced"] {
            let error = refused(CreateBucket, "x-amz-object-ownership", value);
            assert_eq!(error, Some((ErrorCode::InvalidArgument, Some("x-amz-object-ownership".to_owned()))));
        }
        let class = refused(PutObject, "x-amz-storage-class", "GLACIER");
        assert_eq!(class, Some((ErrorCode::InvalidStorageClass, Some("GLACIER".to_owned()))));
    }

    #[test]
    fn what_changes_nothing_passes() {
        use Operation::{CopyObject, CreateBucket, DeleteObject, PutObject};
        for (operation, name, value) in [
            (PutObject, "x-amz-acl", "private"),
            (PutObject, "x-amz-acl", "bucket-owner-full-control"),
            (PutObject, "x-amz-storage-class", "STANDARD"),
            (CreateBucket, "x-amz-object-ownership", "BucketOwnerEnforced"),
            (CreateBucket, "x-amz-bucket-namespace", "global"),
            (CreateBucket, "x-amz-bucket-object-lock-enabled", "false"),
            (CreateBucket, "x-amz-bucket-object-lock-enabled", "True"),
            (DeleteObject, "x-amz-bypass-governance-retention", "true"),
            (PutObject, "x-amz-object-lock-mode", "COMPLIANCE"),
            (PutObject, "x-amz-tagging", "a=b"),
            (CopyObject, "x-amz-tagging-directive", "REPLACE"),
            (PutObject, "x-amz-request-payer", "requester"),
            (PutObject, "x-amz-date", "20130524T000000Z"),
            (PutObject, "x-amz-meta-server-side-encryption", "x"),
            (PutObject, "x-amz-expected-bucket-owner", "1"),
            (PutObject, "content-type", "x"),
        ] {
            assert_eq!(refused(operation, name, value), None, "{name}");
        }
    }

    #[test]
    fn presigned_headers_count() {
        let text = "X-Amz-Algorithm=AWS4&X-Amz-Signature=0&x-amz-acl=public-read&X-Amz-Meta-A=%C3%A9&x-amz-checksum-crc32=a&x-amz-meta-b=a&If-None-Match=*\
                    &Content-Type=text/x&prefix=x&X-Amz-SignedHeaders=host;X-Amz-Meta-B&\u{e9}\u{e9}\u{e9}=1";
        let query = Query::parse(text).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-meta-b", HeaderValue::from_static("b"));
        hoist_query(&query, &mut headers).unwrap();
        assert_eq!(headers.len(), 5);
        assert_eq!(headers["content-type"], "text/x");
        assert_eq!(headers["if-none-match"], "*");
        assert_eq!(headers["x-amz-acl"], "public-read");
        assert_eq!(headers["x-amz-meta-a"], "é".as_bytes());
        assert_eq!(headers["x-amz-meta-b"], "b");
        assert!(!headers.contains_key("x-amz-checksum-crc32"));
        for (text, code) in [
            ("x-amz-meta-c=%0D%0AX:1", ErrorCode::InvalidArgument),
            ("x-amz-copy-source=b/k", ErrorCode::NotImplemented),
            ("x-amz-a%20b=1", ErrorCode::NotImplemented),
        ] {
            let query = Query::parse(text).unwrap();
            assert_eq!(hoist_query(&query, &mut headers).unwrap_err().code(), code);
        }
    }

    #[test]
    fn owners() {
        let mut headers = HeaderMap::new();
        assert_eq!(expected_bucket_owner(&headers), None);
        headers.insert("x-amz-expected-bucket-owner", HeaderValue::from_static("123"));
        headers.insert("x-amz-source-expected-bucket-owner", HeaderValue::from_static("456"));
        assert_eq!(expected_bucket_owner(&headers).as_deref(), Some("123"));
        assert_eq!(source_expected_bucket_owner(&headers).as_deref(), Some("456"));
    }
}
