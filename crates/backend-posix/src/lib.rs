//! Objects as files: a [`Backend`](backend::Backend) on a directory tree.
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
//!     iam/NAME.json                documents of identities (`tree_documents`)
//!     locked/BUCKET/a/b.txt/       object locks of the versions of a/b.txt (`facts::object_lock`)
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
//!       versions/a/b.txt/          old versions and delete markers of a/b.txt (`facts::chain`)
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
//!   `linkat` succeeds only if the name is free, which no lock holder counts on. It takes the lock
//!   all the same where versions are kept ([`keep`](write::keep)), for a condition that needs an
//!   object or a check, where its record has an overflow file or is in a file itself
//!   ([`records`]), and where the file system may lack `RENAME_EXCHANGE`
//!   ([`conversion`](write::conversion)).
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
//!   same. It names the path of the original, so that the copy leaves it when it is replaced or
//!   deleted, but the original takes it along (and the copy keeps its ETag and checksum, and loses
//!   metadata and parts).
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
//! operations), [`maintenance`] (the sweep), [`tools`] (what an operator runs on a tree). Beside
//! these, [`tree_documents`] (identities) names only [`tree`] and what is before it.

#![forbid(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links, reason = "these pages are for those who work on the crate")]

// For what unit tests share with those in `tests`.
#[cfg(test)]
extern crate self as backend_posix;

mod base;
mod blocking;
mod buckets;
mod caches;
mod calls;
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
mod tree_documents;
mod upload;
mod volume;
mod volumes;
mod write;

use std::path::Path;
use std::sync::Arc;

use backend::{BackendError, Result, SweepReport};
use s3_types::BucketName;

use crate::base::turns::CopyTurn;
use crate::base::who::Who;
use crate::buckets::documents::States;
use crate::caches::Caches;
use crate::maintenance::sweep;
use crate::tree::presence::{self, Watch};
use crate::tree::store::Store;
use crate::volumes::Volumes;

pub use base::options::{AccessPattern, Durability, Metadata, Options, SweepOptions, Symlinks};
pub use base::quotas::Quotas;
pub use fs::file_info::FileStamp;
pub use fs::files::open_plain_file;
pub use limits::{BUCKET_THREADS_MAX, LOCK_WAITERS_OF_ALL, TREE_THREADS_MAX, VOLUMES_THREADS_MAX};
pub use tree::store::OpenError;
pub use tree::{format, serving};
pub use tree_documents::{DocumentTag, DocumentsMark, ReplaceError, TreeDocuments};

/// The work of the thread that watches whether the tree is still at its path.
const WATCH: Watch<States> = Watch {
    look: |states| {
        let Store { presence, unmounted, devices, root, .. } = &*states.store;
        presence.look(root);
        if presence.mounts_have_changed() {
            devices.forget();
            unmounted.look(root, presence);
        }
    },
    look_after: |states| {
        states.store.look_after();
        states.look_after();
    },
};

/// A directory tree as a [`Backend`](backend::Backend). Its sweep is safe at any time, also while
/// requests are served.
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
        if store.options.impersonate {
            buckets::try_impersonation(&store, root)?;
        }
        let rehash = rehash_on_read.then(start).transpose().map_err(|e| OpenError::no_thread(root, e))?;
        Ok(Self { rehash, ..Self::watched(store, root)? })
    }

    /// Opens a tree as [`PosixBackend::open`] does, without write access: the backend itself writes
    /// nothing to the tree, and calls that take a lock fail as on a read-only file system. At the
    /// start, it only tries whether the tree can be read. It is to be wrapped in a
    /// [`backend::ReadOnly`].
    pub fn open_to_read(root: &Path, options: Options) -> Result<Self, OpenError> {
        Self::watched(Arc::new(Store::attach(root, options)?), root)
    }

    /// Opens a tree as [`PosixBackend::open`] does, for a command that root may run on a tree which
    /// another user serves. Files that the command makes for the gateway belong to the owner of the
    /// tree, and at the start it only tries whether objects can be kept there.
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

    /// Returns the entries directly under the root that are not served as buckets: files, symbolic
    /// links, and directories whose names are not bucket names.
    pub async fn unserved(&self) -> Result<Vec<String>> {
        self.run(Who::Gateway, buckets::unserved).await
    }

    /// Does the same as [`Maintenance::sweep`](backend::Maintenance::sweep) with other options than
    /// the tree's.
    pub async fn sweep_with(&self, bucket: &BucketName, options: SweepOptions) -> Result<SweepReport> {
        let name = bucket.clone();
        self.run_in(bucket, Who::Gateway, move |store| sweep::sweep(store, &name, &options)).await
    }

    /// Runs work on the tree.
    async fn run<T: Send + 'static>(
        &self,
        who: Who,
        work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.store.presence.check()?;
        let store = Arc::clone(&self.store);
        let turns = self.store.options.quotas.turns(None);
        let work = move || who.call(|| work(&store).map_err(|error| store.explain(error)));
        blocking::run(turns, work).await
    }

    /// Runs a copy into a bucket. If the copy is long and has to wait for its turn, it is run again
    /// once it has its turn.
    async fn run_copy<T: Send + 'static>(
        &self,
        bucket: &BucketName,
        who: Who,
        work: impl Fn(&Store, &CopyTurn) -> Result<T> + Send + Sync + 'static,
    ) -> Result<T> {
        let (work, copies) = (Arc::new(work), self.store.options.quotas.copies(bucket));
        // The thread gives the turn up, not who waits for it and may go away.
        let run = |turn: &Arc<CopyTurn>| {
            let (work, turn) = (Arc::clone(&work), Arc::clone(turn));
            self.run_in(bucket, who.clone(), move |store| work(store, &turn))
        };
        let turn = Arc::new(copies.begin());
        let result = run(&turn).await;
        if !turn.was_missed() {
            return result;
        }
        let waited = copies.wait().await;
        let turn =
            waited.ok_or(BackendError::OutOf("too many long copies into the bucket are in progress"))?;
        run(&Arc::new(turn)).await
    }

    /// Runs work on a bucket, whose file calls are made as `who`.
    async fn run_in<T: Send + 'static>(
        &self,
        bucket: &BucketName,
        who: Who,
        work: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.store.check_place_of(bucket)?;
        let store = Arc::clone(&self.store);
        let turns = self.store.options.quotas.turns(Some(bucket));
        let work = move || who.call(|| work(&store).map_err(|error| store.explain(error)));
        blocking::run(turns, work).await
    }
}
