//! Objects as files: a [`Backend`] on a directory tree.
//!
//! The object `a/b.txt` of a bucket is the regular file `ROOT/bucket/a/b.txt`, whoever made it.
//! What S3 knows beyond its bytes is one extended attribute of that file. There is no database and
//! no state in the process: any number of gateways serve one tree.
//!
//! # On disk
//! ```text
//! ROOT/
//!   .slipway/                      the gateway's own; `metadata` in it says that records are files
//!     buckets/BUCKET               the documents of a bucket that has some (`buckets::documents`)
//!   .slipway,deleting,...          uploads/ and locks/ of a bucket while DeleteBucket removes it, with a mark (`buckets/aside.rs`); a `.slipway` that is being made
//!   bucket/                        user.slipway: when it was created
//!     a/b.txt                      the object a/b.txt          user.slipway: its record
//!     a/                           user.slipway: made by a PUT, so that it goes with its last object
//!     both/.slipway,self           the object both, where both/... exist too
//!     dir/                         the object dir/, if its user.slipway says so
//!     dir/.slipway,dir             the bytes of the object dir/, if it has any
//!     a/.slipway,empty/c           the object a//c; see `layout::keymap` for the other escapes
//!     a/.slipway,records/b.txt     the record of a/b.txt, where there are no attributes (`records::sidecar`)
//!     .slipway/                    the bucket's own, made at its first need, reached by no key; user.slipway.own: that we made it
//!       .slipway,own               the same, where there are no attributes (`marks`)
//!       locks/00 .. locks/3f       locks on keys, by hash; locks/40: see `conversion`
//!       converting                 the last file that became a directory by steps, where there is no `RENAME_EXCHANGE`
//!       staging/                   files on their way to a name that is taken; notes of directories (`note`)
//!       staging/xID, nID           a file that is becoming a directory, and a note of it (`exchange`)
//!       scattered/HASH             where else things are staged: in directories that are mounted inside the bucket, or leave a group or an ACL
//!       overflow/ID                records that do not fit an attribute
//!       uploads/ID/upload, /00001  uploads in progress: what was asked for, and the parts
//!       uploads/ID/assembly1       parts that are in their place already; see [`upload`]
//!       completed/ID               receipts of completed uploads
//! ```
//!
//! # A PUT, call by call
//! The bucket is looked for before the body, without waiting if it is cached (on the pool if 1 MiB
//! or more are announced, which are compared with the free space), and opened after it: it may have
//! been renamed meanwhile. A body of up to 256 KiB is kept in memory, so that the rest is one hop
//! to the blocking pool:
//! ```text
//! openat2(root, "bucket")                    the bucket, beneath which the rest is resolved
//! openat2(bucket, "a")                       the key's directory (made and marked if it is missing)
//! openat(a, ".", O_TMPFILE)                  a file without a name: a crash leaves nothing
//! pwritev, fstat                             the bytes, and the stamp that ties the record to them
//! fsetxattr("user.slipway")                  the record
//! sync_file_range, or fsync                  unless durability is `None`; the former where the journal keeps the order (decision 0014)
//! linkat(-> "b.txt")                         a new key is published; done but for:
//! fsync(a)                                   if durability is `Full`
//! ```
//! Where `linkat` says EEXIST, the key is replaced under its lock:
//! ```text
//! openat2(".slipway/locks/2a"), flock, fstat, fstatat
//! lgetxattr("b.txt")                         what is there; conditions also open it and compare
//! openat2(".slipway/staging"), fstat         only if it looks like what we make (`tree::trust`)
//! linkat(-> ".slipway/staging/..."), renameat(-> "b.txt")
//! ```
//! A reader has the old file or the new one open, and each carries its own record. A larger body is
//! written to its nameless file in hops of a megabyte as it arrives, and takes the same last steps.
//!
//! # A part, call by call
//! Its upload is opened before its bytes. If its length is announced and fits the slots of the
//! upload's assembly, it is written there:
//! ```text
//! openat2("layout1"), fgetxattr              the size of a slot; the first part makes both files
//! flock(shared), fgetxattr                   unless the assembly is sealed
//! openat2("assembly1"), fstat
//! openat2("00007.1", O_CREAT | O_EXCL)       the claim: a slot has one writer
//! pwritev, each between flocks               the bytes
//! sync_file_range, or fsync                  unless durability is `None`; the former of these bytes alone, where the journal keeps the order
//! openat(O_TMPFILE), fsetxattr               the part's record; fsync, unless the journal keeps the order and the next one follows
//! linkat(-> "00007"), fsync
//! ```
//! Complete reads the parts' records, one call each, seals the assembly, and publishes it like any
//! other file.
//!
//! # Why it holds
//! - *Conditions are decided with the publish.* Whatever replaces or removes a name holds the key's
//!   lock, so what a condition was compared with is what is replaced. A create takes no lock:
//!   `linkat` succeeds only if the name is free, which no lock holder counts on. (Where the file
//!   system may lack `RENAME_EXCHANGE`, or records are in files, it takes the lock:
//!   [`conversion`](write::conversion), [`records`].)
//! - *Directories may go at any time.* The kernel refuses to make a name in a directory that was
//!   removed, and to remove one that has a name in it. Whoever loses that race starts over
//!   (`error::retrying`).
//! - *`a` and `a/b`.* A name is a file or a directory, so the object `a` is `a` or
//!   `a/.slipway,self`, never both. A directory with the file in it is prepared in staging and
//!   takes the file's place by `RENAME_EXCHANGE`; what comes out is looked at before it goes, since
//!   another program may have renamed a newer file there ([`exchange`](write::exchange)). It
//!   stays as it is when the last `a/...` goes: turning it back would win nothing but a shorter
//!   path.
//! - *One lock at a time.* No operation waits for a lock while it has one, except DeleteBucket and
//!   the search for lost companions, which take all in order, whoever turns a file into a directory
//!   by steps ([`conversion`](write::conversion)), and CompleteMultipartUpload, which has its
//!   upload's. For that one another Complete or an Abort waits, with a limit, while it has no
//!   other. Writers of parts share a lock that they never wait for, and Complete waits for it for a
//!   moment.
//! - *No one writes to an object.* An assembly is sealed before it is published. Whoever writes to
//!   it holds a lock that excludes the sealing, and looks for the seal first (decision 0007).
//!
//! # What it can't do
//! - Tell two foreign writes apart that leave size and mtime as they were; on a file system with
//!   coarse timestamps, that is any edit of the same length within its granularity. Nor can it tell
//!   that a program is in the middle of one `write` call.
//! - Undo the directories of a PUT that a crash interrupted before it marked them, where there was
//!   no room for a note of them: they stay, empty, as if made by a person.
//! - Tell a copy by `cp -a` from its original: where the record has a companion, both name the
//!   same, and whichever is replaced or deleted first takes it from the other (which keeps its ETag
//!   and checksum, and loses metadata and parts).
//! - Flush for a PUT the directory that another PUT has made a moment before, and not flushed yet.
//!   On ext4, XFS and btrfs the flush of what is in that directory has its name on disk, too; a
//!   file system that promises no more than POSIX could lose both to a power cut.
//! - Keep other programs from a name between the look at it and its replacement or removal: a file
//!   that they rename there in those microseconds is replaced or deleted as if it had come just
//!   before, and conditions were not asked about it.
//! - Avoid opening a FIFO or device that takes a file's place in the very moment between two calls
//!   of a GET. It is opened without waiting and closed again. Otherwise only files and directories
//!   are ever opened (decision 0010).
//!
//! # Modules
//! From the ground up, each naming only those before it (decision 0036): [`limits`] and [`base`]
//! (options, unique names), [`error`], [`layout`] (every name on disk, and keys to paths), [`fs`]
//! (system calls), [`volume`] (what a file system is like), [`record`] (what a record says, and its
//! attribute), [`tree`] (the root, buckets, trust, locks), [`records`] (where records are kept),
//! [`facts`] (what is known of an object that is there), [`mod@write`] (staging, directories,
//! publishing, what crashes leave), [`listing`], [`object`], [`upload`] and [`buckets`] (S3's
//! operations), [`maintenance`] (the sweep), [`tools`] (what an operator runs on a tree).

#![forbid(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links, reason = "these pages are for those who work on the crate")]

// For what unit tests share with those in `tests`.
#[cfg(test)]
extern crate self as backend_posix;

mod base;
mod blocking;
mod buckets;
mod caches;
mod error;
mod facts;
mod fs;
mod layout;
mod limits;
mod listing;
mod maintenance;
mod object;
mod record;
mod records;
#[cfg(test)]
mod testing;
pub mod tools;
mod tree;
mod upload;
mod volume;
mod volumes;
mod write;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use backend::{
    AbortRequest, Backend, BackendError, BucketPage, BucketState, Capabilities, ChangeBucketRequest,
    CompleteRequest, Context, Copied, CopyPartRequest, CopyRequest, CopySide, CreateBucketRequest,
    CreateUploadRequest, DeleteReceipt, DeleteRequest, DocumentKind, ListBucketsQuery, ListObjectsQuery,
    ListPage, ListPartsQuery, ListUploadsQuery, Maintenance, ObjectRead, ObjectRef, ObjectWriter, PartPage,
    PartReceipt, PartWriter, PutPartRequest, PutRequest, ReadSelector, Result, Statistics, SweepReport,
    UploadPage, UploadReceipt, VersionRef, WriteReceipt, check_only_version, check_part_algorithm,
};
use bytes::Bytes;
use s3_types::{BucketName, Conditions, UnixAccount};

use crate::base::options::DEFAULT_CHECKSUM;
use crate::buckets::NewBucket;
use crate::buckets::documents::{self, Change, Initial, States};
use crate::caches::Caches;
use crate::facts::foreign;
use crate::layout::keymap::ObjectPath;
use crate::maintenance::sweep;
use crate::object::{Copy, NewObject, ReadRequest, Writer};
use crate::tree::presence::{self, Watch};
use crate::tree::store::Store;
use crate::upload::{Complete, CopyPart, PartTarget, UploadName, UploadsQuery};
use crate::volumes::Volumes;
use crate::write::publish::Target;

pub use base::options::{AccessPattern, Durability, Metadata, Options, SweepOptions, Symlinks};
pub use base::quotas::Quotas;
pub use fs::file_info::FileStamp;
pub use fs::files::open_plain_file;
pub use limits::{BUCKET_THREADS_MAX, LOCK_WAITERS_OF_ALL, TREE_THREADS_MAX, VOLUMES_THREADS_MAX};
pub use tree::format;
pub use tree::store::OpenError;

/// The work of the thread that watches whether the tree is still there.
const WATCH: Watch<States> = Watch {
    look: |states| {
        let Store { presence, devices, root, .. } = &*states.store;
        presence.look(root);
        if presence.mounts_have_changed() {
            devices.forget();
        }
    },
    look_after: |states| {
        states.store.look_after();
        states.look_after();
    },
};

/// A directory tree as a [`Backend`]. Its sweep is safe at any time, on a live tree.
#[derive(Debug, Clone)]
pub struct PosixBackend {
    store: Arc<Store>,
    states: Arc<States>,
    caches: Arc<Caches>,
    volumes: Arc<Volumes>,
    /// The queue of foreign files that were read and are to be rehashed, if the options say so.
    rehash: Option<Arc<tools::LazyRehash>>,
}

impl PosixBackend {
    /// Opens the tree at `root`. Fails if the directory can't be opened, or if its file system
    /// keeps no user extended attributes and records are not to be in files
    /// ([`Metadata::Sidecar`]).
    pub fn open(root: &Path, options: Options) -> Result<Self, OpenError> {
        let rehash_on_read = options.rehash_on_read;
        let store = Arc::new(buckets::try_root(Store::open(root, options)?, root)?);
        let start = || tools::LazyRehash::start(Arc::clone(&store)).map(Arc::new);
        volumes::try_mounted(&store);
        let rehash = rehash_on_read.then(start).transpose().map_err(|e| OpenError::no_thread(root, e))?;
        Ok(Self { rehash, ..Self::watched(store, root)? })
    }

    /// [`PosixBackend::open`] without write access: the backend itself writes nothing to the tree,
    /// and calls that take a lock fail as on a read-only file system. At the start, it only tries
    /// whether the tree can be read. To be wrapped in a [`backend::ReadOnly`].
    pub fn open_to_read(root: &Path, options: Options) -> Result<Self, OpenError> {
        Self::watched(Arc::new(Store::attach(root, options)?), root)
    }

    /// [`PosixBackend::open`] for a command that root may run on a tree which another user serves:
    /// files that it makes for the gateway belong to the owner of the tree, and at the start it
    /// only tries whether objects can be kept there.
    pub fn open_as_tool(root: &Path, options: Options) -> Result<Self, OpenError> {
        Ok(Self::of(Arc::new(Store::open_as_tool(root, options)?)))
    }

    fn watched(store: Arc<Store>, root: &Path) -> Result<Self, OpenError> {
        let tree = Self::of(store);
        presence::watch(&tree.states, WATCH).map_err(|e| OpenError::no_thread(root, e))?;
        Ok(tree)
    }

    fn of(store: Arc<Store>) -> Self {
        let states = Arc::new(States::new(Arc::clone(&store)));
        let caches = Arc::new(Caches::new(&store.options));
        let volumes = Arc::new(Volumes::new(Arc::clone(&store)));
        Self { store, states, caches, volumes, rehash: None }
    }

    /// The entries directly under the root that are not served as buckets: files, symbolic links,
    /// and directories whose names are not bucket names.
    pub async fn unserved(&self) -> Result<Vec<String>> {
        self.run(buckets::unserved).await
    }

    /// [`Maintenance::sweep`] with other options than the tree's.
    pub async fn sweep_with(&self, bucket: &BucketName, options: SweepOptions) -> Result<SweepReport> {
        let name = bucket.clone();
        self.run_in(bucket, move |store| sweep::sweep(store, &name, &options)).await
    }

    /// Runs work on the tree.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.store.presence.check()?;
        let store = Arc::clone(&self.store);
        let turns = self.store.options.quotas.turns(None);
        blocking::run(turns, move || work(&store).map_err(|error| store.explain(error))).await
    }

    /// Runs work on a bucket.
    async fn run_in<T: Send + 'static>(
        &self,
        bucket: &BucketName,
        work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.store.presence.check()?;
        let store = Arc::clone(&self.store);
        let turns = self.store.options.quotas.turns(Some(bucket));
        blocking::run(turns, move || work(&store).map_err(|error| store.explain(error))).await
    }

    /// The owner of new files; `None` for the gateway's own user.
    fn owner(&self, cx: &Context) -> Option<UnixAccount> {
        cx.unix_account().filter(|_| self.store.options.chown)
    }

    fn target(&self, cx: &Context, object: ObjectRef<'_>, conditions: &Conditions) -> Target {
        Target {
            bucket: object.bucket.clone(),
            place: ObjectPath::of(object.key.as_str()),
            conditions: conditions.clone(),
            predecessor: None,
            owner: self.owner(cx),
        }
    }

    /// Refuses a version id that no version here can have. A missing bucket is reported first.
    async fn check_version(&self, object: ObjectRef<'_>, bucket: &BucketName) -> Result<()> {
        let Err(error) = check_only_version(object) else { return Ok(()) };
        let name = bucket.clone();
        self.run_in(bucket, move |store| store.bucket(&name).map(drop)).await?;
        Err(error)
    }

    /// [`PosixBackend::check_version`] of a copy's source, whose target is in `bucket`.
    async fn check_source_version(&self, source: ObjectRef<'_>, bucket: &BucketName) -> Result<()> {
        let checked = self.check_version(source, bucket).await;
        checked.map_err(|error| match error {
            missing @ BackendError::NoSuchBucket => missing.on(CopySide::Target),
            error => error.on(CopySide::Source),
        })
    }

    async fn read(&self, request: backend::ReadRequest<'_>, body: bool) -> Result<ObjectRead> {
        let backend::ReadRequest { object, selector, conditions } = request;
        self.check_version(object, object.bucket).await?;
        let request = ReadRequest {
            bucket: object.bucket.clone(),
            key: object.key.as_str().to_owned(),
            place: ObjectPath::of(object.key.as_str()),
            selector,
            conditions: conditions.clone(),
            body,
        };
        self.store.presence.check()?;
        if let Some(result) = object::read_inline(&self.store, &self.caches.objects, &request) {
            return result.map_err(|error| missing(object, error));
        }
        let whole = body && matches!(request.selector, ReadSelector::Whole);
        let read = self.run_in(object.bucket, move |store| object::read(store, &request)).await;
        let read = read.map_err(|error| missing(object, error))?;
        // What is read inline has a record.
        if let Some(rehash) =
            self.rehash.as_ref().filter(|_| whole && foreign::is_foreign(&read.attributes.etag))
        {
            rehash.met(object.bucket, object.key.as_str(), read.attributes.size_bytes);
        }
        Ok(read)
    }
}

/// Turns a missing key into a missing version, where one was asked for.
fn missing(object: ObjectRef<'_>, error: BackendError) -> BackendError {
    match (object.version, error) {
        (VersionRef::Id(id), BackendError::NoSuchKey) => BackendError::NoSuchVersion(id.clone()),
        (_, error) => error,
    }
}

#[async_trait]
impl Backend for PosixBackend {
    async fn list_buckets(&self, _: &Context, query: &ListBucketsQuery) -> Result<BucketPage> {
        let query = query.clone();
        self.run(move |store| buckets::list(store, &query)).await
    }

    async fn create_bucket(&self, cx: &Context, request: CreateBucketRequest<'_>) -> Result<()> {
        let CreateBucketRequest { name, owner, documents } = request;
        let initial = Initial { owner: owner.map(str::to_owned), documents };
        let new = NewBucket { name: name.clone(), account: self.owner(cx), initial };
        self.run_in(name, move |store| buckets::create(store, &new)).await
    }

    async fn bucket_exists(&self, _: &Context, bucket: &BucketName) -> Result<bool> {
        let name = bucket.clone();
        match self.run_in(bucket, move |store| store.bucket(&name).map(drop)).await {
            Err(BackendError::NoSuchBucket) => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.states.known(bucket)
    }

    async fn load_bucket(&self, _: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        let (name, states) = (bucket.clone(), Arc::clone(&self.states));
        self.run_in(bucket, move |_| states.load(&name)).await
    }

    async fn bucket_document(
        &self,
        _: &Context,
        bucket: &BucketName,
        kind: DocumentKind,
    ) -> Result<Option<Bytes>> {
        let name = bucket.clone();
        self.run_in(bucket, move |store| documents::document(store, &name, kind)).await
    }

    async fn change_bucket(&self, _: &Context, request: ChangeBucketRequest<'_>) -> Result<Arc<BucketState>> {
        let ChangeBucketRequest { name, expected, changes } = request;
        let states = Arc::clone(&self.states);
        let change = Change { name: name.clone(), expected: expected.clone(), changes: changes.clone() };
        let work = move |store: &Store| {
            documents::change(store, &change)?;
            states.load(&change.name)
        };
        self.run_in(name, work).await
    }

    async fn delete_bucket(&self, _: &Context, bucket: &BucketName) -> Result<()> {
        let name = bucket.clone();
        self.run_in(bucket, move |store| buckets::delete(store, &name)).await
    }

    async fn head_object(&self, _: &Context, request: backend::ReadRequest<'_>) -> Result<ObjectRead> {
        self.read(request, false).await
    }

    async fn get_object(&self, _: &Context, request: backend::ReadRequest<'_>) -> Result<ObjectRead> {
        self.read(request, true).await
    }

    async fn put_object(&self, cx: &Context, request: PutRequest<'_>) -> Result<Box<dyn ObjectWriter>> {
        self.store.presence.check()?;
        let PutRequest { object, options } = request;
        let target = self.target(cx, object, &options.conditions);
        let nothing_to_check =
            options.conditions.is_empty() && !options.size_hint.is_some_and(object::is_much);
        if !(nothing_to_check && self.store.has_bucket_inline(&target.bucket)) {
            let (target, key, announced) = (target.clone(), object.key.clone(), options.size_hint);
            let begin = move |store: &Store| {
                let begun = object::begin(store, &target, key.as_str(), announced);
                begun.map_err(|error| error.of_write(&target.conditions))
            };
            self.run_in(object.bucket, begin).await?;
        }
        let destination = Arc::new(NewObject { target, metadata: options.metadata });
        Ok(Box::new(Writer::new(Arc::clone(&self.store), destination, options.size_hint)))
    }

    async fn delete_object(&self, cx: &Context, request: DeleteRequest<'_>) -> Result<DeleteReceipt> {
        self.check_version(request.object, request.object.bucket).await?;
        let target = self.target(cx, request.object, request.conditions);
        let delete = move |store: &Store| {
            object::delete(store, &target).map_err(|error| error.of_write(&target.conditions))
        };
        self.run_in(request.object.bucket, delete).await
    }

    async fn copy_object(&self, cx: &Context, request: CopyRequest<'_>) -> Result<Copied<WriteReceipt>> {
        self.check_source_version(request.source.object, request.target.bucket).await?;
        let copy = Copy {
            source: request.source.into(),
            target: self.target(cx, request.target, &request.conditions),
            target_key: request.target.key.as_str().to_owned(),
            metadata: request.metadata,
            website_redirect_location: request.website_redirect_location,
            checksum_algorithm: request.checksum_algorithm,
        };
        let work = move |store: &Store| {
            let copied = object::copy_object(store, &copy, DEFAULT_CHECKSUM);
            copied.map(Copied::plain).map_err(|error| error.of_write(&copy.target.conditions))
        };
        self.run_in(request.target.bucket, work).await
    }

    async fn list_objects(&self, _: &Context, query: &ListObjectsQuery<'_>) -> Result<ListPage> {
        let bucket = query.bucket;
        let query = listing::Query {
            bucket: query.bucket.clone(),
            prefix: query.prefix.to_owned(),
            delimiter: query.delimiter.map(str::to_owned),
            start: query.start.cloned(),
            max_items: query.max_items,
        };
        // A long one must not go on for a client that has left.
        let waiting = blocking::Waiting::default();
        let abandoned = waiting.abandoned();
        let caches = Arc::clone(&self.caches);
        let list = move |store: &Store| listing::list_unless(store, &caches.listing, &query, &abandoned);
        self.run_in(bucket, list).await
    }

    async fn create_upload(&self, _: &Context, request: CreateUploadRequest<'_>) -> Result<UploadReceipt> {
        let CreateUploadRequest { object, upload } = request;
        let (bucket, key) = (object.bucket.clone(), object.key.clone());
        let create = move |store: &Store| upload::create(store, &bucket, key.as_str(), &upload);
        self.run_in(object.bucket, create).await.map(|id| UploadReceipt { id })
    }

    async fn put_part(&self, cx: &Context, request: PutPartRequest<'_>) -> Result<PartWriter> {
        let PutPartRequest { upload, part_number, size_hint, checksum } = request;
        let (name, owner) = (UploadName::from(upload), self.owner(cx));
        let founded = Arc::clone(&self.caches.founded);
        let open = move |store: &Store| {
            let opened = PartTarget::open(store, &founded, name, part_number, size_hint, owner)?;
            check_part_algorithm(opened.1, checksum)?;
            opened.0.check_space()?;
            Ok(opened)
        };
        let (target, chosen) = self.run_in(upload.object.bucket, open).await?;
        let writer = Writer::new(Arc::clone(&self.store), Arc::new(target), size_hint);
        Ok(PartWriter { writer: Box::new(writer), chosen })
    }

    async fn copy_part(&self, cx: &Context, request: CopyPartRequest<'_>) -> Result<Copied<PartReceipt>> {
        self.check_source_version(request.source.object, request.upload.object.bucket).await?;
        let copy = CopyPart {
            source: request.source.into(),
            range: request.range,
            upload: UploadName::from(request.upload),
            number: request.part_number,
            owner: self.owner(cx),
        };
        let founded = Arc::clone(&self.caches.founded);
        let work = move |store: &Store| upload::copy_part(store, &founded, &copy, DEFAULT_CHECKSUM);
        self.run_in(request.upload.object.bucket, work).await.map(Copied::plain)
    }

    async fn complete_upload(&self, cx: &Context, request: CompleteRequest<'_>) -> Result<WriteReceipt> {
        let CompleteRequest { upload, complete } = request;
        let complete = Complete {
            upload: UploadName::from(upload),
            target: self.target(cx, upload.object, &complete.conditions),
            request: complete,
            default: DEFAULT_CHECKSUM,
        };
        let work = move |store: &Store| {
            upload::complete(store, &complete).map_err(|error| error.of_write(&complete.target.conditions))
        };
        self.run_in(upload.object.bucket, work).await
    }

    async fn abort_upload(&self, _: &Context, request: AbortRequest<'_>) -> Result<()> {
        let (name, if_initiated) = (UploadName::from(request.upload), request.if_initiated);
        let abort = move |store: &Store| upload::abort(store, &name, if_initiated);
        self.run_in(request.upload.object.bucket, abort).await
    }

    async fn list_parts(&self, _: &Context, query: ListPartsQuery<'_>) -> Result<PartPage> {
        let (name, after, max_parts) = (UploadName::from(query.upload), query.after, query.max_parts);
        let list = move |store: &Store| upload::list_parts(store, &name, after, max_parts);
        self.run_in(query.upload.object.bucket, list).await
    }

    async fn list_uploads(&self, _: &Context, query: &ListUploadsQuery<'_>) -> Result<UploadPage> {
        let query = UploadsQuery {
            bucket: query.bucket.clone(),
            prefix: query.prefix.to_owned(),
            delimiter: query.delimiter.map(str::to_owned),
            start: query.start.cloned(),
            max_items: query.max_items,
        };
        let bucket = query.bucket.clone();
        let caches = Arc::clone(&self.caches);
        self.run_in(&bucket, move |store| upload::list_uploads(store, &caches.uploads, &query)).await
    }

    fn maintenance(self: Arc<Self>) -> Option<Arc<dyn Maintenance>> {
        Some(self)
    }

    async fn statistics(&self) -> Statistics {
        let caches = vec![self.caches.objects.statistics(), self.caches.listing.statistics()];
        let mut statistics = Statistics { caches, ..Statistics::default() };
        volumes::tell(&self.volumes, &mut statistics).await;
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
    async fn sweep(&self, _: &Context, bucket: &BucketName) -> Result<SweepReport> {
        self.sweep_with(bucket, self.store.options.sweep.clone()).await
    }

    async fn sweep_orphans(&self, _: &Context) -> Result<SweepReport> {
        let options = self.store.options.sweep.clone();
        let work = move |store: &Store| {
            store.measure_clocks();
            store.devices.forget();
            buckets::sweep_asides(store, &options)
        };
        self.run(work).await
    }
}
