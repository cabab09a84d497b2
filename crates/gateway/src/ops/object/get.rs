use std::future::Future;
use std::ops::Range;

use backend::{
    BackendError, ObjectAttributes, ObjectBody, ObjectRead, ObjectRef, ReadRequest, ReadSelector, Versioning,
};
use http::{HeaderMap, StatusCode, header};
use s3_types::{Checksum, ChecksumType, Conditions, ObjectLock, S3Action, VersionId};
use s3_wire::headers::{
    ObjectHeaders, ResponseOverrides, Selection, checksum_mode_enabled, content_range, read_conditions,
    selection,
};
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::Authorized;
use crate::body::ResponseBody;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::version::{shown, version_id};
use crate::outcome::Outcome;
use crate::reply::{self, Reply};

/// GetObject.
pub struct GetObject(ReadArguments);

/// HeadObject.
pub struct HeadObject(ReadArguments);

/// The arguments that GetObject and HeadObject have in common.
struct ReadArguments {
    version: Option<VersionId>,
    selector: ReadSelector,
    range: Option<String>,
    conditions: Conditions,
    overrides: ResponseOverrides,
    checksum_mode: bool,
    with_lock: bool,
}

impl ReadArguments {
    fn parse(call: &Call<'_>) -> Result<Self> {
        let version = version_id(call.query.get("versionId"))?;
        let signed = !call.asker.requester.is_anonymous();
        let (selector, range) = match selection(call.headers, call.query)? {
            Selection::Whole => (ReadSelector::Whole, None),
            Selection::Range(range, raw) => (ReadSelector::Range(range), Some(raw.to_owned())),
            Selection::Part(number) => (ReadSelector::Part(number), None),
        };
        Ok(Self {
            version,
            selector,
            range,
            conditions: read_conditions(call.headers, call.cx.now),
            overrides: ResponseOverrides::parse(call.query, signed)?,
            checksum_mode: checksum_mode_enabled(call.headers)?,
            with_lock: call.has_locks,
        })
    }

    fn request<'a>(&'a self, object: ObjectRef<'a>) -> ReadRequest<'a> {
        ReadRequest {
            object: object.of(self.version.as_ref()),
            selector: self.selector,
            conditions: &self.conditions,
            with_lock: self.with_lock,
            check: None,
        }
    }

    fn error(&self, call: &Call<'_>, error: BackendError) -> Result<Outcome> {
        match (error, self.selector) {
            (BackendError::InvalidRange { size_bytes }, _) => {
                Err(S3Error::invalid_range(self.range.as_deref().unwrap_or_default(), size_bytes))
            }
            (BackendError::NoSuchPart { parts }, ReadSelector::Part(number)) => {
                Err(S3Error::new(ErrorCode::InvalidPartNumber)
                    .detail("PartNumberRequested", number.to_string())
                    .detail("ActualPartCount", parts.to_string()))
            }
            (error, _) => read_error(call, error).map(Outcome::from),
        }
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    /// True if the requester may read the tags of the object. S3 tells their number to nobody else.
    #[cold]
    fn shows_tags(&self, call: &Call<'_>, storage: &Authorized<'_>) -> bool {
        let Ok(object) = call.object() else { return false };
        storage.may_count_tags(object.of(self.version.as_ref()), &|key| self.about().value(key))
    }

    /// Returns what the requester may know of the lock of the version.
    #[cold]
    fn shown_lock(&self, lock: ObjectLock, storage: &Authorized<'_>) -> ObjectLock {
        let may = |action| storage.may_also(action, &|key| self.about().value(key));
        let ObjectLock { retention, legal_hold } = lock;
        ObjectLock {
            retention: retention.filter(|_| may(S3Action::GetObjectRetention)),
            legal_hold: legal_hold.filter(|_| may(S3Action::GetObjectLegalHold)),
        }
    }

    fn outcome(
        &self,
        read: ObjectRead,
        versioning: Versioning,
        shows_tags: impl FnOnce() -> bool,
    ) -> Outcome {
        let length = read.length();
        let ObjectRead { mut attributes, lock, range, body } = read;
        attributes.version = shown(attributes.version, versioning);
        let status = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let mut reply = reply::empty(status);
        *reply.body_mut() = ResponseBody::object(body, length);
        let tag_count = Some(attributes.tag_count).filter(|count| *count > 0 && shows_tags());
        self.headers(reply.headers_mut(), &attributes, range.as_ref(), (tag_count, lock));
        reply.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        let did = Did { object_bytes: Some(attributes.size_bytes), version: attributes.version };
        Outcome::done(reply, did)
    }

    fn headers(
        &self,
        headers: &mut HeaderMap,
        attributes: &ObjectAttributes,
        range: Option<&Range<u64>>,
        (tag_count, lock): (Option<usize>, ObjectLock),
    ) {
        let part = matches!(self.selector, ReadSelector::Part(_));
        let checksum = if self.checksum_mode { self.checksum(attributes, range) } else { None };
        let object = ObjectHeaders {
            etag: &attributes.etag,
            last_modified: attributes.last_modified,
            metadata: &attributes.metadata,
            checksum: checksum.as_ref(),
            parts_count: attributes.parts.as_ref().filter(|_| part).map(|parts| parts.len()),
            lock,
            tag_count,
        };
        object.append_to(headers);
        reply::set_version(headers, attributes.version.as_ref());
        self.overrides.apply(headers);
        if let Some(range) = range {
            reply::set(headers, "content-range", content_range(range, attributes.size_bytes));
        }
    }

    /// Returns the checksum of the bytes that are sent. For a whole object it is the object's; for
    /// a part it is the part's, if the object's checksum is made from those of its parts. S3 sends
    /// none with other ranges, since no client could verify it.
    fn checksum(&self, attributes: &ObjectAttributes, range: Option<&Range<u64>>) -> Option<Checksum> {
        let whole = attributes.checksum?;
        match self.selector {
            ReadSelector::Part(number) if whole.checksum_type == ChecksumType::Composite => {
                let part = attributes.parts.as_ref()?.iter().find(|p| p.part_number == number)?;
                Some(Checksum { value: part.checksum?, checksum_type: ChecksumType::Composite, parts: None })
            }
            _ if range.is_some_and(|r| r.end - r.start != attributes.size_bytes) => None,
            _ => Some(whole),
        }
    }
}

/// Returns the answer to a failed read; 304 is one of the failures.
pub fn read_error(call: &Call<'_>, error: BackendError) -> Result<Reply> {
    match error {
        BackendError::NotModified(mut attributes) => {
            attributes.version = shown(attributes.version.take(), call.versioning);
            Ok(not_modified(&attributes))
        }
        error => Err(call.fail(error)),
    }
}

fn not_modified(attributes: &ObjectAttributes) -> Reply {
    let mut reply = reply::empty(StatusCode::NOT_MODIFIED);
    let object = ObjectHeaders {
        etag: &attributes.etag,
        last_modified: attributes.last_modified,
        metadata: &attributes.metadata,
        checksum: None,
        parts_count: None,
        lock: ObjectLock::default(),
        tag_count: None,
    };
    object.append_validators_to(reply.headers_mut());
    reply::set_version(reply.headers_mut(), attributes.version.as_ref());
    reply
}

impl<'a> Handler<'a> for GetObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        ReadArguments::parse(call).map(Self)
    }

    fn about(&self) -> About<'_> {
        self.0.about()
    }

    #[allow(clippy::manual_async_fn, reason = "an async fn's future has room for each argument twice")]
    fn perform(
        self,
        call: Call<'a>,
        storage: Authorized<'a>,
    ) -> impl Future<Output = Result<Outcome>> + Send {
        async move {
            match storage.get_object(self.0.request(call.object()?)).await {
                Ok(mut read) => {
                    if !read.lock.is_empty() {
                        read.lock = self.0.shown_lock(read.lock, &storage);
                    }
                    Ok(self.0.outcome(read, call.versioning, || self.0.shows_tags(&call, &storage)))
                }
                Err(error) => self.0.error(&call, error),
            }
        }
    }
}

impl<'a> Handler<'a> for HeadObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        ReadArguments::parse(call).map(Self)
    }

    fn about(&self) -> About<'_> {
        self.0.about()
    }

    #[allow(clippy::manual_async_fn, reason = "an async fn's future has room for each argument twice")]
    fn perform(
        self,
        call: Call<'a>,
        storage: Authorized<'a>,
    ) -> impl Future<Output = Result<Outcome>> + Send {
        async move {
            match storage.head_object(self.0.request(call.object()?)).await {
                Ok(read) => {
                    let mut read = ObjectRead { body: ObjectBody::Empty, ..read };
                    if !read.lock.is_empty() {
                        read.lock = self.0.shown_lock(read.lock, &storage);
                    }
                    Ok(self.0.outcome(read, call.versioning, || self.0.shows_tags(&call, &storage)))
                }
                Err(error) => self.0.error(&call, error),
            }
        }
    }
}
