//! Tests that each method of [`Authorized`] needs its action on its resource, and reveals missing
//! keys only to those who may list the bucket.

mod locks;
mod objects;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend::{
    AbortRequest, Backend, BackendError, BucketTag, Call, CallObserver, CompleteRequest, CompleteUpload,
    Context, CopyPartRequest, CopyRequest, CopySource, CreateBucketRequest, CreateUploadRequest,
    DeleteMarker, DeleteRequest, DocumentChanges, DocumentKind, ListBucketsQuery, ListPartsQuery, ListQuery,
    LockChange, LockRequest, Metered, NewUpload, ObjectRef, PutLockRequest, PutPartRequest, PutRequest,
    PutTagsRequest, ReadRequest, ReadSelector, Result, TagsRequest, UploadReceipt, UploadRef, WriteOptions,
    WriteReceipt,
};
use backend_null::NullBackend;
use backend_posix::{Options, PosixBackend};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use iam::{Account, AccountId, Authorizer, BucketRules, Decision, Question, Requester, Resource};
use policy::Value;
use s3_types::{
    ActionSet, BucketName, CompletedPart, Conditions, Digests, ETag, ETagCondition, ObjectKey, ObjectLock,
    S3Action, Tags, Timestamp, UploadId, VersionId,
};

use super::{Asker, Authorized, BucketDefaults, Refused, Storage, Subject};
use crate::peer::Peer;

/// The calls that reached the storage.
#[derive(Default)]
struct Calls(Mutex<Vec<Call>>);

impl CallObserver for Calls {
    fn call_ended(&self, call: Call, _: Duration, _: Option<&BackendError>) {
        self.0.lock().unwrap().push(call);
    }

    fn bytes_moved(&self, _: Call, _: u64) {}
}

/// Allows only the actions of a set.
#[derive(Debug)]
struct Only(ActionSet);

impl Authorizer for Only {
    fn decide(&self, question: &Question<'_>) -> Decision {
        if self.0.has(question.action) { Decision::Allow } else { Decision::NoGrant }
    }
}

fn only(actions: ActionSet) -> Arc<dyn Authorizer> {
    Arc::new(Only(actions))
}

struct Scene {
    storage: Storage,
    calls: Arc<Calls>,
    cx: Context,
    rules: Arc<BucketRules>,
    headers: HeaderMap,
    bucket: BucketName,
    key: ObjectKey,
    other: ObjectKey,
    upload: UploadId,
    version: VersionId,
    anything: Conditions,
}

impl Scene {
    fn new(backend: Arc<dyn Backend>) -> Self {
        let calls = Arc::new(Calls::default());
        let id = AccountId::new("111122223333").unwrap();
        Self {
            storage: Storage::new(Arc::new(Metered::new(backend, calls.clone())), BucketDefaults::default()),
            calls,
            cx: Context::default(),
            rules: Arc::new(BucketRules::of_owner(Arc::new(Account::new(id)))),
            headers: HeaderMap::new(),
            bucket: BucketName::new("bucket").unwrap(),
            key: ObjectKey::new("key").unwrap(),
            other: ObjectKey::new("other").unwrap(),
            upload: UploadId::new("upload").unwrap(),
            version: VersionId::new("null").unwrap(),
            anything: Conditions::default(),
        }
    }

    fn asker<'a>(&'a self, authorizer: &'a Arc<dyn Authorizer>) -> Asker<'a> {
        Asker {
            authorizer,
            requester: &Requester::Anonymous,
            region: "us-east-1",
            peer: Peer { address: None, tls: None, secure: false, proxied: false },
            now: Timestamp::UNIX_EPOCH,
            headers: &self.headers,
            signature: None,
            trail: None,
        }
    }

    fn object(&self) -> ObjectRef<'_> {
        ObjectRef::current(&self.bucket, &self.key)
    }

    fn target(&self) -> ObjectRef<'_> {
        ObjectRef::current(&self.bucket, &self.other)
    }

    fn version(&self) -> ObjectRef<'_> {
        self.object().of(Some(&self.version))
    }

    fn upload(&self) -> UploadRef<'_> {
        UploadRef { object: self.object(), id: &self.upload }
    }

    fn read<'a>(&'a self, object: ObjectRef<'a>) -> ReadRequest<'a> {
        ReadRequest {
            object,
            selector: ReadSelector::Whole,
            conditions: &self.anything,
            with_lock: false,
            check: None,
        }
    }

    fn copy<'a>(&'a self, object: ObjectRef<'a>) -> CopyRequest<'a> {
        CopyRequest {
            source: source(object),
            target: self.target(),
            metadata: None,
            tags: Some(Tags::default()),
            lock: ObjectLock::default(),
            website_redirect_location: None,
            checksum_algorithm: None,
            conditions: Conditions::default(),
            check: None,
        }
    }

    fn copy_part<'a>(&'a self, object: ObjectRef<'a>) -> CopyPartRequest<'a> {
        let upload = UploadRef { object: self.target(), id: &self.upload };
        CopyPartRequest { source: source(object), range: None, upload, part_number: 1 }
    }

    fn complete(&self) -> CompleteRequest<'_> {
        CompleteRequest { upload: self.upload(), complete: CompleteUpload::default(), check: None }
    }

    /// The bucket, the object, another object, and the service.
    fn resources(&self) -> [Resource<'_>; 4] {
        let bucket = Some(&self.bucket);
        [
            Resource { bucket, key: None },
            Resource { bucket, key: Some(&self.key) },
            Resource { bucket, key: Some(&self.other) },
            Resource::default(),
        ]
    }

    /// Permission for `actions`, which the authorizer of `asker` must grant.
    fn allowed<'a>(
        &'a self,
        asker: &'a Asker<'a>,
        resource: Resource<'a>,
        actions: ActionSet,
    ) -> Authorized<'a> {
        self.ask(asker, resource, actions).unwrap()
    }

    fn ask<'a>(
        &'a self,
        asker: &'a Asker<'a>,
        resource: Resource<'a>,
        actions: ActionSet,
    ) -> Result<Authorized<'a>, Refused> {
        let subject = Subject { resource, rules: Some(&self.rules) };
        self.storage.authorize(&self.cx, asker, subject, actions, &|_| Value::Absent)
    }
}

fn source(object: ObjectRef<'_>) -> CopySource<'_> {
    CopySource { object, conditions: Conditions::default(), check: None }
}

fn one_tag() -> Tags {
    Tags::new(vec![("a".into(), "1".into())], 10).unwrap()
}

fn put(object: ObjectRef<'_>, conditions: Conditions) -> PutRequest<'_> {
    PutRequest { object, options: WriteOptions { conditions, ..WriteOptions::default() }, check: None }
}

/// A use of a permission, and of one for the source if it has any.
type Use = for<'a> fn(&'a Scene, &'a Authorized<'a>, &'a Authorized<'a>) -> BoxFuture<'a, Result<()>>;

/// The index in [`Scene::resources`] of what a use acts on.
const BUCKET: usize = 0;
const OBJECT: usize = 1;
const OTHER: usize = 2;
const SERVICE: usize = 3;

/// Every method that asks the storage for something: its action, what it acts on, and the call that
/// it makes.
const USES: [(S3Action, usize, Call, Use); 35] = [
    (S3Action::ListAllMyBuckets, SERVICE, Call::ListBuckets, |_, a, _| {
        async { a.list_buckets(&ListBucketsQuery::default()).await.map(drop) }.boxed()
    }),
    (S3Action::CreateBucket, BUCKET, Call::CreateBucket, |s, a, _| {
        a.create_bucket(CreateBucketRequest::plain(&s.bucket)).boxed()
    }),
    (S3Action::DeleteBucket, BUCKET, Call::DeleteBucket, |s, a, _| a.delete_bucket(&s.bucket).boxed()),
    (S3Action::GetBucketPolicy, BUCKET, Call::BucketDocument, |s, a, _| {
        document(s, a, S3Action::GetBucketPolicy)
    }),
    (S3Action::GetBucketPolicyStatus, BUCKET, Call::BucketDocument, |s, a, _| {
        document(s, a, S3Action::GetBucketPolicyStatus)
    }),
    (S3Action::PutBucketPolicy, BUCKET, Call::ChangeBucket, |s, a, _| {
        change(s, a, S3Action::PutBucketPolicy)
    }),
    (S3Action::DeleteBucketPolicy, BUCKET, Call::ChangeBucket, |s, a, _| {
        change(s, a, S3Action::DeleteBucketPolicy)
    }),
    (S3Action::GetBucketVersioning, BUCKET, Call::BucketDocument, |s, a, _| {
        document(s, a, S3Action::GetBucketVersioning)
    }),
    (S3Action::PutBucketVersioning, BUCKET, Call::ChangeBucket, |s, a, _| {
        change(s, a, S3Action::PutBucketVersioning)
    }),
    (S3Action::ListBucket, BUCKET, Call::ListObjects, |s, a, _| list_objects(s, a)),
    (S3Action::ListBucketVersions, BUCKET, Call::ListVersions, |s, a, _| {
        let query = ListQuery { bucket: &s.bucket, prefix: "", delimiter: None, start: None, max_items: 1 };
        async move { a.list_versions(&query).await.map(drop) }.boxed()
    }),
    (S3Action::GetObject, OBJECT, Call::HeadObject, |s, a, _| {
        async { a.head_object(s.read(s.object())).await.map(drop) }.boxed()
    }),
    (S3Action::GetObjectVersion, OBJECT, Call::HeadObject, |s, a, _| {
        async { a.head_object(s.read(s.version())).await.map(drop) }.boxed()
    }),
    (S3Action::GetObjectAcl, OBJECT, Call::HeadObject, |s, a, _| {
        async { a.find_object(S3Action::GetObjectAcl, s.read(s.object())).await.map(drop) }.boxed()
    }),
    (S3Action::GetObject, OBJECT, Call::GetObject, |s, a, _| {
        async { a.get_object(s.read(s.object())).await.map(drop) }.boxed()
    }),
    (S3Action::GetObjectVersion, OBJECT, Call::GetObject, |s, a, _| {
        async { a.get_object(s.read(s.version())).await.map(drop) }.boxed()
    }),
    (S3Action::GetObjectTagging, OBJECT, Call::ObjectTags, |s, a, _| {
        async { a.object_tags(TagsRequest { object: s.object(), check: None }).await.map(drop) }.boxed()
    }),
    (S3Action::PutObjectTagging, OBJECT, Call::PutObjectTags, |s, a, _| {
        let request = PutTagsRequest { object: s.object(), tags: one_tag(), check: None };
        async { a.put_object_tags(S3Action::DeleteObjectTagging, request).await.map(drop) }.boxed()
    }),
    (S3Action::DeleteObjectVersionTagging, OBJECT, Call::PutObjectTags, |s, a, _| {
        let request = PutTagsRequest { object: s.version(), tags: Tags::default(), check: None };
        async { a.put_object_tags(S3Action::DeleteObjectTagging, request).await.map(drop) }.boxed()
    }),
    (S3Action::GetObjectRetention, OBJECT, Call::ObjectLock, |s, a, _| {
        let request = LockRequest { object: s.object(), check: None };
        async move { only_known(a.object_lock(S3Action::GetObjectRetention, request).await.map(drop)) }
            .boxed()
    }),
    (S3Action::GetObjectLegalHold, OBJECT, Call::ObjectLock, |s, a, _| {
        let request = LockRequest { object: s.version(), check: None };
        async move { only_known(a.object_lock(S3Action::GetObjectLegalHold, request).await.map(drop)) }
            .boxed()
    }),
    (S3Action::PutObjectRetention, OBJECT, Call::PutObjectLock, |s, a, _| {
        let change = LockChange::Retention { retention: None, bypass_governance: true };
        let request = PutLockRequest { object: s.object(), change, check: None };
        async move { only_known(a.put_object_lock(request).await.map(drop)) }.boxed()
    }),
    (S3Action::PutObjectLegalHold, OBJECT, Call::PutObjectLock, |s, a, _| {
        let change = LockChange::LegalHold(true);
        let request = PutLockRequest { object: s.version(), change, check: None };
        async move { only_known(a.put_object_lock(request).await.map(drop)) }.boxed()
    }),
    (S3Action::PutObject, OBJECT, Call::PutObject, |s, a, _| {
        async { a.put_object(put(s.object(), Conditions::default())).await.map(drop) }.boxed()
    }),
    (S3Action::DeleteObject, OBJECT, Call::DeleteObject, |s, a, _| {
        let request = DeleteRequest {
            object: s.object(),
            conditions: &s.anything,
            bypass_governance: false,
            check: None,
        };
        async move { a.delete_object(request).await.map(drop) }.boxed()
    }),
    (S3Action::DeleteObjectVersion, OBJECT, Call::DeleteObject, |s, a, _| {
        let request = DeleteRequest {
            object: s.version(),
            conditions: &s.anything,
            bypass_governance: false,
            check: None,
        };
        async move { a.delete_object(request).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OTHER, Call::CopyObject, |s, a, source| {
        async { a.copy_object(source, s.copy(s.object())).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OTHER, Call::CopyPart, |s, a, source| {
        let object = ObjectRef::current(&s.bucket, &s.other);
        let upload = UploadRef { object, id: &s.upload };
        let request =
            CopyPartRequest { source: self::source(s.object()), range: None, upload, part_number: 1 };
        async { a.copy_part(source, request).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OBJECT, Call::CreateUpload, |s, a, _| {
        let request = CreateUploadRequest { object: s.object(), upload: NewUpload::default() };
        async { a.create_upload(request).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OBJECT, Call::PutPart, |s, a, _| {
        let request = PutPartRequest { upload: s.upload(), part_number: 1, size_hint: None, checksum: None };
        async move { a.put_part(request).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OBJECT, Call::CompleteUpload, |s, a, _| {
        async { a.complete_upload(s.complete()).await.map(drop) }.boxed()
    }),
    (S3Action::AbortMultipartUpload, OBJECT, Call::AbortUpload, |s, a, _| {
        a.abort_upload(AbortRequest { upload: s.upload(), if_initiated: None })
            .map(|aborted| aborted.map(drop))
            .boxed()
    }),
    (S3Action::ListMultipartUploadParts, OBJECT, Call::ListParts, |s, a, _| {
        let query = ListPartsQuery { upload: s.upload(), after: 0, max_parts: 1 };
        async move { a.list_parts(query).await.map(drop) }.boxed()
    }),
    (S3Action::ListBucketMultipartUploads, BUCKET, Call::ListUploads, |s, a, _| {
        let bucket = &s.bucket;
        let query = ListQuery { bucket, prefix: "", delimiter: None, start: None, max_items: 1 };
        async move { a.list_uploads(&query).await.map(drop) }.boxed()
    }),
    (S3Action::PutObject, OTHER, Call::CopyObject, |s, a, source| {
        async { a.copy_object(source, s.copy(s.version())).await.map(drop) }.boxed()
    }),
];

/// The result of a call about locks, of which this storage has none.
fn only_known(result: Result<()>) -> Result<()> {
    if matches!(result, Err(BackendError::NoObjectLock)) { Ok(()) } else { result }
}

fn document<'a>(s: &'a Scene, a: &'a Authorized<'a>, action: S3Action) -> BoxFuture<'a, Result<()>> {
    async move { a.bucket_document(action, &s.bucket, DocumentKind::Policy).await.map(drop) }.boxed()
}

fn change<'a>(s: &'a Scene, a: &'a Authorized<'a>, action: S3Action) -> BoxFuture<'a, Result<()>> {
    let changes = DocumentChanges::from([(DocumentKind::Policy, None)]);
    async move { a.change_bucket(action, &s.bucket, &BucketTag::new(&[]), &changes).await }.boxed()
}

fn list_objects<'a>(s: &'a Scene, a: &'a Authorized<'a>) -> BoxFuture<'a, Result<()>> {
    let bucket = &s.bucket;
    let query = ListQuery { bucket, prefix: "", delimiter: None, start: None, max_items: 1 };
    async move { a.list_objects(&query).await.map(drop) }.boxed()
}

fn all_actions() -> ActionSet {
    all_but(&[])
}

fn all_but(actions: &[S3Action]) -> ActionSet {
    let others = S3Action::ALL.iter().filter(|action| !actions.contains(action));
    others.fold(ActionSet::NONE, |set, action| set.and(*action))
}

fn is_misuse(result: &Result<()>) -> bool {
    matches!(result, Err(BackendError::Io { operation: "use a permission that was not asked for", .. }))
}

#[tokio::test]
async fn without_its_action_on_its_resource_nothing_reaches_the_storage() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let (everything, resources) = (only(all_actions()), scene.resources());
    let asker = scene.asker(&everything);
    for (action, about, call, use_of) in USES {
        let source = scene.allowed(&asker, resources[OBJECT], all_actions());
        for (place, resource) in resources.into_iter().enumerate() {
            let others = all_but(&[action]);
            let sets = [(others, false), (ActionSet::from(action), place == about)];
            for (actions, is_enough) in sets {
                let authorized = scene.allowed(&asker, resource, actions);
                let detached = authorized.detach();
                for authorized in [&authorized, &detached.authorized()] {
                    let result = use_of(&scene, authorized, &source).await;
                    let reached = std::mem::take(&mut *scene.calls.0.lock().unwrap());
                    let what = format!("{action:?} by {call:?} of {resource:?}: {result:?}");
                    assert_eq!(is_misuse(&result), !is_enough, "{what}");
                    assert_eq!(reached, if is_enough { vec![call] } else { vec![] }, "{what}");
                }
            }
        }
    }
}

/// The calls for which no requester needs permission, and those of a write that has begun.
const OTHERS: [Call; 6] =
    [Call::BucketExists, Call::LoadBucket, Call::Sweep, Call::SweepOrphans, Call::Write, Call::Commit];

#[test]
fn every_call_has_a_use() {
    let has_use =
        |call: &&Call| USES.iter().any(|(_, _, of_use, _)| of_use == *call) || OTHERS.contains(call);
    assert_eq!(Call::ALL.iter().filter(|call| !has_use(call)).collect::<Vec<_>>(), Vec::<&Call>::new());
}

#[tokio::test]
async fn a_copy_needs_permission_for_its_source() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let (everything, resources) = (only(all_actions()), scene.resources());
    let asker = scene.asker(&everything);
    let target = scene.allowed(&asker, resources[OTHER], S3Action::PutObject.into());
    for (object, action) in
        [(scene.object(), S3Action::GetObject), (scene.version(), S3Action::GetObjectVersion)]
    {
        for (place, resource) in resources.into_iter().enumerate() {
            for (actions, is_enough) in [(all_but(&[action]), false), (action.into(), place == OBJECT)] {
                let source = scene.allowed(&asker, resource, actions);
                let results = [
                    target.copy_object(&source, scene.copy(object)).await.map(drop),
                    target.copy_part(&source, scene.copy_part(object)).await.map(drop),
                ];
                let reached = std::mem::take(&mut *scene.calls.0.lock().unwrap());
                assert!(results.iter().all(|result| is_misuse(result) != is_enough), "{results:?}");
                let calls = [Call::CopyObject, Call::CopyPart];
                assert_eq!(reached, calls[..if is_enough { 2 } else { 0 }]);
            }
        }
    }
}

/// Tags need a permission of their own, whether they come with a write, an upload or a copy.
#[tokio::test]
async fn tags_need_their_own_permission() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let (everything, resources) = (only(all_actions()), scene.resources());
    let asker = scene.asker(&everything);
    let source = scene.allowed(&asker, resources[OBJECT], S3Action::GetObject.into());
    let put_object = ActionSet::from(S3Action::PutObject);
    for (actions, is_enough) in [(put_object, false), (put_object.and(S3Action::PutObjectTagging), true)] {
        let target = scene.allowed(&asker, resources[OTHER], actions);
        let object = scene.copy(scene.object()).target;
        let copy = CopyRequest { tags: Some(one_tag()), ..scene.copy(scene.object()) };
        let kept = CopyRequest { tags: None, ..scene.copy(scene.object()) };
        let mut write = put(object, Conditions::default());
        write.options.tags = one_tag();
        let upload = NewUpload { tags: one_tag(), ..NewUpload::default() };
        let results = [
            target.copy_object(&source, copy).await.map(drop),
            target.put_object(write).await.map(drop),
            target.create_upload(CreateUploadRequest { object, upload }).await.map(drop),
        ];
        assert!(results.iter().all(|result| is_misuse(result) != is_enough), "{results:?}");
        // The source has no permission for its tags to be copied.
        assert!(is_misuse(&target.copy_object(&source, kept).await.map(drop)));
    }
}

#[tokio::test]
async fn what_is_not_allowed_gives_no_permission() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    let only = only(S3Action::GetObject.into());
    let (asker, resource) = (scene.asker(&only), scene.resources()[OBJECT]);
    let ask = |actions| scene.ask(&asker, resource, actions).is_ok();
    assert!(ask(S3Action::GetObject.into()) && ask(ActionSet::NONE));
    assert!(!ask(S3Action::PutObject.into()));
    assert!(!ask(ActionSet::from(S3Action::GetObject).and(S3Action::PutObject)));
}

fn must_match() -> Conditions {
    let etag = ETag::Md5([0; 16]);
    Conditions { if_match: Some(ETagCondition::OneOf(vec![etag])), ..Conditions::default() }
}

/// The storage's error about a missing key, as the user of this permission gets it.
async fn errors_about_missing(
    scene: &Scene,
    object: &Authorized<'_>,
    target: &Authorized<'_>,
) -> Vec<BackendError> {
    let conditions = must_match();
    let delete = DeleteRequest {
        object: scene.object(),
        conditions: &conditions,
        bypass_governance: false,
        check: None,
    };
    let begun = object.put_object(put(scene.object(), must_match())).await;
    let put = match begun {
        Ok(writer) => object.commit(writer, no_digests()).await.map(drop),
        Err(error) => Err(error),
    };
    let of_object = upload_with_a_part(object, scene.object()).await;
    let of_target = upload_with_a_part(target, scene.target()).await;
    let complete = CompleteRequest {
        upload: UploadRef { object: scene.object(), id: &of_object.0 },
        complete: CompleteUpload {
            parts: vec![of_object.1],
            conditions: must_match(),
            ..CompleteUpload::default()
        },
        check: None,
    };
    let copy_part = CopyPartRequest {
        upload: UploadRef { object: scene.target(), id: &of_target.0 },
        ..scene.copy_part(scene.object())
    };
    let results = [
        object.complete_upload(complete).await.map(drop),
        target.copy_part(object, copy_part).await.map(drop),
        object.head_object(scene.read(scene.version())).await.map(drop),
        object.head_object(scene.read(scene.object())).await.map(drop),
        object.get_object(scene.read(scene.object())).await.map(drop),
        object.find_object(S3Action::GetObjectAcl, scene.read(scene.object())).await.map(drop),
        object.delete_object(delete).await.map(drop),
        put,
        target.copy_object(object, scene.copy(scene.object())).await.map(drop),
    ];
    results.into_iter().map(Result::unwrap_err).collect()
}

async fn upload_with_a_part(authorized: &Authorized<'_>, object: ObjectRef<'_>) -> (UploadId, CompletedPart) {
    let request = CreateUploadRequest { object, upload: NewUpload::default() };
    let UploadReceipt { id, .. } = authorized.create_upload(request).await.unwrap();
    let upload = UploadRef { object, id: &id };
    let request = PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None };
    let writer = authorized.put_part(request).await.unwrap().writer;
    let WriteReceipt { etag, .. } = authorized.commit(writer, no_digests()).await.unwrap();
    (id, CompletedPart { part_number: 1, etag, checksum: None })
}

fn no_digests() -> Digests {
    Digests { etag: ETag::Md5([0; 16]), checksum: None }
}

/// A marker that is current hides what is missing. One that is named is a version that exists, and
/// the permission to read versions is that to know them.
#[test]
fn a_current_delete_marker_is_told_as_a_missing_key_is() {
    let scene = Scene::new(Arc::new(NullBackend::new()));
    for may_list in [true, false] {
        let granted = if may_list { all_actions() } else { all_but(&[S3Action::ListBucket]) };
        let only = only(granted);
        let asker = scene.asker(&only);
        let object = scene.allowed(&asker, scene.resources()[OBJECT], granted);
        for is_named in [true, false] {
            let marker =
                DeleteMarker { version: scene.version.clone(), last_modified: Timestamp::UNIX_EPOCH };
            let told = object.hide(BackendError::DeleteMarker { marker, is_named });
            let is_hidden = matches!(told, BackendError::NotAllowed);
            assert_eq!(is_hidden, !may_list && !is_named, "{told:?}");
        }
    }
}

#[tokio::test]
async fn whether_a_key_is_missing_is_told_to_those_who_may_list() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir(tree.path().join("bucket")).unwrap();
    let backend = PosixBackend::open(tree.path(), Options::default()).unwrap();
    let scene = Scene::new(Arc::new(backend));
    let of_side = |error| match error {
        BackendError::Copy { error, .. } => *error,
        error => error,
    };
    for may_list in [true, false] {
        let granted = if may_list { all_actions() } else { all_but(&[S3Action::ListBucket]) };
        let only = only(granted);
        let (asker, resources) = (scene.asker(&only), scene.resources());
        let object = scene.allowed(&asker, resources[OBJECT], granted);
        let target = scene.allowed(&asker, resources[OTHER], granted);
        let (detached, detached_target) = (object.detach(), target.detach());
        let mut errors = errors_about_missing(&scene, &object, &target).await;
        errors.extend(
            errors_about_missing(&scene, &detached.authorized(), &detached_target.authorized()).await,
        );
        assert_eq!(errors.len(), 18);
        for error in errors.into_iter().map(of_side) {
            match error {
                BackendError::NoSuchKey | BackendError::NoSuchVersion(_) => assert!(may_list),
                BackendError::NotAllowed => assert!(!may_list),
                error => panic!("{error:?}"),
            }
        }
        // What is there is told to all who may read it, and what it does not fulfil.
        let bytes = bytes::Bytes::from_static(b"x");
        let mut writer = object.put_object(put(scene.object(), Conditions::default())).await.unwrap();
        writer.write(bytes).await.unwrap();
        object.commit(writer, no_digests()).await.unwrap();
        object.head_object(scene.read(scene.object())).await.unwrap();
        let copy = CopyRequest { conditions: must_match(), ..scene.copy(scene.object()) };
        let error = of_side(target.copy_object(&object, copy).await.unwrap_err());
        assert_eq!(matches!(error, BackendError::NoSuchKey), may_list, "{error:?}");
        assert_eq!(matches!(error, BackendError::NotAllowed), !may_list, "{error:?}");
        let conditions = Conditions { if_match: Some(ETagCondition::OneOf(vec![])), ..Conditions::default() };
        let read = ReadRequest { conditions: &conditions, ..scene.read(scene.object()) };
        let error = object.head_object(read).await.map(drop).unwrap_err();
        assert!(matches!(error, BackendError::PreconditionFailed(_)), "{error:?}");
        object
            .delete_object(DeleteRequest {
                object: scene.object(),
                conditions: &scene.anything,
                bypass_governance: false,
                check: None,
            })
            .await
            .unwrap();
    }
}
