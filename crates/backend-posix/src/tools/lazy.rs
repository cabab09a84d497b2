//! Gives foreign files that were read real records, in the background.
//!
//! One thread does what `rehash` does, for files that a GET has read. Requests only queue a note,
//! which is dropped if there are too many: the file will be read again.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use backend::{BackendError, Result};
use kernel_calls::acting::begin_as_self;
use rustix::fd::AsFd;
use s3_types::{BucketName, ObjectKey};

use super::progress::Progress;
use super::rehash::{Rehashed, rehash_file};
use crate::error::{Op, leads_nowhere, storage_error};
use crate::facts::versitygw::{Attributes, Source};
use crate::fs::{file_info, resolve};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, SELF};
use crate::limits::{LAZY_AGE_MIN, LAZY_QUEUE_LENGTH, LAZY_SMALL_BYTES};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// The queue of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct LazyRehash {
    queue: Arc<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    notes: Mutex<Notes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Notes {
    /// Notes of small files, which come first: they cost little, and there are many.
    small: VecDeque<QueuedFile>,
    large: VecDeque<QueuedFile>,
    known: HashSet<QueuedFile>,
    closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct QueuedFile {
    bucket: BucketName,
    key: ObjectKey,
}

impl LazyRehash {
    /// Starts the thread.
    pub fn start(store: Arc<Store>) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::default());
        let theirs = Arc::clone(&queue);
        std::thread::Builder::new().name("rehash".to_owned()).spawn(move || {
            begin_as_self();
            work(&store, &theirs);
        })?;
        Ok(Self { queue })
    }

    /// Notes that a foreign file was read. Never waits for the thread's work.
    pub fn met(&self, bucket: &BucketName, key: &ObjectKey, size_bytes: u64) {
        let note = QueuedFile { bucket: bucket.clone(), key: key.clone() };
        let mut notes = self.queue.lock();
        if notes.closed || notes.known.len() >= LAZY_QUEUE_LENGTH || !notes.known.insert(note.clone()) {
            return;
        }
        let notes = &mut *notes;
        let queue = if size_bytes <= LAZY_SMALL_BYTES { &mut notes.small } else { &mut notes.large };
        queue.push_back(note);
        self.queue.changed.notify_one();
    }
}

impl Drop for LazyRehash {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let mut notes = self.lock();
        *notes = Notes { closed: true, ..Notes::default() };
        self.changed.notify_one();
    }

    /// The next file, once there is one; `None` at the end.
    fn take(&self) -> Option<QueuedFile> {
        let mut notes = self.lock();
        loop {
            if notes.closed {
                return None;
            }
            if let Some(note) = notes.small.pop_front().or_else(|| notes.large.pop_front()) {
                notes.known.remove(&note);
                return Some(note);
            }
            notes = self.changed.wait(notes).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work(store: &Store, queue: &Queue) {
    while let Some(QueuedFile { bucket, key }) = queue.take() {
        match rehash(store, &bucket, &key) {
            Ok(outcome) => {
                tracing::debug!(%bucket, key = key.as_str(), ?outcome, "a foreign file was rehashed");
            }
            Err(error @ BackendError::ReadOnly) => {
                tracing::warn!(%error, "--rehash-on-read stops, since the file system became read-only: files that other programs wrote \
                    keep the ETags that they have now");
                queue.close();
            }
            Err(error) => {
                tracing::debug!(%bucket, key = key.as_str(), %error, "a foreign file was not rehashed");
            }
        }
    }
}

/// Rehashes a file; `None` if it is gone, or is left alone.
fn rehash(store: &Store, name_of_bucket: &BucketName, key: &ObjectKey) -> Result<Option<Rehashed>> {
    let bucket = store.bucket(name_of_bucket)?;
    let Some((directory, name)) = locate(&bucket, &KeyPath::of(key.as_str()))? else { return Ok(None) };
    let file = match resolve::content(&directory, &name) {
        Err(errno) if leads_nowhere(errno) => return Ok(None),
        result => result.op("open a file")?,
    };
    let info = file_info::stat(&file)?;
    let last_ns = info.changed_ns.max(info.stamp.modified_ns);
    let settled_ns = i128::from(file_info::now_ns()) - i128::try_from(LAZY_AGE_MIN.as_nanos()).unwrap_or(0);
    // It may still be written to: it is met again. What versitygw knows of it is for `import` to
    // take over.
    let theirs = Attributes::read(&Source::File(file.as_fd())).op("read attributes")?;
    if last_ns > settled_ns || theirs.is_some() {
        return Ok(None);
    }
    rehash_file(&bucket, (&directory, &name), (name_of_bucket, key.as_str()), false, &Progress::default())
}

/// Finds the object's file; `None` if a symbolic link leads there.
fn locate(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Option<(Directory, String)>> {
    let (above, name) = if place.directory {
        (place.path.as_str(), DIRECTORY_DATA)
    } else {
        match resolve::at_path(&*bucket.fd, &place.path) {
            Ok(info) if info.is_directory() => (place.path.as_str(), SELF),
            Ok(_) => keymap::split(&place.path),
            Err(errno) if leads_nowhere(errno) => return Ok(None),
            Err(errno) => return Err(storage_error("look up a name", errno)),
        }
    };
    match bucket.directory(above) {
        Ok(directory) => Ok(Some((directory, name.to_owned()))),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).op("open a directory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> ObjectKey {
        ObjectKey::new(text).unwrap()
    }

    #[test]
    fn the_queue_is_bounded_and_small_files_come_first() {
        let queue = Arc::new(Queue::default());
        let lazy = LazyRehash { queue: Arc::clone(&queue) };
        let bucket = BucketName::new("bucket").unwrap();
        lazy.met(&bucket, &key("large"), LAZY_SMALL_BYTES + 1);
        lazy.met(&bucket, &key("small"), 1);
        lazy.met(&bucket, &key("small"), 1);
        lazy.met(&bucket, &key("other"), 1);
        let order: Vec<_> = (0..3).map(|_| queue.take().unwrap().key).collect();
        assert_eq!(order, ["small", "other", "large"].map(key));
        for n in 0..LAZY_QUEUE_LENGTH + 10 {
            lazy.met(&bucket, &key(&n.to_string()), 1);
        }
        assert_eq!(queue.lock().small.len(), LAZY_QUEUE_LENGTH);
        drop(lazy);
        assert_eq!(queue.take(), None);
    }
}
