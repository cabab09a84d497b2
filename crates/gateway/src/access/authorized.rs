use std::io;
use std::sync::Arc;

use backend::{
    AbortReceipt, AbortRequest, Backend, BackendError, BucketPage, BucketTag, ChangeBucketRequest,
    CompleteRequest, Context, Copied, CopyPartRequest, CopyRequest, CopySide, CopySource,
    CreateBucketRequest, CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentChanges, DocumentKind,
    ListBucketsQuery, ListPage, ListPartsQuery, ListPosition, ListQuery, LockChange, LockReceipt,
    LockRequest, ObjectRead, ObjectRef, ObjectTags, ObjectWriter, OwnerChange, PartPage, PartReceipt,
    PartWriter, PutLockRequest, PutPartRequest, PutRequest, PutTagsRequest, ReadRequest, Result, TagsReceipt,
    TagsRequest, UploadPage, UploadPosition, UploadReceipt, VersionLock, VersionPage, VersionRef,
    WriteReceipt,
};
use bytes::Bytes;
use iam::{Decision, Resource, Values};
use s3_types::{ActionSet, BucketName, Digests, ObjectKey, ObjectLock, S3Action, Tags, VersionId};

use super::asker::Asker;
use super::copied_tags::{Check, CopiedTags};
use super::subject::Subject;

/// The permission to do some actions with one resource, and the storage to do them.
///
/// Each method stands for an action. To call it without the permission for this action, or for
/// another resource, is a fault of this program: it fails, and does nothing. Whether a key exists
/// is revealed only to requesters who may list the bucket ([`BackendError::NotAllowed`]). As in S3,
/// every requester who may do the action learns whether a condition of the request, such as
/// If-Match, holds. If the permission
/// depends on facts of the object, each request to the storage carries the check that decides.
pub struct Authorized<'a> {
    backend: &'a Arc<dyn Backend>,
    cx: &'a Context,
    resource: Resource<'a>,
    actions: ActionSet,
    sight: Sight<'a>,
    check: Check,
    copied_tags: Option<CopiedTags>,
}

/// The answer to whether the requester may know which keys the bucket has.
#[derive(Clone, Copy)]
enum Sight<'a> {
    /// The answer is not known yet. It is decided when it matters, by the rules that the request
    /// was checked with.
    Ask(&'a Asker<'a>, Subject<'a>),
    /// The answer is known.
    Decided(bool),
}

impl<'a> Authorized<'a> {
    /// Makes the permission for actions that were allowed.
    pub(super) fn new(
        backend: &'a Arc<dyn Backend>,
        cx: &'a Context,
        asker: &'a Asker<'a>,
        subject: Subject<'a>,
        actions: ActionSet,
        check: Check,
    ) -> Self {
        let sight = Sight::Ask(asker, subject);
        Self { backend, cx, resource: subject.resource, actions, sight, check, copied_tags: None }
    }

    /// Returns the same permission for work that may go on after the request has ended.
    pub fn detach(&self) -> Detached {
        Detached {
            backend: Arc::clone(self.backend),
            cx: self.cx.clone(),
            bucket: self.resource.bucket.cloned(),
            key: self.resource.key.cloned(),
            actions: self.actions,
            may_list: self.may_list(),
            check: self.check.clone(),
            copied_tags: self.copied_tags.clone(),
        }
    }

    /// `s3:ListAllMyBuckets`: returns one page of buckets.
    pub async fn list_buckets(&self, query: &ListBucketsQuery) -> Result<BucketPage> {
        self.require(S3Action::ListAllMyBuckets, Resource::default())?;
        self.backend.list_buckets(self.cx, query).await
    }

    /// `s3:CreateBucket`: makes a bucket.
    pub async fn create_bucket(&self, request: CreateBucketRequest<'_>) -> Result<()> {
        self.require(S3Action::CreateBucket, of_bucket(request.name))?;
        self.backend.create_bucket(self.cx, request).await
    }

    /// `s3:DeleteBucket`: removes a bucket.
    pub async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        self.require(S3Action::DeleteBucket, of_bucket(bucket))?;
        self.backend.delete_bucket(self.cx, bucket).await
    }

    /// `action`, which is one that reads a document of a bucket: returns the document, or `None` if
    /// the bucket has none.
    pub async fn bucket_document(
        &self,
        action: S3Action,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>> {
        self.require(action, of_bucket(bucket))?;
        self.backend.bucket_document(self.cx, bucket, kind).await
    }

    /// `action`, which is one that changes documents of a bucket: changes them, if the bucket's
    /// state still has this tag.
    pub async fn change_bucket(
        &self,
        action: S3Action,
        bucket: &BucketName,
        expected: &BucketTag,
        changes: &DocumentChanges,
    ) -> Result<()> {
        self.require(action, of_bucket(bucket))?;
        let request = ChangeBucketRequest { name: bucket, expected, changes, owner: OwnerChange::Kept };
        self.backend.change_bucket(self.cx, request).await.map(drop)
    }

    /// `s3:PutBucketPolicy`: gives the bucket another owner, if the bucket's state still has this
    /// tag. It needs this permission because the owner, like the policy, decides who may do what.
    pub async fn set_bucket_owner(
        &self,
        bucket: &BucketName,
        expected: &BucketTag,
        owner: OwnerChange<'_>,
    ) -> Result<()> {
        self.require(S3Action::PutBucketPolicy, of_bucket(bucket))?;
        let changes = &DocumentChanges::new();
        let request = ChangeBucketRequest { name: bucket, expected, changes, owner };
        self.backend.change_bucket(self.cx, request).await.map(drop)
    }

    /// `s3:ListBucket`: returns one page of keys.
    pub async fn list_objects(&self, query: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        self.require(S3Action::ListBucket, of_bucket(query.bucket))?;
        self.backend.list_objects(self.cx, query).await
    }

    /// `s3:ListBucketVersions`: returns one page of versions.
    pub async fn list_versions(&self, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        self.require(S3Action::ListBucketVersions, of_bucket(query.bucket))?;
        self.backend.list_versions(self.cx, query).await
    }

    /// `s3:GetObject`, or `s3:GetObjectVersion`: returns an object's attributes.
    pub async fn head_object(&self, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.require(read_action(request.object), of_object(request.object))?;
        let request = ReadRequest { check: self.check.as_ref(), ..request };
        self.backend.head_object(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `action`, or the action like it for versions: returns the version of an object, and fails if
    /// the object does not exist. It is for operations about something that the storage does not
    /// keep, such as an object's annotations.
    pub async fn find_object(&self, action: S3Action, request: ReadRequest<'_>) -> Result<Option<VersionId>> {
        self.require(by_version(action, request.object), of_object(request.object))?;
        let request = ReadRequest { check: self.check.as_ref(), ..request };
        let found = self.backend.head_object(self.cx, request).await;
        found.map(|read| read.attributes.version).map_err(|error| self.hide(error))
    }

    /// `s3:GetObject`, or `s3:GetObjectVersion`: returns an object's attributes and bytes.
    pub async fn get_object(&self, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.require(read_action(request.object), of_object(request.object))?;
        let request = ReadRequest { check: self.check.as_ref(), ..request };
        self.backend.get_object(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `s3:GetObjectTagging`, or `s3:GetObjectVersionTagging`: returns the tags of an object.
    pub async fn object_tags(&self, request: TagsRequest<'_>) -> Result<ObjectTags> {
        let action = by_version(S3Action::GetObjectTagging, request.object);
        self.require(action, of_object(request.object))?;
        let request = TagsRequest { check: self.check.as_ref(), ..request };
        self.backend.object_tags(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `s3:PutObjectTagging`, or `s3:DeleteObjectTagging` for no tags, or the action like it for
    /// versions: replaces the tags of an object.
    pub async fn put_object_tags(
        &self,
        action: S3Action,
        request: PutTagsRequest<'_>,
    ) -> Result<TagsReceipt> {
        let removes = action == S3Action::DeleteObjectTagging && request.tags.is_empty();
        let action = if removes { action } else { S3Action::PutObjectTagging };
        self.require(by_version(action, request.object), of_object(request.object))?;
        let request = PutTagsRequest { check: self.check.as_ref(), ..request };
        self.backend.put_object_tags(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// True if the requester may know how many tags an object has. `values` has the values of the
    /// condition keys that depend on the operation. It is false if that depends on the tags.
    pub fn may_count_tags(&self, object: ObjectRef<'_>, values: &Values<'_>) -> bool {
        self.may_also(by_version(S3Action::GetObjectTagging, object), values)
    }

    /// True if the requester may do another action with the same resource, which the request does
    /// not need. `values` is as in [`Authorized::may_count_tags`].
    pub fn may_also(&self, action: S3Action, values: &Values<'_>) -> bool {
        match self.sight {
            Sight::Ask(asker, subject) => asker.decide(action, subject, values) == Decision::Allow,
            Sight::Decided(_) => false,
        }
    }

    /// `action`, which is `s3:GetObjectRetention` or `s3:GetObjectLegalHold`: returns the lock of a
    /// version.
    pub async fn object_lock(&self, action: S3Action, request: LockRequest<'_>) -> Result<VersionLock> {
        let legal_hold = action == S3Action::GetObjectLegalHold;
        let action = if legal_hold { action } else { S3Action::GetObjectRetention };
        self.require(action, of_object(request.object))?;
        let request = LockRequest { check: self.check.as_ref(), ..request };
        let read = self.backend.object_lock(self.cx, request).await.map_err(|error| self.hide(error))?;
        let ObjectLock { retention, legal_hold: held } = read.lock;
        let lock = if legal_hold {
            ObjectLock { retention: None, legal_hold: held }
        } else {
            ObjectLock { retention, legal_hold: None }
        };
        Ok(VersionLock { lock, ..read })
    }

    /// `s3:PutObjectRetention` or `s3:PutObjectLegalHold`, as the change says: changes the lock of
    /// a version. A retention is bypassed only with the permission for that
    /// ([`Authorized::with_bypass`]).
    pub async fn put_object_lock(&self, request: PutLockRequest<'_>) -> Result<LockReceipt> {
        let (action, change) = match request.change {
            LockChange::LegalHold(_) => (S3Action::PutObjectLegalHold, request.change),
            LockChange::Retention { retention, bypass_governance } => {
                let bypass_governance = bypass_governance && self.may_bypass();
                (S3Action::PutObjectRetention, LockChange::Retention { retention, bypass_governance })
            }
        };
        self.require(action, of_object(request.object))?;
        let request = PutLockRequest { change, check: self.check.as_ref(), ..request };
        self.backend.put_object_lock(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `s3:PutObject`, `s3:PutObjectTagging` if there are tags, and `s3:PutObjectRetention` and
    /// `s3:PutObjectLegalHold` if there is a lock: begins a write, which [`Authorized::commit`]
    /// ends.
    pub async fn put_object(&self, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        self.require(S3Action::PutObject, of_object(request.object))?;
        self.require_for_tags(&request.options.tags, request.object)?;
        self.require_for_lock(&request.options.lock, request.object)?;
        let request = PutRequest { check: self.check.as_ref(), ..request };
        self.backend.put_object(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// Completes a write: makes an object or a part of the bytes. The only permission it needs is
    /// the one with which the writer was opened.
    pub async fn commit(&self, writer: Box<dyn ObjectWriter>, digests: Digests) -> Result<WriteReceipt> {
        writer.commit(digests).await.map_err(|error| self.hide(error))
    }

    /// `s3:DeleteObject`, or `s3:DeleteObjectVersion`: removes an object. A retention is bypassed
    /// only with the permission for that ([`Authorized::with_bypass`]).
    pub async fn delete_object(&self, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        let action = by_version(S3Action::DeleteObject, request.object);
        self.require(action, of_object(request.object))?;
        let bypass_governance = request.bypass_governance && self.may_bypass();
        let request = DeleteRequest { bypass_governance, check: self.check.as_ref(), ..request };
        self.backend.delete_object(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `s3:PutObject`, and the permission to read the source: copies an object. If the request has
    /// tags, `s3:PutObjectTagging`; if it keeps the source's, the source has to have the permission
    /// for that ([`Authorized::with_copied_tags`]).
    pub async fn copy_object(
        &self,
        source: &Authorized<'_>,
        request: CopyRequest<'_>,
    ) -> Result<Copied<WriteReceipt>> {
        self.require(S3Action::PutObject, of_object(request.target))?;
        source.require(read_action(request.source.object), of_object(request.source.object))?;
        self.require_for_lock(&request.lock, request.target)?;
        let of_source = match &request.tags {
            Some(tags) => {
                self.require_for_tags(tags, request.target)?;
                source.check.clone()
            }
            None => source.check_with_tags()?,
        };
        let from = CopySource { check: of_source.as_ref(), ..request.source };
        let request = CopyRequest { source: from, check: self.check.as_ref(), ..request };
        let copied = self.backend.copy_object(self.cx, request).await;
        copied.map_err(|error| self.hide_of_copy(source, error))
    }

    /// `s3:PutObject`, and `s3:PutObjectTagging` if there are tags: begins a multipart upload.
    pub async fn create_upload(&self, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        self.require_without_object(S3Action::PutObject, request.object)?;
        self.require_for_tags(&request.upload.tags, request.object)?;
        self.require_for_lock(&request.upload.lock, request.object)?;
        self.backend.create_upload(self.cx, request).await
    }

    /// `s3:PutObject`: begins a part, which [`Authorized::commit`] ends.
    pub async fn put_part(&self, request: PutPartRequest<'_>) -> Result<PartWriter> {
        self.require_without_object(S3Action::PutObject, request.upload.object)?;
        self.backend.put_part(self.cx, request).await
    }

    /// `s3:PutObject`, and the permission to read the source: makes a part from the source.
    pub async fn copy_part(
        &self,
        source: &Authorized<'_>,
        request: CopyPartRequest<'_>,
    ) -> Result<Copied<PartReceipt>> {
        self.require_without_object(S3Action::PutObject, request.upload.object)?;
        source.require(read_action(request.source.object), of_object(request.source.object))?;
        let from = CopySource { check: source.check.as_ref(), ..request.source };
        let request = CopyPartRequest { source: from, ..request };
        let copied = self.backend.copy_part(self.cx, request).await;
        copied.map_err(|error| self.hide_of_copy(source, error))
    }

    /// `s3:PutObject`: makes the object of an upload.
    pub async fn complete_upload(&self, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        self.require(S3Action::PutObject, of_object(request.upload.object))?;
        let request = CompleteRequest { check: self.check.as_ref(), ..request };
        self.backend.complete_upload(self.cx, request).await.map_err(|error| self.hide(error))
    }

    /// `s3:AbortMultipartUpload`: removes an upload.
    pub async fn abort_upload(&self, request: AbortRequest<'_>) -> Result<AbortReceipt> {
        self.require_without_object(S3Action::AbortMultipartUpload, request.upload.object)?;
        self.backend.abort_upload(self.cx, request).await
    }

    /// `s3:ListMultipartUploadParts`: returns one page of parts.
    pub async fn list_parts(&self, query: ListPartsQuery<'_>) -> Result<PartPage> {
        self.require_without_object(S3Action::ListMultipartUploadParts, query.upload.object)?;
        self.backend.list_parts(self.cx, query).await
    }

    /// `s3:ListBucketMultipartUploads`: returns one page of uploads.
    pub async fn list_uploads(&self, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        self.require(S3Action::ListBucketMultipartUploads, of_bucket(query.bucket))?;
        self.backend.list_uploads(self.cx, query).await
    }

    /// Does the same as [`Authorized::require`] for a call that acts on an upload and not on an
    /// object. If the permission depends on the object, it is decided as if the object did not
    /// exist. The object is checked when the upload is completed.
    fn require_without_object(&self, action: S3Action, object: ObjectRef<'_>) -> Result<()> {
        self.require(action, of_object(object))?;
        if let Some(check) = &self.check {
            check.check(None)?;
        }
        Ok(())
    }

    fn require(&self, action: S3Action, resource: Resource<'_>) -> Result<()> {
        if self.actions.has(action) && self.resource == resource {
            return Ok(());
        }
        Err(not_asked_for(action))
    }

    fn require_for_tags(&self, tags: &Tags, object: ObjectRef<'_>) -> Result<()> {
        if tags.is_empty() { Ok(()) } else { self.require(S3Action::PutObjectTagging, of_object(object)) }
    }

    fn require_for_lock(&self, lock: &ObjectLock, object: ObjectRef<'_>) -> Result<()> {
        let ObjectLock { retention, legal_hold } = lock;
        if retention.is_some() {
            self.require(S3Action::PutObjectRetention, of_object(object))?;
        }
        if legal_hold.is_some() {
            self.require(S3Action::PutObjectLegalHold, of_object(object))?;
        }
        Ok(())
    }

    /// Adds the permission to bypass a retention in GOVERNANCE mode, if the requester has it. As on
    /// S3, a request that asks for this without the permission is done without it. `values` is as
    /// in [`Authorized::may_count_tags`].
    pub fn with_bypass(mut self, values: &Values<'_>) -> Self {
        const ACTION: S3Action = S3Action::BypassGovernanceRetention;
        if let Sight::Ask(asker, subject) = self.sight
            && asker.decide_noted(ACTION, subject, values) == Decision::Allow
        {
            self.actions = self.actions.and(ACTION);
        }
        self
    }

    pub(super) fn may_bypass(&self) -> bool {
        self.actions.has(S3Action::BypassGovernanceRetention)
    }

    /// Adds the permission to copy the tags of this object.
    pub fn with_copied_tags(mut self, tags: CopiedTags) -> Self {
        self.copied_tags = Some(tags);
        self
    }

    /// Returns the check of a copy that keeps the tags of this object.
    fn check_with_tags(&self) -> Result<Check> {
        match &self.copied_tags {
            Some(tags) => Ok(tags.after(self.check.clone())),
            None => Err(not_asked_for(S3Action::GetObjectTagging)),
        }
    }

    fn may_list(&self) -> bool {
        match self.sight {
            Sight::Ask(asker, subject) => asker.may_list(subject),
            Sight::Decided(may_list) => may_list,
        }
    }

    /// Replaces the error that a key or version does not exist, unless the requester may list the
    /// bucket.
    pub(super) fn hide(&self, error: BackendError) -> BackendError {
        use BackendError as B;
        // A current delete marker says that there is no object, and what there was.
        let tells_keys =
            matches!(error, B::NoSuchKey | B::NoSuchVersion(_) | B::DeleteMarker { is_named: false, .. });
        if tells_keys && !self.may_list() { BackendError::NotAllowed } else { error }
    }

    fn hide_of_copy(&self, source: &Authorized<'_>, error: BackendError) -> BackendError {
        match error {
            BackendError::Copy { side, error } => {
                let of_side = if side == CopySide::Source { source } else { self };
                BackendError::Copy { side, error: Box::new(of_side.hide(*error)) }
            }
            error => self.hide(error),
        }
    }
}

/// An [`Authorized`] that owns everything it needs, so that it can outlive the request.
pub struct Detached {
    backend: Arc<dyn Backend>,
    cx: Context,
    bucket: Option<BucketName>,
    key: Option<ObjectKey>,
    actions: ActionSet,
    may_list: bool,
    check: Check,
    copied_tags: Option<CopiedTags>,
}

impl Detached {
    /// Returns the permission in its usual form.
    pub fn authorized(&self) -> Authorized<'_> {
        Authorized {
            backend: &self.backend,
            cx: &self.cx,
            resource: Resource { bucket: self.bucket.as_ref(), key: self.key.as_ref() },
            actions: self.actions,
            sight: Sight::Decided(self.may_list),
            check: self.check.clone(),
            copied_tags: self.copied_tags.clone(),
        }
    }
}

fn not_asked_for(action: S3Action) -> BackendError {
    let operation = "use a permission that was not asked for";
    BackendError::Io { operation, source: io::Error::other(action.as_str()) }
}

fn of_bucket(bucket: &BucketName) -> Resource<'_> {
    Resource { bucket: Some(bucket), key: None }
}

fn of_object(object: ObjectRef<'_>) -> Resource<'_> {
    Resource { bucket: Some(object.bucket), key: Some(object.key) }
}

fn read_action(object: ObjectRef<'_>) -> S3Action {
    by_version(S3Action::GetObject, object)
}

/// Returns `action`, or the action like it for versions if the request names a version.
fn by_version(action: S3Action, object: ObjectRef<'_>) -> S3Action {
    match object.version {
        VersionRef::Current => action,
        VersionRef::Id(_) => action.of_version(),
    }
}
