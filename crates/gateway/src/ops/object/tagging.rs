use backend::{BackendError, ObjectTags, PutTagsRequest, TagsReceipt, TagsRequest};
use http::StatusCode;
use iam::{ConditionKey, request_tags};
use policy::Value;
use s3_types::{Tags, VersionId};
use s3_wire::headers::ChecksumRequest;
use s3_wire::tags::{Tagged, checked};
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::version::{shown, version_id};
use crate::outcome::Outcome;
use crate::reply;

/// GetObjectTagging.
pub struct GetObjectTagging {
    version: Option<VersionId>,
}

impl<'a> Handler<'a> for GetObjectTagging {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { version: version_id(call.query.get("versionId"))? })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let request = TagsRequest { object: call.object()?.of(self.version.as_ref()), check: None };
        let read = storage.object_tags(request).await;
        let ObjectTags { tags, version } = read.map_err(|error| failed(&call, error))?;
        let version = shown(version, call.versioning);
        let mut reply = reply::ok_xml(xml::tagging(tags.as_slice()));
        reply::set_version(reply.headers_mut(), version.as_ref());
        Ok(Outcome::done(reply, Did { object_bytes: None, version }))
    }
}

/// Returns S3's error for a failed read of tags. Here, and nowhere else, S3 names a missing key
/// together with its bucket.
fn failed(call: &Call<'_>, error: BackendError) -> S3Error {
    match (error, call.object()) {
        (BackendError::NoSuchKey, Ok(object)) => {
            let name = format!("{}/{}", object.bucket, object.key.as_str());
            S3Error::new(ErrorCode::NoSuchKey).detail("Key", name)
        }
        (error, _) => of_tags(call)(error),
    }
}

/// Returns the function that turns errors of the storage into S3's. A current delete marker answers
/// requests about tags as if they named it.
fn of_tags<'a>(call: &Call<'a>) -> impl Fn(BackendError) -> S3Error + Copy + Send + Sync + use<'a> {
    let failed = call.failed();
    move |error| match error {
        BackendError::DeleteMarker { marker, .. } => {
            failed(BackendError::DeleteMarker { marker, is_named: true })
        }
        error => failed(error),
    }
}

/// PutObjectTagging.
pub struct PutObjectTagging {
    version: Option<VersionId>,
}

impl<'a> Handler<'a> for PutObjectTagging {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { version: version_id(call.query.get("versionId"))? })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    /// Returns a value of the tags that is not known yet: they are in the document. Whoever may set
    /// no tags at all is refused before that is read. All others are asked about again.
    fn value<'v>(&'v self, _: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        match key {
            ConditionKey::RequestObjectTag | ConditionKey::RequestObjectTagKeys => Value::Unknown,
            _ => Value::Absent,
        }
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let parse = xml::TaggingRequest::parse;
        let document = call.read_document(checksum, limits::XML_BODY_BYTES_MAX, parse).await?;
        let tags = checked(document.tags, Tagged::Object)?;
        let about = self.about();
        let values = |key| about.value(key).or_else(|| request_tags(tags.as_slice(), key));
        let storage = call.authorize(call.subject(), about.actions(call.action()), &values)?;
        let object = call.object()?.of(self.version.as_ref());
        let request = PutTagsRequest { object, tags: tags.clone(), check: None };
        let receipt = storage.put_object_tags(call.action(), request).await.map_err(of_tags(&call))?;
        Ok(done(&call, StatusCode::OK, receipt))
    }
}

/// DeleteObjectTagging.
pub struct DeleteObjectTagging {
    version: Option<VersionId>,
}

impl<'a> Handler<'a> for DeleteObjectTagging {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { version: version_id(call.query.get("versionId"))? })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?.of(self.version.as_ref());
        let request = PutTagsRequest { object, tags: Tags::default(), check: None };
        let receipt = storage.put_object_tags(call.action(), request).await.map_err(of_tags(&call))?;
        Ok(done(&call, StatusCode::NO_CONTENT, receipt))
    }
}

fn done(call: &Call<'_>, status: StatusCode, TagsReceipt { version }: TagsReceipt) -> Outcome {
    let version = shown(version, call.versioning);
    let mut reply = reply::empty(status);
    reply::set_version(reply.headers_mut(), version.as_ref());
    Outcome::done(reply, Did { object_bytes: None, version })
}
