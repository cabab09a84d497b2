//! An open upload in progress.

use std::sync::Arc;

use backend::{BackendError, BusyResource, Result, UploadRef};
use kernel_calls::acting::{acting_user, as_self};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use s3_types::{BucketName, UploadId};

use super::receipt::is_completed;
use crate::base::unique;
use crate::error::{Fail, Op};
use crate::fs::locking::try_lock_file;
use crate::fs::{files, removing, resolve};
use crate::layout::keymap::{KeyPath, OWN_DIRECTORY, join};
use crate::layout::uploads::{DESCRIPTION, UPLOADS, is_id};
use crate::record::{self, UploadRecord};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::{Lock, lock_file};

/// The name of an upload: its bucket, key and id.
#[derive(Debug, Clone)]
pub(crate) struct UploadName {
    pub bucket: BucketName,
    pub place: KeyPath,
    pub id: UploadId,
}

impl From<UploadRef<'_>> for UploadName {
    fn from(upload: UploadRef<'_>) -> Self {
        let UploadRef { object, id } = upload;
        Self { bucket: object.bucket.clone(), place: KeyPath::of(object.key.as_str()), id: id.clone() }
    }
}

/// An upload in progress.
#[derive(Debug)]
pub(crate) struct Upload {
    pub directory: Directory,
    pub record: UploadRecord,
}

/// The answer to whether the removal of an upload must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// The removal must survive if the durability level demands it.
    Names,
    /// The removal need not survive: after a power cut, the upload would be found to be completed.
    No,
}

/// True unless the thread has the identity of another user than the one who began an upload. The
/// key says where an upload's object will be, not who owns it: anyone who may rename directories
/// decides where a key leads.
pub(super) fn is_own(user: Option<u32>) -> bool {
    is_for(acting_user(), user)
}

/// Does the same as [`is_own`] for a user that is known already: `None` for the gateway, which
/// works on all uploads.
pub(super) fn is_for(acting: Option<u32>, user: Option<u32>) -> bool {
    acting.is_none_or(|acting| user == Some(acting))
}

impl Upload {
    /// Opens an upload of this key. A completed upload counts as missing. Fails with
    /// [`BackendError::UploadOfAnother`] for the upload of another user.
    pub fn open(bucket: &Bucket<'_>, name: &UploadName) -> Result<Self> {
        let upload = Self::open_id(bucket, name.id.as_str())?
            .filter(|upload| upload.record.key.as_deref() == Some(&name.place.key))
            .ok_or(BackendError::NoSuchUpload)?;
        if is_own(upload.record.user) { Ok(upload) } else { Err(BackendError::UploadOfAnother) }
    }

    /// Opens an upload of any key; `None` for a text that can't be the id of an upload, such as
    /// `..`, since ids are names of directories here.
    pub fn open_id(bucket: &Bucket<'_>, id: &str) -> Result<Option<Self>> {
        if !is_id(id) {
            return Ok(None);
        }
        let own_path = join(UPLOADS, id);
        let fd = match bucket.own_existing(&own_path) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            result => Arc::new(result.op("open an upload")?),
        };
        let bytes = match as_self(|| files::read_own(&fd, DESCRIPTION)) {
            Err(Errno::NOENT) => return Ok(None),
            result => result.op("read an upload")?,
        };
        if is_completed(bucket, id)? {
            return Ok(None);
        }
        let directory = Directory { fd, path: join(OWN_DIRECTORY, &own_path) };
        Ok(record::from_bytes(&bytes).ok().map(|record| Self { directory, record }))
    }

    /// Waits for the exclusive right to complete or abort the upload. If another request has it for
    /// longer than the wait may take (`lock_wait`), this fails with [`BackendError::OutOf`], and a
    /// later request finds the result. If the upload has ended by then, the attempt has lost a
    /// race.
    pub fn lock(&self, bucket: &Bucket<'_>) -> Result<Lock, Fail> {
        let file = self.open_description()?;
        lock_file(bucket, &file)?;
        Lock::of(bucket.store, file, &self.directory, DESCRIPTION)
    }

    /// Takes the same right as [`Upload::lock`] without waiting: [`BackendError::Busy`] if it is
    /// held.
    pub fn lock_at_once(&self, bucket: &Bucket<'_>) -> Result<Lock, Fail> {
        let file = self.open_description()?;
        if !try_lock_file(&file).attempt("lock an upload")? {
            return Err(BackendError::Busy(BusyResource::Upload).into());
        }
        Lock::of(bucket.store, file, &self.directory, DESCRIPTION)
    }

    fn open_description(&self) -> Result<OwnedFd, Fail> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        as_self(|| resolve::plain(&self.directory, DESCRIPTION, flags)).attempt("open an upload")
    }

    /// Removes the upload, whose lock the caller holds. Without its record it is no longer an
    /// upload, so that a part that arrives later fails.
    pub(super) fn remove(&self, bucket: &Bucket<'_>, id: &UploadId, sync: Sync) -> Result<(), Fail> {
        self.remove_description(bucket)?;
        if sync == Sync::Names {
            bucket.store.sync_names(&self.directory).op("sync a directory")?;
        }
        if let Ok(uploads) = bucket.own_directory(UPLOADS) {
            as_self(|| removing::remove_tree(&uploads, id.as_str()));
        }
        Ok(())
    }

    fn remove_description(&self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        let remove = |directory: &OwnedFd, name: &str| {
            as_self(|| rustix::fs::unlinkat(directory, name, AtFlags::empty())).attempt("remove an upload")
        };
        if !bucket.store.volume_at(&self.directory).lingers {
            return remove(&self.directory.fd, DESCRIPTION);
        }
        // The caller has it open, as its lock: removed here it would linger, and keep the
        // directory.
        let (staging, name) = (bucket.staging_directory()?, unique::name());
        as_self(|| rustix::fs::renameat(&self.directory, DESCRIPTION, &staging, &name))
            .attempt("remove an upload")?;
        remove(&staging, &name)
    }
}
