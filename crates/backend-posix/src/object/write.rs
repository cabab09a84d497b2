//! Writes objects and parts (PutObject and UploadPart).
//!
//! A small body is kept in memory and written in one hop to the blocking pool, at the commit. A
//! larger one is written to its staged file in hops of about 1 MiB, while the next bytes arrive; in
//! smaller ones while all bodies together hold much memory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use async_trait::async_trait;
use backend::{BackendError, ObjectWriter, Result, WriteReceipt};
use bytes::{Bytes, BytesMut};
use rustix::fd::AsFd;
use s3_types::{BucketName, Digests, ObjectMetadata, Tags};
use tokio::task::JoinHandle;

use super::open::{Opened, open};
use crate::base::quotas::Quotas;
use crate::base::who::Who;
use crate::blocking::{self, Share};
use crate::error::Op;
use crate::facts::place::{Current, Facts};
use crate::fs::file_info::{self, Stamp};
use crate::limits::{
    ANNOUNCED_BYTES_MIN, HELD_BYTES_MAX, HOP_BYTES, HOP_BYTES_MIN, SMALL_CHUNK_BYTES, WRITE_SMALL_BYTES_MAX,
};
use crate::record::{Attached, ObjectRecord, Version};
use crate::tree::closed::naming;
use crate::tree::store::Store;
use crate::write::publish::{Published, Stage, Target};
use crate::write::staging::Staged;

/// The object or part that a body becomes.
pub(crate) trait Destination: Send + Sync {
    /// Returns the bucket of the object or part.
    fn bucket(&self) -> &BucketName;

    /// Returns the bucket, and the path of the object, which a part will belong to.
    fn name(&self) -> (&BucketName, &str);

    /// Opens a staged file for the bytes.
    fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>>;

    /// True if an empty body needs no file.
    fn is_directory(&self) -> bool {
        false
    }

    /// Publishes the staged file. `stage` is `None` if there are no bytes.
    fn publish<'s>(&self, store: &'s Store, stage: Option<Stage<'s>>, digests: Digests) -> Result<Published>;

    /// Turns an error of the storage into the error that the caller gets.
    fn error_of_caller(&self, error: BackendError) -> BackendError {
        error
    }
}

/// An object that is being written.
pub(crate) struct NewObject {
    pub target: Target,
    pub metadata: ObjectMetadata,
    pub tags: Tags,
}

impl Destination for NewObject {
    fn bucket(&self) -> &BucketName {
        &self.target.bucket
    }

    fn name(&self) -> (&BucketName, &str) {
        self.target.name()
    }

    fn stage<'s>(&self, store: &'s Store) -> Result<Stage<'s>> {
        self.target.stage(store).map_err(|error| self.error_of_caller(error))
    }

    fn is_directory(&self) -> bool {
        self.target.place.directory
    }

    fn publish<'s>(&self, store: &'s Store, stage: Option<Stage<'s>>, digests: Digests) -> Result<Published> {
        let Self { target, metadata, tags } = self;
        let attached = Attached::requested(tags.clone());
        let version = target.new_version()?;
        let stage = match stage {
            // A version is a file.
            None if version.is_some() => Some(target.stage(store)?),
            stage => stage,
        };
        let Some(Stage { bucket, directory, staged }) = stage else {
            let now = target.publish_empty_directory(store, (digests, metadata.clone(), attached))?;
            return Ok(Stamp { size_bytes: 0, modified_ns: i128::from(now) }.into());
        };
        let record = ObjectRecord::of_bytes(digests, metadata.clone(), attached, version);
        let sealed = staged.seal_for_name(&bucket, target.owner, record)?;
        target.publish(bucket, directory, sealed)
    }

    fn error_of_caller(&self, error: BackendError) -> BackendError {
        error.of_write(&self.target.conditions)
    }
}

/// Continues with a file that was staged before.
fn reopen<'s>(store: &'s Store, bucket: &BucketName, staged: Staged) -> Result<Stage<'s>> {
    let bucket = store.bucket(bucket)?;
    Ok(Stage { bucket, directory: None, staged })
}

/// Publishes the staged file, with the digests of its bytes.
fn finish<'s>(
    destination: &dyn Destination,
    store: &'s Store,
    stage: Option<Stage<'s>>,
    digests: Digests,
) -> Result<WriteReceipt> {
    let published = destination.publish(store, stage, digests.clone());
    let Published { stamp, version } = published.map_err(|error| destination.error_of_caller(error))?;
    let Digests { etag, checksum } = digests;
    let last_modified = file_info::timestamp(stamp.modified_ns);
    Ok(WriteReceipt {
        etag,
        checksum,
        last_modified,
        size_bytes: stamp.size_bytes,
        version: version.and_then(Version::text),
    })
}

/// The number of bytes of a body that are held in memory. It is added to that of all other bodies.
struct HeldBytes {
    bytes: usize,
    quotas: Arc<Quotas>,
}

impl HeldBytes {
    fn nothing(quotas: &Arc<Quotas>) -> Self {
        Self { bytes: 0, quotas: Arc::clone(quotas) }
    }

    fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.quotas.held_bytes.fetch_add(bytes, Relaxed);
    }

    /// Moves the number of bytes that were counted so far to a new value.
    fn take(&mut self) -> Self {
        let nothing = Self::nothing(&self.quotas);
        std::mem::replace(self, nothing)
    }

    /// True if all bodies together hold much memory.
    fn is_much(&self) -> bool {
        self.quotas.held_bytes.load(Relaxed) > HELD_BYTES_MAX
    }

    /// Returns the number of bytes that one body may gather before they are written.
    fn limit(&self, hop: bool) -> usize {
        match hop {
            _ if self.is_much() => HOP_BYTES_MIN,
            true => HOP_BYTES,
            false => WRITE_SMALL_BYTES_MAX,
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.quotas.held_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// An [`ObjectWriter`] on the file system.
pub(crate) struct Writer {
    store: Arc<Store>,
    /// The identity that the writer's file calls are made with.
    who: Who,
    destination: Arc<dyn Destination>,
    size_hint: Option<u64>,
    chunks: Vec<Bytes>,
    /// Small chunks that were gathered.
    small: BytesMut,
    buffered: HeldBytes,
    written_bytes: u64,
    hop: Option<Hop>,
}

/// The staged file, and whether a thread writes to it at the moment.
enum Hop {
    /// A thread writes to the staged file, and returns it.
    Under(JoinHandle<Result<Staged>>),
    Done(Staged),
}

impl Writer {
    pub fn new(
        store: Arc<Store>,
        who: Who,
        destination: Arc<dyn Destination>,
        size_hint: Option<u64>,
    ) -> Self {
        let buffered = HeldBytes::nothing(&store.options.quotas);
        Self {
            store,
            who,
            destination,
            size_hint,
            chunks: Vec::new(),
            small: BytesMut::new(),
            buffered,
            written_bytes: 0,
            hop: None,
        }
    }

    fn buffer(&mut self, chunk: Bytes) {
        self.buffered.add(chunk.len());
        self.written_bytes += chunk.len() as u64;
        if chunk.len() < SMALL_CHUNK_BYTES {
            self.small.extend_from_slice(&chunk);
        } else {
            if !self.small.is_empty() {
                self.chunks.push(self.small.split().freeze());
            }
            self.chunks.push(chunk);
        }
    }

    /// Returns the gathered bytes. They count as held until the second value is dropped.
    fn take_chunks(&mut self) -> (Vec<Bytes>, HeldBytes) {
        if !self.small.is_empty() {
            self.chunks.push(self.small.split().freeze());
        }
        (std::mem::take(&mut self.chunks), self.buffered.take())
    }

    /// Waits for the hop that has the staged file, and returns the file. If the caller stops
    /// waiting, nothing is lost.
    async fn staged(&mut self) -> Result<Option<Staged>> {
        self.wait_for_hop().await?;
        Ok(match self.hop.take() {
            Some(Hop::Done(staged)) => Some(staged),
            _ => None,
        })
    }

    /// Waits until the running hop has ended.
    async fn wait_for_hop(&mut self) -> Result<()> {
        if let Some(Hop::Under(handle)) = &mut self.hop {
            let result = blocking::join(handle).await;
            self.hop = None;
            self.hop = Some(Hop::Done(result?));
        }
        Ok(())
    }

    async fn spill(&mut self) -> Result<()> {
        let staged = self.staged().await?;
        let (chunks, held) = self.take_chunks();
        let (store, destination) = (Arc::clone(&self.store), Arc::clone(&self.destination));
        let turns = self.store.options.quotas.turns(Some(self.destination.bucket()));
        let (size_hint, share) = (self.size_hint, Share::of(turns).await?);
        let who = self.who.clone();
        let write = move || {
            let stage = || naming(&store, destination.name(), || Ok(destination.stage(&store)?.staged));
            let mut staged = if let Some(staged) = staged { staged } else { stage()? };
            let more = chunks.iter().map(|chunk| chunk.len() as u64).sum();
            staged.reserve(&store, more, size_hint)?;
            staged.append(&chunks)?;
            drop((chunks, held, share));
            Ok(staged)
        };
        self.hop = Some(Hop::Under(blocking::spawn(move || who.call(write))));
        // What is read meanwhile would be held as well.
        if self.buffered.is_much() { self.wait_for_hop().await } else { Ok(()) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(hop) = self.hop.take() {
            blocking::drop_later(hop);
        }
    }
}

#[async_trait]
impl ObjectWriter for Writer {
    async fn write(&mut self, chunk: Bytes) -> Result<()> {
        if chunk.is_empty() {
            return Ok(());
        }
        self.buffer(chunk);
        if self.buffered.bytes > self.buffered.limit(self.hop.is_some()) {
            self.spill().await
        } else {
            Ok(())
        }
    }

    async fn commit(mut self: Box<Self>, digests: Digests) -> Result<WriteReceipt> {
        let staged = self.staged().await?;
        let ((chunks, held), written_bytes) = (self.take_chunks(), self.written_bytes);
        let (store, destination) = (Arc::clone(&self.store), Arc::clone(&self.destination));
        let turns = self.store.options.quotas.turns(Some(self.destination.bucket()));
        let who = self.who.clone();
        let publish = move |store: &Store, destination: &dyn Destination| {
            store.check_place_of(destination.bucket())?;
            let mut stage = match staged {
                Some(staged) => Some(reopen(store, destination.bucket(), staged)?),
                None if chunks.is_empty() && destination.is_directory() => None,
                None => Some(destination.stage(store)?),
            };
            if let Some(stage) = &mut stage {
                stage.staged.append(&chunks)?;
                drop((chunks, held));
                // Bytes went with an earlier error, which the caller should not have passed over.
                if stage.staged.size_bytes() != written_bytes {
                    let source = std::io::Error::other("an earlier write failed");
                    return Err(BackendError::Io { operation: "write a staging file", source });
                }
            }
            finish(destination, store, stage, digests)
        };
        let named = move || naming(&store, destination.name(), || publish(&store, &*destination));
        blocking::run(turns, move || who.call(named)).await
    }
}

/// Refuses a body that can't fit in the free space, so that a full disk is reported before the
/// bytes are sent. Several bodies that are announced at the same time may nevertheless be too large
/// together.
pub(crate) fn check_space(directory: impl AsFd, announced: Option<u64>) -> Result<()> {
    let Some(announced) = announced.filter(|bytes| is_much(*bytes)) else { return Ok(()) };
    let space = rustix::fs::fstatvfs(directory).op("ask for free space")?;
    // One without blocks has no limit (tmpfs), or does not say (FUSE).
    if space.f_blocks == 0 {
        return Ok(());
    }
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if announced > free { Err(BackendError::OutOfSpace) } else { Ok(()) }
}

/// True for a body for which the free space is checked, which may wait for a server.
pub(crate) fn is_much(announced: u64) -> bool {
    announced >= ANNOUNCED_BYTES_MIN
}

/// Reports errors that are known before the body is received.
pub(crate) fn begin(store: &Store, target: &Target, announced: Option<u64>) -> Result<()> {
    let bucket = store.bucket(&target.bucket)?;
    check_space(&bucket.fd, announced)?;
    check_early(store, target)
}

/// Reports, before the body is received, that the requester may not write the object, or that
/// conditions of the request do not hold.
pub(crate) fn check_early(store: &Store, target: &Target) -> Result<()> {
    if target.needs_facts() { target.check(look(store, target)?.as_ref()) } else { Ok(()) }
}

/// Reports that the requester may not write the object. Conditions of the request (If-Match,
/// If-None-Match) are not evaluated.
pub(crate) fn check_access(store: &Store, target: &Target) -> Result<()> {
    if target.check.is_some() { target.check_access(look(store, target)?.as_ref()) } else { Ok(()) }
}

/// Finds the object that a key has now.
fn look(store: &Store, target: &Target) -> Result<Option<Current>> {
    match open(store, &target.bucket, &target.place) {
        Ok(Opened { attributes, attached, .. }) => Ok(Some(Current {
            facts: Some(Facts {
                etag: attributes.etag,
                last_modified: attributes.last_modified,
                size_bytes: attributes.size_bytes,
                inode: None,
                attached,
            }),
            overflow: None,
        })),
        Err(BackendError::NoSuchKey) => Ok(None),
        Err(error) => Err(error),
    }
}
