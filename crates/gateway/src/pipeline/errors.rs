//! The one door through which errors leave.

use std::error::Error as _;

use backend::BackendError;
use http::StatusCode;
use http::request::Parts;
use s3_types::Condition;
use s3_wire::{ErrorCode, S3Error};

use super::RequestContext;
use crate::gateway::Gateway;
use crate::reply::{self, Reply};

/// Renders an error, and logs it once if it is ours.
pub fn render(gateway: &Gateway, cx: &RequestContext, head: &Parts, error: &S3Error) -> Reply {
    log(cx, head, error);
    let status = error.status();
    let mut reply = if status == StatusCode::NOT_MODIFIED {
        reply::empty(status)
    } else {
        reply::xml(status, error.render(head.uri.path(), cx.id.as_str(), gateway.host_id.as_str()))
    };
    for (name, value) in error.headers() {
        reply.headers_mut().insert(name, value.clone());
    }
    reply
}

fn log(cx: &RequestContext, head: &Parts, error: &S3Error) {
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push_str(": ");
        causes.push_str(&cause.to_string());
        source = cause.source();
    }
    let (id, method, path) = (cx.id.as_str(), head.method.as_str(), head.uri.path());
    if error.status().is_server_error() && error.code() != ErrorCode::NotImplemented {
        tracing::error!(id, method, ?path, ?causes, "{error}");
    } else {
        tracing::debug!(id, method, ?path, ?causes, "{error}");
    }
}

/// S3's word for what went wrong in the storage. `bucket` and `key` are what the request was about.
pub fn from_backend(error: BackendError, bucket: Option<&str>, key: Option<&str>) -> S3Error {
    use BackendError as B;
    let bucket_error = |code| S3Error::new(code).detail("BucketName", bucket.unwrap_or_default());
    match error {
        B::NoSuchBucket => bucket_error(ErrorCode::NoSuchBucket),
        B::BucketExists => bucket_error(ErrorCode::BucketAlreadyOwnedByYou),
        B::BucketNotEmpty => bucket_error(ErrorCode::BucketNotEmpty),
        B::NoSuchKey => S3Error::new(ErrorCode::NoSuchKey).detail("Key", key.unwrap_or_default()),
        B::NoSuchUpload => ErrorCode::NoSuchUpload.into(),
        B::InvalidPart { part_number, etag } => S3Error::new(ErrorCode::InvalidPart)
            .detail("PartNumber", part_number.to_string())
            .detail("ETag", etag),
        B::InvalidPartOrder => ErrorCode::InvalidPartOrder.into(),
        B::PartTooSmall { part_number, size_bytes, etag } => S3Error::new(ErrorCode::EntityTooSmall)
            .detail("ProposedSize", size_bytes.to_string())
            .detail("MinSizeAllowed", s3_types::limits::PART_BYTES_MIN.to_string())
            .detail("PartNumber", part_number.to_string())
            .detail("ETag", etag),
        B::NoSuchPart => ErrorCode::InvalidPartNumber.into(),
        B::InvalidRange { size_bytes } => S3Error::invalid_range("", size_bytes),
        // Reads render this themselves, with the headers it needs; nothing else asks for it.
        B::NotModified(_) => ErrorCode::PreconditionFailed.into(),
        B::PreconditionFailed(condition) => {
            S3Error::new(ErrorCode::PreconditionFailed).detail("Condition", condition_name(condition))
        }
        B::Conflict => ErrorCode::ConditionalRequestConflict.into(),
        B::Mismatch { what: "size" } => S3Error::with_message(
            ErrorCode::InvalidRequest,
            "The provided 'x-amz-mp-object-size' header does not match what was computed.",
        ),
        B::Mismatch { what } => S3Error::with_message(
            ErrorCode::BadDigest,
            format!("The {what} you specified did not match the calculated {what}."),
        ),
        B::TooLarge => ErrorCode::EntityTooLarge.into(),
        B::KeyNotStorable(why) => S3Error::with_message(
            ErrorCode::KeyTooLongError,
            "Your key cannot be stored by this file system.",
        )
        .caused_by(why),
        B::OutOfSpace => {
            S3Error::new(ErrorCode::InsufficientStorage).caused_by("the file system is full, or a quota is")
        }
        B::ReadOnly => {
            S3Error::with_message(ErrorCode::AccessDenied, "The storage is read-only.").caused_by(B::ReadOnly)
        }
        denied @ B::Denied { .. } => S3Error::new(ErrorCode::AccessDenied).caused_by(denied),
        B::Unsupported(what) => {
            S3Error::with_message(ErrorCode::NotImplemented, "The storage cannot do this.").caused_by(what)
        }
        internal @ (B::Changed | B::Io { .. }) => S3Error::new(ErrorCode::InternalError).caused_by(internal),
    }
}

const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::IfMatch => "If-Match",
        Condition::IfNoneMatch => "If-None-Match",
        Condition::IfModifiedSince => "If-Modified-Since",
        Condition::IfUnmodifiedSince => "If-Unmodified-Since",
        Condition::IfMatchSize => "x-amz-if-match-size",
        Condition::IfMatchLastModified => "x-amz-if-match-last-modified-time",
    }
}
