//! The one door through which errors leave.

use std::error::Error as _;
use std::iter::successors;

use backend::BackendError;
use http::Method;
use http::request::Parts;
use s3_types::{ChecksumAlgorithm, Condition};
use s3_wire::{ErrorCode, S3Error};

use super::RequestContext;
use crate::gateway::Gateway;
use crate::reply::{self, Reply};
use crate::request_id::{HostId, RequestId};

/// Which request an error belongs to.
#[derive(Debug, Clone)]
pub struct ErrorSite {
    id: RequestId,
    host_id: HostId,
    method: Method,
    path: String,
}

impl ErrorSite {
    /// The request with this context and head.
    pub fn new(gateway: &Gateway, cx: &RequestContext, head: &Parts) -> Self {
        let (method, path) = (head.method.clone(), head.uri.path().to_owned());
        Self { id: cx.id, host_id: gateway.host_id.clone(), method, path }
    }

    /// Logs an error, and writes its document.
    pub fn document(&self, error: &S3Error) -> String {
        self.log(error);
        error.render(self.id.as_str(), self.host_id.as_str())
    }

    /// Logs an error: aloud if it is the server's, or its operator's.
    pub fn log(&self, error: &S3Error) {
        let causes: Vec<_> =
            successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
        let causes = causes.join(": ");
        let (id, method, path) = (self.id.as_str(), self.method.as_str(), self.path.as_str());
        match error.code() {
            ErrorCode::InternalError | ErrorCode::InsufficientStorage => {
                tracing::error!(id, method, ?path, ?causes, "{error}");
            }
            // The file system denied it to the gateway, or the machine has too little of something.
            ErrorCode::AccessDenied | ErrorCode::SlowDown if !causes.is_empty() => {
                tracing::error!(id, method, ?path, ?causes, "{error}");
            }
            _ => tracing::debug!(id, method, ?path, ?causes, "{error}"),
        }
    }
}

/// The answer to a request that failed.
pub fn render(site: &ErrorSite, error: &S3Error) -> Reply {
    let mut reply = reply::xml(error.status(), site.document(error));
    for (name, value) in error.headers() {
        reply.headers_mut().insert(name, value.clone());
    }
    reply
}

/// S3's word for what went wrong in the storage. `bucket` and `key` are what the request was about.
pub fn from_backend(error: BackendError, bucket: Option<&str>, key: Option<&str>) -> S3Error {
    use BackendError as B;
    let bucket_error = |code| S3Error::new(code).detail("BucketName", bucket.unwrap_or_default());
    match error {
        B::NoSuchBucket => bucket_error(ErrorCode::NoSuchBucket),
        B::BucketNameTaken => bucket_error(ErrorCode::BucketAlreadyExists),
        B::BucketExists => bucket_error(ErrorCode::BucketAlreadyOwnedByYou),
        B::BucketNotEmpty => bucket_error(ErrorCode::BucketNotEmpty),
        B::BucketHoldsFiles => S3Error::with_message(
            ErrorCode::BucketNotEmpty,
            "The bucket you tried to delete is not empty: it holds files that are no objects.",
        )
        .detail("BucketName", bucket.unwrap_or_default()),
        B::NoSuchKey => S3Error::new(ErrorCode::NoSuchKey).detail("Key", key.unwrap_or_default()),
        B::NoSuchUpload => ErrorCode::NoSuchUpload.into(),
        B::InvalidPart { part_number, etag } => {
            about_part(S3Error::new(ErrorCode::InvalidPart), part_number, etag)
        }
        B::InvalidPartOrder => ErrorCode::InvalidPartOrder.into(),
        B::PartTooSmall { part_number, size_bytes, etag } => {
            about_part(too_small(size_bytes), part_number, etag)
        }
        B::NoSuchPart { parts } => {
            S3Error::new(ErrorCode::InvalidPartNumber).detail("ActualPartCount", parts.to_string())
        }
        B::InvalidRange { size_bytes } => S3Error::invalid_range("", size_bytes),
        // Reads make a 304 of it; a copy's source never comes here with it.
        B::NotModified(_) => ErrorCode::PreconditionFailed.into(),
        B::PreconditionFailed(condition) => {
            S3Error::new(ErrorCode::PreconditionFailed).detail("Condition", condition_name(condition))
        }
        B::Conflict(Some(condition)) | B::ChangedSinceCreation(condition) => conflict(condition, key),
        // SDKs send it again. Whoever gets a 409 for a Complete has to send all parts again, so that no one gets it without
        // need.
        B::Conflict(None) => ErrorCode::SlowDown.into(),
        B::WrongSize { given_bytes, actual_bytes } => wrong_size(given_bytes, actual_bytes),
        B::WrongChecksum { algorithm } => wrong_checksum(algorithm),
        B::InvalidUploadMarker => invalid_upload_marker(""),
        B::TooLarge => ErrorCode::EntityTooLarge.into(),
        B::KeyNotStorable(why) => S3Error::with_message(
            ErrorCode::KeyTooLongError,
            "Your key cannot be stored by this file system.",
        )
        .caused_by(why),
        B::Obstructed(_) => S3Error::with_message(
            ErrorCode::AccessDenied,
            "A special file or symbolic link of the file system has this key's place.",
        ),
        B::OtherName => S3Error::with_message(
            ErrorCode::AccessDenied,
            "This key leads through a symbolic link of the file system: delete the object by its own key.",
        ),
        B::SameObject => copy_onto_itself(),
        B::OutOfSpace => {
            S3Error::new(ErrorCode::InsufficientStorage).caused_by("the file system is full, or a quota is")
        }
        // It is in the log once, not for each request.
        B::Unavailable(_) => ErrorCode::ServiceUnavailable.into(),
        B::Busy(what) => S3Error::new(ErrorCode::SlowDown).caused_by(what),
        B::ReadOnly => {
            S3Error::with_message(ErrorCode::AccessDenied, "The storage is read-only.").caused_by(B::ReadOnly)
        }
        denied @ (B::Denied { .. } | B::NewerRecord) => {
            S3Error::new(ErrorCode::AccessDenied).caused_by(denied)
        }
        B::Unsupported(what) => {
            S3Error::with_message(ErrorCode::NotImplemented, "The storage cannot do this.").caused_by(what)
        }
        internal @ (B::Changed | B::Io { .. }) => S3Error::new(ErrorCode::InternalError).caused_by(internal),
    }
}

fn about_part(error: S3Error, part_number: u32, etag: String) -> S3Error {
    error.detail("PartNumber", part_number.to_string()).detail("ETag", etag)
}

fn too_small(size_bytes: u64) -> S3Error {
    S3Error::new(ErrorCode::EntityTooSmall)
        .detail("ProposedSize", size_bytes.to_string())
        .detail("MinSizeAllowed", s3_types::limits::PART_BYTES_MIN.to_string())
}

fn wrong_size(given_bytes: u64, actual_bytes: u64) -> S3Error {
    let message = format!(
        "The provided 'x-amz-mp-object-size' header value {given_bytes} does not match what was computed: {actual_bytes}"
    );
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

/// S3's word for a copy whose source is what it would replace.
pub fn copy_onto_itself() -> S3Error {
    let message = "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

/// The error for a marker that is no upload of its key.
pub fn invalid_upload_marker(marker: &str) -> S3Error {
    S3Error::invalid_argument("upload-id-marker", marker, "Invalid uploadId marker")
}

/// The error for a write whose condition was about what someone else changed at the same time.
fn conflict(condition: Condition, key: Option<&str>) -> S3Error {
    S3Error::new(ErrorCode::ConditionalRequestConflict)
        .detail("Condition", condition_name(condition))
        .detail("Key", key.unwrap_or_default())
}

/// The error for a checksum of the whole that is not what an upload's parts make. Unlike those of
/// other requests it has the algorithm in small letters.
pub fn wrong_checksum(algorithm: ChecksumAlgorithm) -> S3Error {
    let name = algorithm.name().to_ascii_lowercase();
    let message = format!("The {name} you specified did not match the calculated checksum.");
    S3Error::with_message(ErrorCode::BadDigest, message)
}

const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::IfMatch => "If-Match",
        Condition::IfNoneMatch => "If-None-Match",
        Condition::IfModifiedSince => "If-Modified-Since",
        Condition::IfUnmodifiedSince => "If-Unmodified-Since",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3 tells whoever gets a 409 for a Complete to send all parts again; a 503 is only sent again.
    #[test]
    fn only_conditional_writes_conflict() {
        let told = |condition| {
            let error = from_backend(BackendError::Conflict(condition), Some("bucket"), Some("key"));
            let details: Vec<_> = error.details().iter().map(|(_, text)| text.clone()).collect();
            (error.code(), details)
        };
        for (condition, name) in [(Condition::IfMatch, "If-Match"), (Condition::IfNoneMatch, "If-None-Match")]
        {
            let details = vec![name.to_owned(), "key".to_owned()];
            assert_eq!(told(Some(condition)), (ErrorCode::ConditionalRequestConflict, details));
        }
        assert_eq!(told(None), (ErrorCode::SlowDown, vec![]));
    }
}
