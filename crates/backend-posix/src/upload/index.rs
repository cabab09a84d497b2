//! An index of a bucket's uploads by key, so that listing a page does not read all of them.
//!
//! An upload's directory has its id as its name; its key is in its record, which never changes. So
//! a record is read once, and kept as long as the id exists. The ids are the names in the directory
//! of uploads, which are read again only if it has changed. Whether an upload is still in progress
//! is checked only for those on a page: others may have been completed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::mem::size_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::{Initiator, Result, UploadSummary};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{ObjectKey, UploadId};

use crate::error::{Io, Op};
use crate::fs::reading::read_names;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, files};
use crate::layout::uploads::{COMPLETED, DESCRIPTION, UPLOADS, is_id};
use crate::limits::{INDEX_BYTES_MIN, UPLOAD_INDEX_SHARE};
use crate::record::{self, UploadRecord};
use crate::tree::bucket::Bucket;

/// The indexes of buckets whose uploads were listed.
#[derive(Debug)]
pub(crate) struct UploadIndexes {
    /// The indexes by device and inode of the directory of uploads.
    kept: Mutex<Kept>,
    /// The lock under which a directory is read. Only one is read at a time: of callers that need
    /// the same one, all but the first find its index.
    reading: Mutex<()>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    indexes: HashMap<(u64, u64), (Arc<UploadIndex>, u64)>,
    uses: u64,
}

/// A position in the index: before larger keys, and before uploads of the same key with larger ids.
/// The key need not be UTF-8, so that the position can be after all keys with a prefix.
pub(super) type Bound = (Vec<u8>, Option<UploadId>);

/// An upload of an index.
#[derive(Debug, Clone)]
pub(crate) struct Indexed {
    pub upload: UploadSummary,
    /// The user id of the upload's owner ([`UploadRecord::user`]).
    pub user: Option<u32>,
}

/// Uploads by key, and then by id, which begins with the time.
#[derive(Debug, Default)]
pub(crate) struct UploadIndex {
    uploads: Vec<Indexed>,
    /// The time of the directory's last change, if it shows whether the index is still correct.
    changed_ns: Option<i128>,
    /// The position at which the index begins: earlier uploads were left out, and so were those
    /// after `limit`.
    from: Bound,
    limit: Option<Bound>,
    bytes: usize,
}

impl UploadIndexes {
    /// Makes indexes with at most a share of `index_bytes`, the memory for the indexes of keys.
    pub fn new(index_bytes: usize) -> Self {
        let bytes_max = index_bytes / UPLOAD_INDEX_SHARE;
        Self { kept: Mutex::default(), reading: Mutex::default(), bytes_max }
    }

    /// Returns the index of the uploads in `directory`, with at least some of those after `from`.
    pub fn get(&self, bucket: &Bucket<'_>, directory: &OwnedFd, from: &Bound) -> Result<Arc<UploadIndex>> {
        let look = || -> Result<_> {
            let info = file_info::fresh(directory).op("stat the uploads directory")?;
            let old = self.kept().find(info.id());
            let is_true = |old: &UploadIndex| old.changed_ns == Some(info.changed_ns) && old.covers(from);
            Ok((info, old.as_deref().is_some_and(is_true), old))
        };
        if let (_, true, Some(index)) = look()? {
            return Ok(index);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let began_ns = file_info::files_now_ns();
        let (info, is_true, old) = look()?;
        if let (true, Some(index)) = (is_true, &old) {
            return Ok(Arc::clone(index));
        }
        let id = info.id();
        let bytes_max = (self.bytes_max / 4).max(INDEX_BYTES_MIN);
        let (mut index, complete) = read(directory, old.as_deref(), from, bytes_max)?;
        let settled = complete
            && bucket.store.is_settled(directory, &info, began_ns)
            && file_info::fresh(directory).is_ok_and(|now| now.changed_ns == info.changed_ns);
        index.changed_ns = settled.then_some(info.changed_ns);
        let index = Arc::new(index);
        self.kept().keep(id, &index, self.bytes_max);
        Ok(index)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, id: (u64, u64)) -> Option<Arc<UploadIndex>> {
        self.uses += 1;
        let (index, used) = self.indexes.get_mut(&id)?;
        *used = self.uses;
        Some(Arc::clone(index))
    }

    fn keep(&mut self, id: (u64, u64), index: &Arc<UploadIndex>, bytes_max: usize) {
        self.uses += 1;
        self.indexes.insert(id, (Arc::clone(index), self.uses));
        while self.indexes.values().map(|(index, _)| index.bytes).sum::<usize>() > bytes_max {
            let Some(oldest) = self.indexes.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id)
            else {
                break;
            };
            self.indexes.remove(&oldest);
        }
    }
}

impl UploadIndex {
    fn covers(&self, from: &Bound) -> bool {
        self.from <= *from && self.limit.as_ref().is_none_or(|limit| from < limit)
    }

    /// Returns the uploads after a position.
    pub fn behind(&self, bound: &Bound) -> &[Indexed] {
        &self.uploads[self.uploads.partition_point(|upload| !is_behind(bound, upload))..]
    }

    /// True if there may be more uploads after the last one.
    pub fn is_cut(&self) -> bool {
        self.limit.is_some()
    }

    /// Drops the uploads before `from` if the index is too large, and then half of the rest, from
    /// the end, until it is small enough.
    fn narrow(&mut self, from: &Bound, bytes_max: usize) {
        self.uploads.sort_unstable_by(order);
        self.uploads.retain(|upload| is_behind(from, upload));
        self.from.clone_from(from);
        self.bytes = self.uploads.iter().map(bytes_of).sum();
        while self.bytes > bytes_max / 2 && self.uploads.len() > 1 {
            self.uploads.truncate(self.uploads.len() / 2);
            self.limit = self.uploads.last().map(bound_of);
            self.bytes = self.uploads.iter().map(bytes_of).sum();
        }
    }

    fn takes(&self, upload: &Indexed) -> bool {
        let is_cut_off = |limit| is_behind(limit, upload);
        is_behind(&self.from, upload) && !self.limit.as_ref().is_some_and(is_cut_off)
    }
}

fn order(Indexed { upload: a, .. }: &Indexed, Indexed { upload: b, .. }: &Indexed) -> Ordering {
    (&a.key, &a.id).cmp(&(&b.key, &b.id))
}

fn bound_of(Indexed { upload, .. }: &Indexed) -> Bound {
    (upload.key.as_str().as_bytes().to_vec(), Some(upload.id.clone()))
}

fn is_behind((key, id): &Bound, Indexed { upload, .. }: &Indexed) -> bool {
    match upload.key.as_str().as_bytes().cmp(key) {
        Ordering::Equal => id.as_ref().is_none_or(|id| upload.id > *id),
        other => other == Ordering::Greater,
    }
}

fn bytes_of(Indexed { upload, .. }: &Indexed) -> usize {
    let initiator = upload
        .initiator
        .as_deref()
        .map_or(0, |initiator| size_of::<Initiator>() + initiator.id.len() + initiator.name.len());
    size_of::<Indexed>() + upload.key.as_str().len() + upload.id.as_str().len() + initiator
}

/// Reads the names in a directory of uploads, and the records that are not known. Returns false if
/// some could not be read yet: an upload that is just being created gets its record without a
/// change of the directory.
fn read(
    directory: &OwnedFd,
    old: Option<&UploadIndex>,
    from: &Bound,
    bytes_max: usize,
) -> Result<(UploadIndex, bool)> {
    let known: HashMap<&str, &Indexed> =
        old.iter().flat_map(|old| &old.uploads).map(|known| (known.upload.id.as_str(), known)).collect();
    let (mut index, mut complete) = (UploadIndex::default(), true);
    // From its beginning, however far someone else has read it.
    let opened = resolve::plain(directory, "", DIRECTORY).op("open the uploads directory")?;
    read_names(&opened, |name, _| {
        let Some(Ok(id)) = name.to_str().ok().filter(|name| is_id(name)).map(UploadId::new) else {
            return Ok(true);
        };
        let upload = match known.get(id.as_str()) {
            Some(known) => Some((*known).clone()),
            None => describe(directory, id)?,
        };
        match upload {
            Some(upload) if index.takes(&upload) => {
                index.bytes += bytes_of(&upload);
                index.uploads.push(upload);
                if index.bytes > bytes_max {
                    index.narrow(from, bytes_max);
                }
            }
            Some(_) => {}
            None => complete = false,
        }
        Ok(true)
    })
    .op("read the uploads directory")?;
    index.uploads.sort_unstable_by(order);
    Ok((index, complete))
}

/// Returns the contents of an upload's record; `None` if the record does not exist or can't be
/// read.
fn describe(directory: &OwnedFd, id: UploadId) -> Io<Option<Indexed>> {
    let bytes = match files::read_own(directory, &format!("{id}/{DESCRIPTION}")) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::IO)) => {
            tracing::warn!(id = id.as_str(), error = %errno, "an upload cannot be read, so it is left out of the \
                list of uploads");
            return Ok(None);
        }
        result => result?,
    };
    let Ok(record) = record::from_bytes::<UploadRecord>(&bytes) else { return Ok(None) };
    let Some(Ok(key)) = record.key.as_deref().map(ObjectKey::new) else { return Ok(None) };
    let initiated = file_info::timestamp(i128::from(record.time_ns.unwrap_or(0)));
    let summary =
        UploadSummary { key, id, initiated, checksum: record.checksum, initiator: record.initiator };
    Ok(Some(Indexed { upload: summary, user: record.user }))
}

/// False for an upload that was completed or aborted.
pub(super) fn is_in_progress(bucket: &Bucket<'_>, id: &UploadId) -> Result<bool> {
    let there = |path: String| match resolve::at_path(&*bucket.fd, &path) {
        Ok(info) => Ok(info.is_file()),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Err(errno) => Err(errno).op("look for an upload"),
    };
    Ok(there(format!(".slipway/{UPLOADS}/{id}/{DESCRIPTION}"))?
        && !there(format!(".slipway/{COMPLETED}/{id}"))?)
}
