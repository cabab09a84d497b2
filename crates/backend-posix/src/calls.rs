//! The implementation of [`Backend`] and [`Maintenance`]: each call runs one operation on the tree.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_trait::async_trait;
use backend::{
    AbortReceipt, AbortRequest, Backend, BackendError, BucketPage, BucketState, Capabilities,
    ChangeBucketRequest, Check, CompleteRequest, Context, Copied, CopyPartRequest, CopyRequest, CopySide,
    CreateBucketRequest, CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentKind, ListBucketsQuery,
    ListItem, ListPage, ListPartsQuery, ListPosition, ListQuery, LockReceipt, LockRequest, Maintenance,
    ObjectRead, ObjectRef, ObjectTags, ObjectWriter, PartPage, PartReceipt, PartWriter, PutLockRequest,
    PutPartRequest, PutRequest, PutTagsRequest, ReadRequest, ReadSelector, Result, Statistics, SweepReport,
    TagsReceipt, TagsRequest, UploadPage, UploadPosition, UploadReceipt, VersionItem, VersionLock,
    VersionPage, VersionRef, Versioning, WriteOptions, WriteReceipt, check_part_algorithm,
};
use bytes::Bytes;
use rustix::fs::Access;
use s3_types::{BucketName, Conditions, ObjectLock, UnixAccount};

use crate::PosixBackend;
use crate::base::options::{DEFAULT_CHECKSUM, Options};
use crate::base::turns::CopyTurn;
use crate::base::who::Who;
use crate::buckets::NewBucket;
use crate::buckets::documents::{self, Change, Initial, States};
use crate::facts::foreign;
use crate::layout::keymap::{KeyPath, directory_path};
use crate::object::{Copy, NewObject, ObjectReading, Tagged, Writer};
use crate::record::{Named, early_id};
use crate::tree::closed::{ask, naming};
use crate::tree::lock_time;
use crate::tree::store::Store;
use crate::upload::{Complete, CopyPart, PartTarget, UploadName};
use crate::write::publish::{Rules, Target};
use crate::{blocking, buckets, listing, object, upload, volumes};

impl PosixBackend {
    /// Returns the owner to whom new files are given; `None` if they keep the owner with whose
    /// identity they are made (the gateway's, or the requester's).
    fn owner(&self, cx: &Context) -> Option<UnixAccount> {
        let Options { chown, impersonate, .. } = self.store.options;
        cx.unix_account().filter(|_| chown && !impersonate)
    }

    /// Returns the owner to whom a new bucket is given. It is always the gateway that makes the
    /// bucket.
    fn owner_of_bucket(&self, cx: &Context) -> Option<UnixAccount> {
        let Options { chown, impersonate, .. } = self.store.options;
        cx.unix_account().filter(|_| chown || impersonate)
    }

    /// Returns the identity that the file calls of a request are made with.
    fn who(&self, cx: &Context) -> Result<Who> {
        Who::of(&self.store.options, cx)
    }

    fn target(
        &self,
        cx: &Context,
        object: ObjectRef<'_>,
        conditions: &Conditions,
        check: Check<'_>,
    ) -> Target {
        Target {
            bucket: object.bucket.clone(),
            place: KeyPath::of(object.key.as_str()),
            conditions: conditions.clone(),
            check: check.cloned(),
            predecessor: None,
            rules: Some(Arc::clone(&self.states) as Arc<dyn Rules>),
            lock: ObjectLock::default(),
            bypass_governance: false,
            owner: self.owner(cx),
        }
    }

    /// Returns the version that a request names. Refuses an id that no version here can have. If
    /// the bucket is missing, this is reported first.
    async fn named_version(
        &self,
        who: &Who,
        object: ObjectRef<'_>,
        bucket: &BucketName,
    ) -> Result<Option<Named>> {
        let VersionRef::Id(id) = object.version else { return Ok(None) };
        if let Some(named) = Named::of(id) {
            return Ok(Some(named));
        }
        let name = bucket.clone();
        self.run_in(bucket, who.clone(), move |store| store.bucket(&name).map(drop)).await?;
        Err(BackendError::InvalidVersionId(id.clone()))
    }

    /// Checks the version id of a copy's source as [`PosixBackend::named_version`] does; the target
    /// is in `bucket`.
    async fn check_source_version(
        &self,
        who: &Who,
        source: ObjectRef<'_>,
        bucket: &BucketName,
    ) -> Result<()> {
        let checked = self.named_version(who, source, bucket).await.map(drop);
        checked.map_err(|error| match error {
            missing @ BackendError::NoSuchBucket => missing.on(CopySide::Target),
            error => error.on(CopySide::Source),
        })
    }

    async fn read(&self, cx: &Context, request: ReadRequest<'_>, body: bool) -> Result<ObjectRead> {
        let ReadRequest { object, selector, conditions, with_lock, check } = request;
        let who = self.who(cx)?;
        let version = self.named_version(&who, object, object.bucket).await?;
        let reading = ObjectReading {
            bucket: object.bucket.clone(),
            place: KeyPath::of(object.key.as_str()),
            version,
            selector,
            conditions: conditions.clone(),
            check: check.cloned(),
            body,
            with_lock,
        };
        self.store.check_place_of(object.bucket)?;
        // Where requests act as users, no object is in memory: the gateway would have read it.
        let (store, cache) = (&self.store, &self.caches.objects);
        match who.call(|| object::read_inline(store, cache, &reading).transpose()) {
            // To find out what is closed to the user may take waiting.
            Ok(None) | Err(BackendError::DeniedToUser { .. }) => {}
            Ok(Some(read)) => return Ok(read),
            Err(error) => return Err(missing(object, error)),
        }
        let whole = body && matches!(reading.selector, ReadSelector::Whole);
        let states = Arc::clone(&self.states);
        let read = move |store: &Store| {
            let ObjectReading { bucket, place, .. } = &reading;
            let current = reading.version.is_none().then_some((bucket, place));
            naming(store, (bucket, &place.path), || {
                object::read(store, &reading).map_err(|error| marked(store, &states, current, error))
            })
        };
        let read = self.run_in(object.bucket, who, read).await;
        let read = read.map_err(|error| missing(object, error))?;
        // What is read inline has a record.
        if let Some(rehash) =
            self.rehash.as_ref().filter(|_| whole && foreign::is_foreign(&read.attributes.etag))
        {
            rehash.met(object.bucket, object.key, read.attributes.size_bytes);
        }
        Ok(read)
    }
}

/// Turns the error for a missing key into that for a missing version, if the request names a
/// version.
fn missing(object: ObjectRef<'_>, error: BackendError) -> BackendError {
    match (object.version, error) {
        (VersionRef::Id(id), BackendError::NoSuchKey) => BackendError::NoSuchVersion(id.clone()),
        (_, error) => error,
    }
}

/// Turns the error for a missing key into that for a delete marker, if the request is about the
/// current version of a key, and that is one.
fn marked(
    store: &Store,
    states: &States,
    current: Option<(&BucketName, &KeyPath)>,
    error: BackendError,
) -> BackendError {
    let (BackendError::NoSuchKey, Some((bucket, place))) = (&error, current) else { return error };
    match states.versioning(bucket) {
        Ok(versioning) if versioning.is_set() => object::marker(store, bucket, place),
        Ok(_) => error,
        Err(error) => error,
    }
}

#[async_trait]
impl Backend for PosixBackend {
    async fn list_buckets(&self, cx: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        let query = query.clone();
        self.run(self.who(cx)?, move |store| buckets::list(store, &query)).await
    }

    async fn create_bucket(&self, cx: &Context, request: CreateBucketRequest<'_>) -> Result<()> {
        let CreateBucketRequest { name, owner, documents } = request;
        let initial = Initial { owner: owner.map(str::to_owned), documents };
        // DIR is the gateway's own. A requester who is nobody there gets no directory in it.
        self.who(cx)?;
        let new = NewBucket { name: name.clone(), account: self.owner_of_bucket(cx), initial };
        self.run_in(name, Who::Gateway, move |store| buckets::create(store, &new)).await
    }

    async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> Result<bool> {
        let (name, who) = (bucket.clone(), self.who(cx));
        let looks_as = who.as_ref().map_or(Who::Gateway, Who::clone);
        let look = move |store: &Store| {
            naming(store, (&name, ""), || {
                ask(store.bucket(&name)?.fd, ".", Access::EXEC_OK, "search the bucket's directory")
            })
        };
        match self.run_in(bucket, looks_as, look).await {
            // Which buckets exist is told to everybody.
            Err(BackendError::NoSuchBucket) => Ok(false),
            result => result.and(who).map(|_| true),
        }
    }

    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.states.known(bucket)
    }

    async fn load_bucket(&self, _: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        let (name, states) = (bucket.clone(), Arc::clone(&self.states));
        self.run_in(bucket, Who::Gateway, move |_| states.load(&name)).await
    }

    async fn bucket_document(
        &self,
        _: &Context,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>> {
        let name = bucket.clone();
        self.run_in(bucket, Who::Gateway, move |store| documents::document(store, &name, kind)).await
    }

    async fn change_bucket(&self, _: &Context, request: ChangeBucketRequest<'_>) -> Result<Arc<BucketState>> {
        let (states, change) = (Arc::clone(&self.states), Change::new(request));
        let name = change.name().clone();
        let work = move |store: &Store| {
            documents::change(store, &change)?;
            states.load(change.name())
        };
        self.run_in(&name, Who::Gateway, work).await
    }

    async fn delete_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<()> {
        let (name, who) = (bucket.clone(), self.who(cx)?);
        let delete = move |store: &Store| {
            let wanted = Access::WRITE_OK | Access::EXEC_OK;
            let asked = || ask(store.bucket(&name)?.fd, ".", wanted, "write to the bucket's directory");
            who.call(|| naming(store, (&name, ""), asked))?;
            // DIR is the gateway's own.
            buckets::delete_as(store, &name, &who)
        };
        self.run_in(bucket, Who::Gateway, delete).await
    }

    async fn head_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.read(cx, request, false).await
    }

    async fn get_object(&self, cx: &Context, request: ReadRequest<'_>) -> Result<ObjectRead> {
        self.read(cx, request, true).await
    }

    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        let PutRequest { object, options, check } = request;
        let who = self.who(cx)?;
        self.store.check_place_of(object.bucket)?;
        let WriteOptions { metadata, tags, lock, conditions, size_hint } = options;
        let target = Target { lock, ..self.target(cx, object, &conditions, check) };
        let nothing_to_check = !target.needs_facts() && !size_hint.is_some_and(object::is_much);
        let is_here = matches!(who, Who::Gateway) && self.store.has_bucket_inline(&target.bucket);
        if !(nothing_to_check && is_here) {
            let target = target.clone();
            let begin = move |store: &Store| {
                let begun = naming(store, target.name(), || object::begin(store, &target, size_hint));
                begun.map_err(|error| error.of_write(&target.conditions))
            };
            self.run_in(object.bucket, who.clone(), begin).await?;
        }
        let destination = Arc::new(NewObject { target, metadata, tags });
        Ok(Box::new(Writer::new(Arc::clone(&self.store), who, destination, size_hint)))
    }

    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        let DeleteRequest { object, conditions, bypass_governance, check } = request;
        let who = self.who(cx)?;
        let named = self.named_version(&who, object, object.bucket).await?;
        let target = Target { bypass_governance, ..self.target(cx, object, conditions, check) };
        let caches = Arc::clone(&self.caches);
        let delete = move |store: &Store| {
            let delete = || object::delete_with(store, &caches.listing, &target, named);
            let deleted = naming(store, target.name(), delete);
            deleted.map_err(|error| error.of_write(&target.conditions))
        };
        self.run_in(object.bucket, who, delete).await
    }

    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        let CopyRequest {
            source,
            target,
            metadata,
            tags,
            lock,
            website_redirect_location,
            checksum_algorithm,
            conditions,
            check,
        } = request;
        let (bucket, who) = (target.bucket, self.who(cx)?);
        self.check_source_version(&who, source.object, bucket).await?;
        let copy = Copy {
            source: source.into(),
            target: Target { lock, ..self.target(cx, target, &conditions, check) },
            metadata,
            tags,
            website_redirect_location,
            checksum_algorithm,
        };
        let work = move |store: &Store, turn: &CopyTurn| {
            let work = || object::copy_object(store, &copy, DEFAULT_CHECKSUM, turn);
            let copied = naming(store, copy.target.name(), work);
            copied.map_err(|error| error.of_write(&copy.target.conditions))
        };
        self.run_copy(bucket, who, work).await
    }

    async fn object_tags(&self, cx: &Context, request: TagsRequest<'_>) -> Result<ObjectTags> {
        let TagsRequest { object, check } = request;
        let who = self.who(cx)?;
        let named = self.named_version(&who, object, object.bucket).await?;
        let states = Arc::clone(&self.states);
        let tagged = Tagged::new(object, named, check).under(Arc::clone(&states) as Arc<dyn Rules>);
        let read = move |store: &Store| {
            let marked = |error| marked(store, &states, tagged.current(), error);
            naming(store, tagged.name(), || object::tags(store, &tagged).map_err(marked))
        };
        let read = self.run_in(object.bucket, who, read).await;
        let (tags, version) = read.map_err(|error| missing(object, error))?;
        Ok(ObjectTags { tags, version })
    }

    async fn put_object_tags(&self, cx: &Context, request: PutTagsRequest<'_>) -> Result<TagsReceipt> {
        let PutTagsRequest { object, tags, check } = request;
        let who = self.who(cx)?;
        let named = self.named_version(&who, object, object.bucket).await?;
        let states = Arc::clone(&self.states);
        let tagged = Tagged::new(object, named, check).under(Arc::clone(&states) as Arc<dyn Rules>);
        let put = move |store: &Store| {
            let marked = |error| marked(store, &states, tagged.current(), error);
            naming(store, tagged.name(), || object::put_tags(store, &tagged, &tags).map_err(marked))
        };
        let put = self.run_in(object.bucket, who, put).await;
        let version = put.map_err(|error| missing(object, error))?;
        Ok(TagsReceipt { version })
    }

    async fn object_lock(&self, cx: &Context, request: LockRequest<'_>) -> Result<VersionLock> {
        let LockRequest { object, check } = request;
        let who = self.who(cx)?;
        let named = self.named_version(&who, object, object.bucket).await?;
        let target = self.target(cx, object, &Conditions::default(), check);
        let states = Arc::clone(&self.states);
        let read = move |store: &Store| {
            let current = named.is_none().then_some((&target.bucket, &target.place));
            let marked = |error| marked(store, &states, current, error);
            naming(store, target.name(), || object::lock_of(store, &target, named).map_err(marked))
        };
        let read = self.run_in(object.bucket, who, read).await;
        let (lock, version) = read.map_err(|error| missing(object, error))?;
        Ok(VersionLock { lock, version })
    }

    async fn put_object_lock(&self, cx: &Context, request: PutLockRequest<'_>) -> Result<LockReceipt> {
        let PutLockRequest { object, change, check } = request;
        let who = self.who(cx)?;
        let named = self.named_version(&who, object, object.bucket).await?;
        let target = self.target(cx, object, &Conditions::default(), check);
        let states = Arc::clone(&self.states);
        let put = move |store: &Store| {
            let current = named.is_none().then_some((&target.bucket, &target.place));
            let marked = |error| marked(store, &states, current, error);
            naming(store, target.name(), || object::put_lock(store, &target, named, change).map_err(marked))
        };
        let put = self.run_in(object.bucket, who, put).await;
        Ok(LockReceipt { version: put.map_err(|error| missing(object, error))? })
    }

    async fn list_objects(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<ListPage> {
        let page = listing::Query::of(query);
        let bucket = page.bucket.clone();
        // A long one must not go on for a client that has left.
        let waiting = blocking::Waiting::default();
        let abandoned = waiting.abandoned();
        let caches = Arc::clone(&self.caches);
        // For errors, which only users get.
        let who = self.who(cx)?;
        let top = match who {
            Who::Gateway => String::new(),
            Who::Requester(_) => {
                directory_path(page.prefix.rfind('/').map_or("", |slash| &page.prefix[..=slash]))
            }
        };
        let list = move |store: &Store| {
            let list = || listing::list_unless(store, &caches.listing, &page, &abandoned);
            naming(store, (&page.bucket, &top), list)
        };
        self.run_in(&bucket, who, list).await
    }

    async fn list_versions(&self, cx: &Context, query: &ListQuery<'_, ListPosition>) -> Result<VersionPage> {
        let (caches, states, asked) =
            (Arc::clone(&self.caches), Arc::clone(&self.states), listing::Query::of(query));
        let bucket = asked.bucket.clone();
        let waiting = blocking::Waiting::default();
        let abandoned = waiting.abandoned();
        let list = move |store: &Store| {
            let is_set = states.versioning(&asked.bucket)?.is_set();
            if let Some(ListPosition::AfterVersion { version, .. }) = &asked.start
                && is_set
                && Named::of(version).is_none()
            {
                return Err(BackendError::InvalidVersionId(version.clone()));
            }
            let list = || listing::list_versions(store, &caches.listing, &asked, &abandoned);
            is_set.then(list).transpose()
        };
        if let Some(page) = self.run_in(&bucket, self.who(cx)?, list).await? {
            return Ok(page);
        }
        let page = self.list_objects(cx, query).await?;
        let items = page.items.into_iter().map(|item| match item {
            ListItem::Object(object) => VersionItem::Object { object, is_latest: true },
            ListItem::CommonPrefix(prefix) => VersionItem::CommonPrefix(prefix),
        });
        Ok(VersionPage { items: items.collect(), next: page.next })
    }

    async fn create_upload(&self, cx: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        let CreateUploadRequest { object, upload } = request;
        let (bucket, key, states) = (object.bucket.clone(), object.key.clone(), Arc::clone(&self.states));
        let create = move |store: &Store| {
            let keeps = states.versioning(&bucket)? == Versioning::Enabled;
            upload::begin(store, &bucket, &key, &upload, keeps.then(early_id))
        };
        self.run_in(object.bucket, self.who(cx)?, create).await
    }

    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        let PutPartRequest { upload, part_number, size_hint, checksum } = request;
        let (name, owner, who) = (UploadName::from(upload), self.owner(cx), self.who(cx)?);
        let own_assemblies = Arc::clone(&self.caches.own_assemblies);
        let open = move |store: &Store| {
            let opened = PartTarget::open(store, &own_assemblies, name, part_number, size_hint, owner)?;
            check_part_algorithm(opened.1, checksum)?;
            opened.0.check_space()?;
            Ok(opened)
        };
        let (target, chosen) = self.run_in(upload.object.bucket, who.clone(), open).await?;
        let version = target.version.clone();
        let writer = Writer::new(Arc::clone(&self.store), who, Arc::new(target), size_hint);
        Ok(PartWriter { writer: Box::new(writer), chosen, version })
    }

    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        let CopyPartRequest { source, range, upload, part_number } = request;
        let (bucket, who) = (upload.object.bucket, self.who(cx)?);
        self.check_source_version(&who, source.object, bucket).await?;
        let copy = CopyPart {
            source: source.into(),
            range,
            upload: UploadName::from(upload),
            number: part_number,
            owner: self.owner(cx),
        };
        let own_assemblies = Arc::clone(&self.caches.own_assemblies);
        let work = move |store: &Store, turn: &CopyTurn| {
            upload::copy_part(store, &own_assemblies, &copy, DEFAULT_CHECKSUM, turn)
        };
        self.run_copy(bucket, who, work).await
    }

    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        let CompleteRequest { upload, complete, check } = request;
        let complete = Complete {
            upload: UploadName::from(upload),
            target: self.target(cx, upload.object, &complete.conditions, check),
            request: complete,
            default: DEFAULT_CHECKSUM,
        };
        let work = move |store: &Store| {
            let completed = naming(store, complete.target.name(), || upload::complete(store, &complete));
            completed.map_err(|error| error.of_write(&complete.target.conditions))
        };
        self.run_in(upload.object.bucket, self.who(cx)?, work).await
    }

    async fn abort_upload(&self, cx: &Context, request: AbortRequest<'_>) -> Result<AbortReceipt> {
        let AbortRequest { upload, if_initiated } = request;
        let name = UploadName::from(upload);
        let abort = move |store: &Store| upload::abort(store, &name, if_initiated);
        self.run_in(upload.object.bucket, self.who(cx)?, abort).await
    }

    async fn list_parts(&self, cx: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        let ListPartsQuery { upload, after, max_parts } = query;
        let name = UploadName::from(upload);
        let list = move |store: &Store| upload::list_parts(store, &name, after, max_parts);
        self.run_in(upload.object.bucket, self.who(cx)?, list).await
    }

    async fn list_uploads(&self, cx: &Context, query: &ListQuery<'_, UploadPosition>) -> Result<UploadPage> {
        let asked = listing::Query::of(query);
        let (bucket, caches) = (asked.bucket.clone(), Arc::clone(&self.caches));
        let list = move |store: &Store| upload::list_uploads(store, &caches.uploads, &asked);
        self.run_in(&bucket, self.who(cx)?, list).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        Some(self)
    }

    async fn statistics(&self) -> Statistics {
        let caches = vec![self.caches.objects.statistics(), self.caches.listing.statistics()];
        let unread = self.store.unread.load(Relaxed);
        let mut statistics = Statistics { caches, unread, ..Statistics::default() };
        volumes::add_statistics(&self.volumes, &mut statistics).await;
        statistics
    }

    async fn ready(&self) -> std::result::Result<(), String> {
        self.store.presence.check().map_err(|error| error.to_string())?;
        volumes::ready(&self.volumes).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            writes: true,
            digests: true,
            etag: self.store.options.etag,
            default_checksum: DEFAULT_CHECKSUM,
            freshness: self.states.freshness(),
        }
    }
}

#[async_trait]
impl Maintenance for PosixBackend {
    async fn all_buckets(&self, query: &ListBucketsQuery) -> Result<BucketPage> {
        let query = query.clone();
        self.run(Who::Gateway, move |store| buckets::list(store, &query)).await
    }

    async fn sweep(&self, _: &Context, bucket: &BucketName) -> Result<SweepReport> {
        self.sweep_with(bucket, self.store.options.sweep.clone()).await
    }

    async fn sweep_orphans(&self, _: &Context) -> Result<SweepReport> {
        let options = self.store.options.sweep.clone();
        let work = move |store: &Store| {
            store.measure_clocks();
            // What was not served for a day has to be told that this was so.
            lock_time::now(store)?;
            store.devices.forget();
            buckets::sweep_asides(store, &options)
        };
        self.run(Who::Gateway, work).await
    }
}

#[cfg(test)]
mod tests {
    use backend::{Documents, ObjectRef};
    use s3_types::ObjectKey;

    use super::*;
    use crate::testing::fixture;

    /// A body is not asked for while the path of the tree leads elsewhere, although the directory
    /// that was opened still has the bucket.
    #[tokio::test]
    async fn a_put_does_not_begin_where_nobody_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (root, aside) = (folder.path().join("root"), folder.path().join("aside"));
        std::fs::create_dir(&root).unwrap();
        let tree = PosixBackend::open(&root, fixture::options()).unwrap();
        let (cx, name, key) =
            (Context::default(), BucketName::new("bucket").unwrap(), ObjectKey::new("key").unwrap());
        let new = CreateBucketRequest { name: &name, owner: None, documents: Documents::new() };
        tree.create_bucket(&cx, new).await.unwrap();
        let put = || {
            let (object, options) = (ObjectRef::current(&name, &key), WriteOptions::default());
            tree.put_object(&cx, PutRequest { object, options, check: None })
        };
        assert!(put().await.is_ok());
        std::fs::rename(&root, &aside).unwrap();
        tree.store.look_after();
        assert!(matches!(put().await.err(), Some(BackendError::Unavailable(_))));
        std::fs::rename(&aside, &root).unwrap();
        tree.store.look_after();
        assert!(put().await.is_ok());
    }
}
