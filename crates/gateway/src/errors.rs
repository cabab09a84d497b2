//! Turns errors into answers and lines of the log. Every error of a request goes through here.

use std::error::Error as _;
use std::iter::successors;

use backend::{BackendError, DeleteMarker, VersionsLack};
use http::header::LAST_MODIFIED;
use http::request::Parts;
use http::{HeaderValue, Method};
use iam::Resource;
use s3_types::{BucketName, ChecksumAlgorithm, ChecksumType, Condition, ObjectKey, VersionId};
use s3_wire::time::format_http_date;
use s3_wire::{ErrorCode, S3Error, Target};
use tracing::field::display;

use crate::audit::Refusal;
use crate::closed::BucketClosed;
use crate::explanation::Explanation;
use crate::gateway::Gateway;
use crate::reply::{self, DELETE_MARKER, Reply, VERSION_ID};
use crate::request::RequestContext;
use crate::request_id::{HostId, RequestId};
use crate::secrets::without_misplaced_secret;
use crate::trace_context::TraceId;

/// Returns an error in the form in which the audit log records it.
pub fn refusal(error: &S3Error) -> Refusal<'_> {
    let source = error.source().and_then(|source| source.downcast_ref::<BackendError>());
    let is_of_file_system =
        source.is_some_and(|source| is_users(source) || matches!(source, BackendError::Denied { .. }));
    Refusal { code: error.code().into(), is_of_file_system }
}

/// True for an error by which the rights of a user on the file system decided (`--impersonate`).
const fn is_users(error: &BackendError) -> bool {
    use BackendError as B;
    matches!(error, B::DeniedToUser { .. } | B::NoPosixIdentity | B::UploadOfAnother)
}

/// The request that an error belongs to, as logs and answers name it.
#[derive(Debug, Clone)]
pub struct ErrorSite {
    id: RequestId,
    trace: Option<TraceId>,
    host_id: HostId,
    method: Method,
    /// The bucket and key, once they are known.
    target: Option<Target>,
    /// The path as it was sent, while the target is not known.
    path: Option<String>,
}

impl ErrorSite {
    /// Makes the site of an error in the request with this context and head, and with its target if
    /// that is known.
    pub fn new(gateway: &Gateway, cx: &RequestContext, head: &Parts, target: Option<&Target>) -> Self {
        let path = target.is_none().then(|| head.uri.path().to_owned());
        let trace = cx.trace.as_ref().map(|context| context.trace);
        let (method, target) = (head.method.clone(), target.cloned());
        Self { id: cx.id, trace, host_id: gateway.host_id.clone(), method, target, path }
    }

    /// Logs an error, and returns the XML document about it.
    pub fn document(&self, error: &S3Error) -> String {
        self.log(error);
        error.render(self.id.as_str(), self.host_id.as_str())
    }

    /// Logs an error. It is logged as an error if it is a fault of the server or its operator, as
    /// information if it has an [`Explanation`] that is due, and otherwise as a debug message.
    pub fn log(&self, error: &S3Error) {
        let causes: Vec<_> =
            successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
        let causes = Some(causes.join(": ")).filter(|causes| !causes.is_empty());
        // Some name a file, which has the key's name.
        let causes = causes.as_deref().map(without_misplaced_secret);
        let causes = causes.as_deref();
        let (id, method) = (self.id.as_str(), self.method.as_str());
        let path = self.path.as_deref().map(without_misplaced_secret);
        let bucket = self.target.as_ref().and_then(Target::bucket).map(BucketName::as_str);
        let key = self.target.as_ref().and_then(Target::key).map(ObjectKey::as_str);
        let key = key.map(without_misplaced_secret);
        let (path, key) = (path.as_deref(), key.as_deref());
        let trace_id = self.trace.map(display);
        let explanation = error.source().and_then(|cause| cause.downcast_ref::<Explanation>());
        if let Some(explanation) = explanation.filter(|explanation| explanation.is_due()) {
            let key = explanation.key.as_deref().map(without_misplaced_secret);
            let (bucket, key) = (explanation.bucket.as_deref(), key.as_deref());
            return tracing::info!(id, trace_id, method, bucket, key, causes, "{error}");
        }
        let closed = error.source().and_then(|cause| cause.downcast_ref::<BucketClosed>());
        let storage = error.source().and_then(|cause| cause.downcast_ref::<BackendError>());
        let is_users = storage.is_some_and(is_users);
        match error.code() {
            ErrorCode::InternalError | ErrorCode::InsufficientStorage if closed.is_none() => {
                tracing::error!(id, trace_id, method, bucket, key, path, causes, "{error}");
            }
            // With a cause, it is the file system that denied it to the server, the machine that
            // ran out of something, or what was in the way of each attempt.
            ErrorCode::AccessDenied | ErrorCode::ConditionalRequestConflict | ErrorCode::SlowDown
                if causes.is_some() && explanation.is_none() && !is_users =>
            {
                tracing::error!(id, trace_id, method, bucket, key, path, causes, "{error}");
            }
            _ => tracing::debug!(id, trace_id, method, bucket, key, path, causes, "{error}"),
        }
    }
}

/// Returns the answer to a request that failed.
pub fn render(site: &ErrorSite, error: &S3Error) -> Reply {
    let mut reply = reply::xml(error.status(), site.document(error));
    for (name, value) in error.headers() {
        reply.headers_mut().insert(name, value.clone());
    }
    reply
}

/// Returns S3's error for an error of the storage about `resource`.
pub fn from_backend(error: BackendError, resource: Resource<'_>) -> S3Error {
    let explanation = Explanation::of(&error, resource);
    let error = answer(error, resource);
    match explanation {
        Some(explanation) => error.caused_by(explanation),
        None => error,
    }
}

fn answer(error: BackendError, resource: Resource<'_>) -> S3Error {
    use BackendError as B;
    let (bucket, key) = (resource.bucket.map(BucketName::as_str), resource.key.map(ObjectKey::as_str));
    let bucket_error = |code| S3Error::new(code).detail("BucketName", bucket.unwrap_or_default());
    match error {
        B::NoSuchBucket => bucket_error(ErrorCode::NoSuchBucket),
        B::NotAllowed => ErrorCode::AccessDenied.into(),
        // The client is not told which it is.
        denied if is_users(&denied) => S3Error::new(ErrorCode::AccessDenied).caused_by(denied),
        B::BucketNameTaken => bucket_error(ErrorCode::BucketAlreadyExists),
        B::BucketExists => bucket_error(ErrorCode::BucketAlreadyOwnedByYou),
        B::BucketNotEmpty => bucket_error(ErrorCode::BucketNotEmpty),
        B::BucketHasVersions { .. } | B::BucketHoldsFiles { .. } | B::BucketHasUploads | B::BucketMounted => {
            not_deleted(&error, bucket.unwrap_or_default())
        }
        B::NoSuchKey => S3Error::new(ErrorCode::NoSuchKey).detail("Key", key.unwrap_or_default()),
        B::DeleteMarker { marker, is_named: false } => about_marker(answer(B::NoSuchKey, resource), &marker),
        // Requests that name one have said their method, and do not come here.
        B::DeleteMarker { .. } => ErrorCode::MethodNotAllowed.into(),
        B::NoSuchVersion(id) => no_such_version(&id, key),
        B::Locked | B::NoObjectLock => about_lock(&error),
        B::InvalidVersionId(id) => {
            S3Error::invalid_argument("versionId", id.as_str(), "Invalid version id specified")
        }
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
        // GET and HEAD answer 304, and the storage does not say this of a copy's source.
        B::NotModified(_) => ErrorCode::PreconditionFailed.into(),
        B::PreconditionFailed(condition) => {
            S3Error::new(ErrorCode::PreconditionFailed).detail("Condition", condition_name(condition))
        }
        B::ChangedSinceCreation(condition) => conflict(condition, key),
        busy @ (B::Busy(_) | B::BucketChanged) => S3Error::new(ErrorCode::OperationAborted).caused_by(busy),
        // SDKs repeat a request after a 503. After a 409 for a CompleteMultipartUpload, the client
        // has to send all parts again. Whether it will ever be otherwise is the operator's to see.
        B::Contended(contention) => match contention.condition {
            Some(condition) => conflict(condition, key),
            None => ErrorCode::SlowDown.into(),
        }
        .caused_by(contention),
        B::WrongSize { given_bytes, actual_bytes } => wrong_size(given_bytes, actual_bytes),
        B::WrongChecksum { .. }
        | B::WrongChecksumType { .. }
        | B::WrongPartAlgorithm { .. }
        | B::NoParts
        | B::PartWithoutChecksum { .. }
        | B::WrongPartChecksum { .. } => wrong_checksum(&error),
        B::InvalidUploadMarker => invalid_upload_marker(""),
        B::CopySourceTooLarge => copy_source_too_large(),
        B::TooLarge | B::FileTooLarge => ErrorCode::EntityTooLarge.into(),
        B::KeyNotStorable(_) | B::Obstructed(_) | B::OtherName => not_in_this_tree(&error),
        // Of copies, which take the object of that side, and do not come here.
        B::Copy { error, .. } => from_backend(*error, resource),
        B::SameObject => copy_onto_itself(),
        storage => {
            debug_assert!(storage.is_of_storage(), "no S3 error is defined for: {storage}");
            from_state_of_storage(storage)
        }
    }
}

/// Returns the error for a request that a lock, or the lack of a configuration, keeps from being
/// done.
fn about_lock(error: &BackendError) -> S3Error {
    match error {
        BackendError::NoObjectLock => no_object_lock(),
        _ => S3Error::with_message(
            ErrorCode::AccessDenied,
            "Access Denied because object protected by object lock.",
        ),
    }
}

/// Returns the error for a lock in a bucket in which nothing can be locked.
pub fn no_object_lock() -> S3Error {
    S3Error::with_message(ErrorCode::InvalidRequest, "Bucket is missing Object Lock Configuration")
}

fn no_such_version(id: &VersionId, key: Option<&str>) -> S3Error {
    S3Error::new(ErrorCode::NoSuchVersion)
        .detail("Key", key.unwrap_or_default())
        .detail("VersionId", id.as_str())
}

/// Returns the error for a request that names a delete marker, and can only be a DELETE.
pub fn marker_is_named(method: &Method, marker: &DeleteMarker) -> S3Error {
    let error = about_marker(S3Error::method_not_allowed(method, "DeleteMarker", "DELETE"), marker);
    match HeaderValue::try_from(format_http_date(marker.last_modified)) {
        Ok(date) => error.header(LAST_MODIFIED, date),
        Err(_) => error,
    }
}

/// Returns the error for a copy whose source is named as a delete marker.
pub fn source_is_marker() -> S3Error {
    let message = "The source of a copy request may not specifically refer to a delete marker by version id.";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

fn about_marker(error: S3Error, marker: &DeleteMarker) -> S3Error {
    let error = error.header(DELETE_MARKER, HeaderValue::from_static("true"));
    match HeaderValue::from_str(marker.version.as_str()) {
        Ok(version) => error.header(VERSION_ID, version),
        Err(_) => error,
    }
}

/// Returns the error for a bucket that seems to be empty if it has nothing but old versions.
pub fn has_versions(bucket: &str) -> S3Error {
    let message = "The bucket you tried to delete is not empty. You must delete all versions in the bucket.";
    S3Error::with_message(ErrorCode::BucketNotEmpty, message).detail("BucketName", bucket)
}

/// Returns the error for a bucket that cannot be deleted although it may have no objects.
fn not_deleted(error: &BackendError, bucket: &str) -> S3Error {
    match error {
        BackendError::BucketHasVersions { .. } => has_versions(bucket).caused_by(error.to_string()),
        BackendError::BucketHasUploads => S3Error::with_message(
            ErrorCode::BucketNotEmpty,
            "The bucket has uploads in progress: complete or abort them first.",
        )
        .detail("BucketName", bucket),
        BackendError::BucketMounted => S3Error::with_message(
            ErrorCode::AccessDenied,
            "The bucket is a mount point on the server, and can only be removed there.",
        ),
        _ => S3Error::with_message(
            ErrorCode::BucketNotEmpty,
            "The bucket you tried to delete is not empty: it holds files that are not objects.",
        )
        .detail("BucketName", bucket),
    }
}

/// Returns the error for a key whose file cannot be made at its place in the tree.
fn not_in_this_tree(error: &BackendError) -> S3Error {
    let (code, message) = match error {
        BackendError::KeyNotStorable(_) => {
            (ErrorCode::KeyTooLongError, "Your key cannot be stored by this file system.")
        }
        BackendError::OtherName => (
            ErrorCode::AccessDenied,
            "This key leads through a symbolic link of the file system: change the object by its own key.",
        ),
        _ => (
            ErrorCode::AccessDenied,
            "The key is blocked by a special file or a symbolic link of the file system.",
        ),
    };
    S3Error::with_message(code, message)
}

/// Returns S3's error, as [`from_backend`] does, if [`BackendError::is_of_storage`] is true.
fn from_state_of_storage(error: BackendError) -> S3Error {
    use BackendError as B;
    match error {
        full @ B::OutOfSpace => S3Error::new(ErrorCode::InsufficientStorage).caused_by(full),
        // The storage has logged both, once and not for each request: there is no cause to log
        // here.
        B::DirectoryFull => S3Error::with_message(
            ErrorCode::InsufficientStorage,
            "The file system has no room for this name in its directory.",
        ),
        B::Unavailable(_) => ErrorCode::ServiceUnavailable.into(),
        B::Leased => S3Error::new(ErrorCode::SlowDown).caused_by(B::Leased),
        B::OutOf(what) => S3Error::new(ErrorCode::SlowDown).caused_by(what),
        B::ReadOnly => read_only().caused_by(B::ReadOnly),
        denied @ (B::Denied { .. } | B::CannotAct { .. } | B::NewerRecord | B::DamagedRecord) => {
            S3Error::new(ErrorCode::AccessDenied).caused_by(denied)
        }
        B::Unsupported(what) => {
            S3Error::with_message(ErrorCode::NotImplemented, "The storage cannot do this.").caused_by(what)
        }
        B::BucketUnsuitable(what) => S3Error::with_message(
            ErrorCode::NotImplemented,
            "The file system of this bucket cannot hold objects; the server's log says why.",
        )
        .caused_by(what),
        older @ B::OlderServer => S3Error::with_message(
            ErrorCode::OperationAborted,
            "A server of an older version, which would overwrite versions, serves this bucket. Stop it first.",
        )
        .caused_by(older),
        B::NoVersionsHere(lack) => no_versions_here(lack),
        internal => S3Error::new(ErrorCode::InternalError).caused_by(internal),
    }
}

/// Returns the error for a bucket that cannot keep versions.
fn no_versions_here(lack: VersionsLack) -> S3Error {
    let message = match lack {
        VersionsLack::OwnIdentity => {
            "This server cannot keep versions, since requests act as users of its file system."
        }
        VersionsLack::Attributes => {
            "This server cannot keep versions, since it has its records in files beside the objects."
        }
        VersionsLack::Exchange => {
            "The file system of this bucket cannot exchange two names in one step, which versions need."
        }
        VersionsLack::StableNames => {
            "On the file system of this bucket, a name may be missing while it is replaced. Versions need it to stay."
        }
    };
    S3Error::with_message(ErrorCode::NotImplemented, message).caused_by(lack)
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

/// Returns the error for a write to a read-only storage. It has no cause, so that nothing is
/// logged: the storage is read-only on purpose.
pub fn read_only() -> S3Error {
    S3Error::with_message(ErrorCode::AccessDenied, "The storage is read-only.")
}

/// Returns the error for a condition on a copy's source that does not hold. S3 names the header,
/// with the prefix for sources.
pub fn failed_of_source(condition: Condition) -> S3Error {
    let name = format!("x-amz-copy-source-{}", condition_name(condition));
    S3Error::new(ErrorCode::PreconditionFailed).detail("Condition", name)
}

/// Returns the error for a copy of an object onto itself.
pub fn copy_onto_itself() -> S3Error {
    let message = "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

fn copy_source_too_large() -> S3Error {
    let limit = s3_types::limits::PART_BYTES_MAX;
    let message = format!(
        "The specified copy source is larger than the maximum allowable size for a copy source: {limit}"
    );
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

/// Returns the error for an `upload-id-marker` that is not the id of an upload of the `key-marker`.
pub fn invalid_upload_marker(marker: &str) -> S3Error {
    S3Error::invalid_argument("upload-id-marker", marker, "Invalid uploadId marker")
}

/// Returns the error for a conditional write of a key that another writer changed at the same time.
fn conflict(condition: Condition, key: Option<&str>) -> S3Error {
    S3Error::new(ErrorCode::ConditionalRequestConflict)
        .detail("Condition", condition_name(condition))
        .detail("Key", key.unwrap_or_default())
}

/// Returns the error for wrong checksums in a completion or in an upload's parts. S3 writes the
/// algorithm in lower case in these errors, and in capitals in those of other requests.
fn wrong_checksum(error: &BackendError) -> S3Error {
    use BackendError as B;
    let name = |algorithm: ChecksumAlgorithm| algorithm.name().to_ascii_lowercase();
    let (code, message) = match *error {
        B::WrongChecksumType { expected } => (
            ErrorCode::InvalidRequest,
            format!(
                "The upload was created using the {} checksum mode. The complete request must use the same checksum mode.",
                expected.map_or("null", ChecksumType::name)
            ),
        ),
        B::WrongPartAlgorithm { expected, given } => (
            ErrorCode::InvalidRequest,
            format!(
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                name(expected),
                given.map_or_else(|| "null".to_owned(), name)
            ),
        ),
        B::PartWithoutChecksum { part_number, algorithm } => (
            ErrorCode::InvalidRequest,
            format!(
                "The upload was created using a {} checksum. The complete request must include the checksum for each part. It \
                 was missing for part {part_number} in the request.",
                name(algorithm)
            ),
        ),
        B::WrongPartChecksum { part_number, algorithm } => (
            ErrorCode::BadDigest,
            format!(
                "The {} you specified for part {part_number} did not match what we received.",
                name(algorithm)
            ),
        ),
        B::WrongChecksum { algorithm } => (
            ErrorCode::BadDigest,
            format!("The {} you specified did not match the calculated checksum.", name(algorithm)),
        ),
        B::NoParts => (ErrorCode::InvalidRequest, "You must specify at least one part".to_owned()),
        _ => return S3Error::new(ErrorCode::InternalError).caused_by(error.to_string()),
    };
    S3Error::with_message(code, message)
}

const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::IfMatch => "If-Match",
        Condition::IfNoneMatch => "If-None-Match",
        Condition::IfModifiedSince => "If-Modified-Since",
        Condition::IfUnmodifiedSince => "If-Unmodified-Since",
        Condition::InitiatedTime => "x-amz-if-match-initiated-time",
    }
}

#[cfg(test)]
mod tests {
    use backend::{BackendError as B, BusyResource, Contention};
    use s3_types::Timestamp;

    use super::*;

    /// After a 409, the client of a CompleteMultipartUpload has to send all parts again; after a
    /// 503 it only repeats the request.
    #[test]
    fn only_conditional_writes_conflict_when_given_up() {
        let place = std::panic::Location::caller();
        let told = |condition| {
            let contention = Contention {
                operation: "link a file",
                place,
                source: None,
                attempts: 250,
                repeated: true,
                condition,
            };
            let (bucket, key) = (BucketName::new("bucket").unwrap(), ObjectKey::new("key").unwrap());
            let resource = Resource { bucket: Some(&bucket), key: Some(&key) };
            let error = from_backend(B::Contended(contention), resource);
            let cause = error.source().map(ToString::to_string).unwrap();
            let told = "could not link a file in 250 attempts, each time for the same reason";
            assert_eq!(cause, format!("{told} (at {}:{})", file!(), place.line()));
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

    /// The answers are those recorded at Amazon S3.
    #[test]
    fn what_a_delete_marker_answers() {
        let version = VersionId::new("m1").unwrap();
        let marker = DeleteMarker { version, last_modified: Timestamp::UNIX_EPOCH };
        let (bucket, key) = (BucketName::new("bucket").unwrap(), ObjectKey::new("key").unwrap());
        let resource = Resource { bucket: Some(&bucket), key: Some(&key) };
        let told = |error: &S3Error| {
            let details = error.details().iter().map(|(name, text)| format!("{name}={text}"));
            let headers = error.headers().iter();
            let headers = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
            (error.code(), details.collect::<Vec<_>>(), headers.collect::<Vec<_>>())
        };
        let own = ["x-amz-delete-marker: true", "x-amz-version-id: m1"].map(str::to_owned);
        let current = from_backend(B::DeleteMarker { marker: marker.clone(), is_named: false }, resource);
        assert_eq!(told(&current), (ErrorCode::NoSuchKey, vec!["Key=key".to_owned()], own.to_vec()));
        let named = marker_is_named(&Method::GET, &marker);
        let details = ["Method=GET", "ResourceType=DeleteMarker"].map(str::to_owned).to_vec();
        let [allow, date] = ["allow: DELETE", "last-modified: Thu, 01 Jan 1970 00:00:00 GMT"];
        let headers = [&[allow.to_owned()], &own[..], &[date.to_owned()]].concat();
        assert_eq!(told(&named), (ErrorCode::MethodNotAllowed, details, headers));
    }

    /// The code alone does not say what was busy.
    #[test]
    fn what_aborts_an_operation_is_its_cause() {
        for error in [B::Busy(BusyResource::Bucket), B::Busy(BusyResource::Upload), B::BucketChanged] {
            let cause = error.to_string();
            let error = from_backend(error, Resource::default());
            assert_eq!(error.code(), ErrorCode::OperationAborted);
            assert_eq!(error.source().map(ToString::to_string), Some(cause));
        }
    }

    /// With --impersonate, clients get one answer for each of these, and operators the reason.
    #[test]
    fn what_the_rights_of_a_user_refuse_has_a_cause() {
        let sent = |error: &S3Error| error.render("id", "host");
        let plain = from_backend(B::NotAllowed, Resource::default());
        assert!(plain.source().is_none() && !refusal(&plain).is_of_file_system);
        let denied =
            |path: Option<&str>| B::DeniedToUser { operation: "open a file", path: path.map(Into::into) };
        assert!(denied(Some("lab/d")).to_string().ends_with(" to the requester (lab/d)"));
        assert!(denied(None).to_string().ends_with(" to the requester"));
        for error in [B::NoPosixIdentity, B::UploadOfAnother, denied(Some("lab/d")), denied(None)] {
            let cause = error.to_string();
            let error = from_backend(error, Resource::default());
            assert_eq!(error.code(), ErrorCode::AccessDenied);
            assert_eq!(sent(&error), sent(&plain));
            assert_eq!(error.source().map(ToString::to_string), Some(cause));
            assert!(refusal(&error).is_of_file_system);
        }
        let source = std::io::Error::other("no such id");
        let error = from_backend(B::CannotAct { uid: 7, gid: 8, source }, Resource::default());
        assert_eq!(sent(&error), sent(&plain));
        assert!(!refusal(&error).is_of_file_system);
        let causes: Vec<_> =
            successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect();
        assert!(causes[0].contains("uid 7") && causes[1] == "no such id", "{causes:?}");
    }
}
