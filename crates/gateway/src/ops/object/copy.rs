use backend::{BackendError, Copied, CopyRequest, CopySide, CopySource, ObjectRef, WriteReceipt};
use iam::{ConditionKey, Resource, request_tags};
use policy::Value;
use s3_types::{
    ActionSet, ChecksumAlgorithm, Conditions, ObjectLock, ObjectMetadata, S3Action, Tags, VersionId,
};
use s3_wire::headers::{
    CopySourceRef, MetadataDirective, TaggingDirective, copy_checksum, copy_source, copy_source_conditions,
    metadata_directive, object_metadata, object_tags, redirect_location, source_expected_bucket_owner,
    tagging_directive, write_conditions,
};
use s3_wire::xml::CopyObjectResult;
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::{Authorized, CopiedTags, Detached, Subject};
use crate::call::Call;
use crate::errors::{copy_onto_itself, failed_of_source, from_backend, source_is_marker};
use crate::ops::about::About;
use crate::ops::expected_owner;
use crate::ops::handler::Handler;
use crate::ops::object::put::did_write;
use crate::ops::slow::{self, Finished};
use crate::ops::values;
use crate::ops::version::version_id;
use crate::outcome::Outcome;
use crate::request_bucket::RequestBucket;

/// CopyObject.
pub struct CopyObject {
    source: Source,
    conditions: Conditions,
    metadata: Option<ObjectMetadata>,
    /// The tags for the copy; `None` keeps the source's.
    tags: Option<Tags>,
    lock: ObjectLock,
    redirect: Option<String>,
    checksum_algorithm: Option<ChecksumAlgorithm>,
}

impl<'a> Handler<'a> for CopyObject {
    /// Reads the input. An anonymous requester is refused, since no policy can allow it this.
    fn parse(call: &Call<'a>) -> Result<Self> {
        if call.asker.requester.is_anonymous() {
            let message = "Anonymous users cannot copy objects.  Please authenticate.";
            return Err(S3Error::with_message(ErrorCode::AccessDenied, message));
        }
        let headers = call.headers;
        let source = Source::parse(call)?;
        let metadata = match metadata_directive(headers)? {
            MetadataDirective::Copy => None,
            MetadataDirective::Replace => Some(object_metadata(headers)?),
        };
        // As on S3, tags without the directive are passed over.
        let given = object_tags(headers)?;
        let tags = (tagging_directive(headers)? == TaggingDirective::Replace).then_some(given);
        let copy = Self {
            source,
            tags,
            lock: values::new_lock(call)?,
            conditions: write_conditions(headers)?,
            metadata,
            redirect: redirect_location(headers)?,
            checksum_algorithm: copy_checksum(headers)?,
        };
        copy.refuse_copy_without_change(call)?;
        Ok(copy)
    }

    fn about(&self) -> About<'_> {
        About { version: None, conditions: Some(&self.conditions) }
    }

    fn needs(&self, call: &Call<'a>) -> ActionSet {
        let own = self.about().actions(call.action());
        let own = values::with_lock(&self.lock, own);
        self.tags.as_ref().map_or(own, |tags| values::with_tags(tags, own))
    }

    fn value<'v>(&'v self, call: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        match key {
            ConditionKey::CopySource => Value::One(self.source.path().into()),
            ConditionKey::MetadataDirective => {
                let given = call.headers.contains_key("x-amz-metadata-directive");
                let directive = if self.metadata.is_some() { "REPLACE" } else { "COPY" };
                given.then_some(directive).into()
            }
            ConditionKey::WebsiteRedirectLocation => self.redirect.as_deref().into(),
            _ if values::is_of_lock(key) => values::of_lock(&self.lock, call.cx.now, key),
            _ => {
                let tags = self.tags.as_ref().map_or(&[][..], Tags::as_slice);
                request_tags(tags, key).or_else(|| values::of_new_object(call, key))
            }
        }
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let target = call.object()?;
        let (bucket, key) = (target.bucket.clone(), target.key.clone());
        let values = |key| self.about().value(key).or_else(|| self.value(&call, key));
        let of_target: Option<&TargetValues<'_>> = if self.tags.is_none() { Some(&values) } else { None };
        let source = self.source.authorize(&call, of_target).await?;
        let (storage, versioning) = (storage.detach(), call.versioning);
        let work = async move {
            let target = ObjectRef::current(&bucket, &key);
            let request = CopyRequest {
                source: self.source.for_backend(),
                target,
                metadata: self.metadata,
                tags: self.tags,
                lock: self.lock,
                website_redirect_location: self.redirect,
                checksum_algorithm: self.checksum_algorithm,
                conditions: self.conditions,
                check: None,
            };
            match storage.authorized().copy_object(&source.authorized(), request).await {
                Ok(Copied { receipt, source_version }) => {
                    let WriteReceipt { etag, checksum, last_modified, .. } = &receipt;
                    let result =
                        CopyObjectResult { etag, checksum: *checksum, last_modified: *last_modified };
                    let (document, did) = (result.render(), did_write(receipt, versioning));
                    let version = did.version.clone();
                    Ok(Finished { document, did, version, source_version })
                }
                Err(error) => Err(self.source.copy_error(error, target)),
            }
        };
        slow::answer(&call, work).await
    }
}

impl CopyObject {
    /// Refuses a copy of an object onto itself that changes nothing. The copy of a version that is
    /// named makes it the current one.
    fn refuse_copy_without_change(&self, call: &Call<'_>) -> Result<()> {
        let target = call.object()?;
        let same = (target.bucket, target.key) == (&self.source.object.bucket, &self.source.object.key);
        let restores = self.source.version.is_some() && call.versioning.is_set();
        let changes = restores
            || self.metadata.is_some()
            || self.redirect.is_some()
            || self.checksum_algorithm.is_some()
            || call.headers.contains_key("x-amz-storage-class");
        if same && !changes {
            return Err(copy_onto_itself());
        }
        Ok(())
    }
}

/// The values of condition keys for the target of a copy.
type TargetValues<'v> = dyn Fn(ConditionKey) -> Value<'v> + Sync + 'v;

/// The source of a copy.
pub struct Source {
    object: CopySourceRef,
    version: Option<VersionId>,
    conditions: Conditions,
}

impl Source {
    /// Reads the source, and the conditions on it, from the headers.
    pub fn parse(call: &Call<'_>) -> Result<Self> {
        let object = copy_source(call.headers)?;
        let version = version_id(object.version_id.as_deref())?;
        Ok(Self { object, version, conditions: copy_source_conditions(call.headers, call.cx.now)? })
    }

    /// Returns the permission to read the source. Fails if its bucket does not exist, is closed, or
    /// does not belong to the account that the client expects. For a copy that keeps the tags,
    /// `of_target` has the values of condition keys for the target, and the permission includes
    /// that to give it the tags.
    pub async fn authorize(&self, call: &Call<'_>, of_target: Option<&TargetValues<'_>>) -> Result<Detached> {
        let CopySourceRef { bucket, key, .. } = &self.object;
        let resource = Resource { bucket: Some(bucket), key: Some(key) };
        if call.target.bucket() == Some(bucket) {
            return self.authorize_in(call, Subject { resource, rules: call.rules }, of_target);
        }
        let account = &call.settings.account;
        let bucket = RequestBucket::of(&call.gateway.storage, call.backend_cx, account, resource);
        let bucket = bucket.find(call.operation, call.asker.requester).await?;
        self.authorize_in(call, Subject { resource, rules: bucket.rules() }, of_target)
    }

    fn authorize_in(
        &self,
        call: &Call<'_>,
        source: Subject<'_>,
        of_target: Option<&TargetValues<'_>>,
    ) -> Result<Detached> {
        let owner = source.rules.map_or(&call.settings.account, |rules| &rules.owner);
        expected_owner::check(source_expected_bucket_owner(call.headers), owner)?;
        let about = About::version(self.version.as_ref());
        let actions = about.actions(S3Action::GetObject);
        let values = |key| about.value(key);
        let authorized = call.authorize(source, actions, &values)?;
        let Some(of_target) = of_target else { return Ok(authorized.detach()) };
        let by = S3Action::GetObjectTagging;
        let by = if self.version.is_some() { by.of_version() } else { by };
        let tags = CopiedTags::ask(call.asker, (source, by, &values), (call.subject(), of_target));
        Ok(authorized.with_copied_tags(tags).detach())
    }

    /// Returns the source in the form of policies' conditions: `bucket/key`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.object.bucket, self.object.key.as_str())
    }

    /// Returns the source and its conditions in the form of backends.
    pub fn for_backend(&self) -> CopySource<'_> {
        CopySource { object: self.reference(), conditions: self.conditions.clone(), check: None }
    }

    /// Returns S3's error for a copy to `target` that failed.
    pub fn copy_error(&self, error: BackendError, target: ObjectRef<'_>) -> S3Error {
        let (side, error) = match error {
            BackendError::Copy { side, error } => (side, *error),
            error => (CopySide::Target, error),
        };
        let object = match side {
            CopySide::Source => self.reference(),
            CopySide::Target => target,
        };
        match (side, error) {
            (CopySide::Source, BackendError::PreconditionFailed(condition)) => failed_of_source(condition),
            (CopySide::Source, BackendError::DeleteMarker { is_named: true, .. }) => source_is_marker(),
            (_, error) => {
                from_backend(error, Resource { bucket: Some(object.bucket), key: Some(object.key) })
            }
        }
    }

    fn reference(&self) -> ObjectRef<'_> {
        ObjectRef::current(&self.object.bucket, &self.object.key).of(self.version.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use backend::DeleteMarker;
    use s3_types::{BucketName, ObjectKey, Timestamp};

    use super::*;

    /// The answers are those recorded at Amazon S3.
    #[test]
    fn a_source_that_is_a_delete_marker() {
        let (bucket, key) = (BucketName::new("bucket").unwrap(), ObjectKey::new("key").unwrap());
        let version = VersionId::new("m1").unwrap();
        let object = CopySourceRef { bucket: bucket.clone(), key, version_id: None };
        let source = Source { object, version: Some(version.clone()), conditions: Conditions::default() };
        let target = ObjectKey::new("target").unwrap();
        let answered = |is_named| {
            let marker = DeleteMarker { version: version.clone(), last_modified: Timestamp::UNIX_EPOCH };
            let error = BackendError::DeleteMarker { marker, is_named }.on(CopySide::Source);
            let error = source.copy_error(error, ObjectRef::current(&bucket, &target));
            let key = error.details().iter().find(|(name, _)| *name == "Key").map(|(_, key)| key.clone());
            (error.code(), key)
        };
        assert_eq!(answered(false), (ErrorCode::NoSuchKey, Some("key".to_owned())));
        assert_eq!(answered(true), (ErrorCode::InvalidRequest, None));
    }
}
