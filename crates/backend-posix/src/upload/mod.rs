//! Multipart uploads.
//!
//! `.slipway/uploads/<id>/` is an upload in progress: the file `upload` says what was asked for
//! when it was created and is what exclusive work on it locks; `00001` and so on are its parts,
//! each with a record like an object's. Their bytes are there too, or in their place in a file that
//! the upload's parts share ([`assembly`], [`slot`]). Completing it makes the object from the parts
//! ([`gather`]), leaves the receipt as `.slipway/completed/<id>` for those who ask again
//! ([`journal`]), and removes the upload. The object's record names the upload too. Which uploads
//! there are, by key, is kept in [`index`]. Decision 0007 has all states in which a crash may leave
//! an upload, and what becomes of it.

mod assembly;
mod complete;
mod gather;
mod index;
mod journal;
mod list;
mod part;
mod slot;

use std::sync::Arc;

use backend::{BackendError, NewUpload, Result, SweepReport, UploadAttributes};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use s3_types::{BucketName, UploadId};

use crate::bucket::{Bucket, Directory};
use crate::error::{self, Fail, Op, is_of_one, retrying};
use crate::fs::locking::try_lock_file;
use crate::fs::reading::entries;
use crate::fs::{linking, removing};
use crate::keymap::{OWN_DIRECTORY, ObjectPath, join};
use crate::layout::uploads::{self, COMPLETED, DESCRIPTION, ID_LENGTH, UPLOADS, is_id};
use crate::lock::{Lock, lock_file};
use crate::options::{Durability, SweepOptions};
use crate::record::{self, Predecessor, Record};
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;
use crate::{file_info, files, object, predecessor, unique};

pub(crate) use assembly::{Founded, holds};
pub(crate) use complete::{Complete, complete};
pub(crate) use index::UploadIndexes;
pub(crate) use list::{UploadsQuery, list_parts, list_uploads};
pub(crate) use part::{CopyPart, PartTarget, copy_part};

/// Names an upload of a key.
#[derive(Debug, Clone)]
pub(crate) struct UploadName {
    pub bucket: BucketName,
    pub key: String,
    pub id: UploadId,
}

/// An upload in progress.
#[derive(Debug)]
pub(crate) struct Upload {
    pub directory: Directory,
    pub record: Record,
}

/// CreateMultipartUpload.
pub(crate) fn create(store: &Store, bucket: &BucketName, key: &str, upload: &NewUpload) -> Result<UploadId> {
    let now = file_info::now_ns();
    // The time comes first, so that ids sort by it.
    let id = format!("{now:016x}{:016x}{:016x}", unique::random(), unique::random());
    debug_assert_eq!(id.len(), ID_LENGTH);
    let record = Record {
        key: Some(key.to_owned()),
        metadata: upload.metadata.clone(),
        upload_checksum: upload.checksum,
        time_ns: Some(now),
        ..Record::default()
    };
    let record = Record { predecessor: find_predecessor(store, bucket, key)?, ..record };
    retrying(|| {
        let bucket = store.bucket(bucket)?;
        bucket.try_device()?;
        let durability = store.options.durability;
        let uploads = bucket.own_directory(UPLOADS)?;
        match rustix::fs::mkdirat(&uploads, &id, Mode::from_raw_mode(0o700)) {
            Err(Errno::EXIST) => {}
            result => result.attempt("make an upload")?,
        }
        let described = describe(&uploads, &id, &record, durability);
        if described.is_err() {
            // No one would know of it.
            removing::remove_tree(&uploads, &id);
        }
        described
    })?;
    UploadId::new(&id).map_err(|_| BackendError::NoSuchUpload)
}

/// What a key has, for a conditional Complete to know it again. `None` where it can't be looked at:
/// then conditions are decided like those of any other write.
fn find_predecessor(store: &Store, bucket: &BucketName, key: &str) -> Result<Option<Predecessor>> {
    let opened = match object::open(store, bucket, key, &ObjectPath::of(key)) {
        Ok(opened) => opened,
        Err(BackendError::NoSuchKey) => return Ok(Some(Predecessor::Nothing)),
        Err(error) if is_of_one(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let known = opened.file.as_ref().and_then(|file| Some((file, file_info::of(file).ok()?)));
    let inode = known.and_then(|(file, info)| store.lasting_inode(file, &info));
    Ok(Some(Predecessor::Object(predecessor::identity_of(&opened.attributes, inode))))
}

fn describe(uploads: &OwnedFd, id: &str, record: &Record, durability: Durability) -> Result<(), Fail> {
    let directory = resolve::plain(uploads, id, DIRECTORY).attempt("open an upload")?;
    linking::write_whole(&directory, DESCRIPTION, &record::to_bytes(record), durability.syncs_data())?;
    if durability.syncs_names() {
        rustix::fs::fsync(&directory).attempt("sync a directory")?;
        rustix::fs::fsync(uploads).attempt("sync a directory")?;
    }
    Ok(())
}

/// What was said when the upload was created.
pub(crate) fn head(store: &Store, name: &UploadName) -> Result<UploadAttributes> {
    let record = Upload::open(&store.bucket(&name.bucket)?, name)?.record;
    Ok(UploadAttributes {
        initiated: file_info::timestamp(i128::from(record.time_ns.unwrap_or(0))),
        checksum: record.upload_checksum,
    })
}

/// AbortMultipartUpload.
pub(crate) fn abort(store: &Store, name: &UploadName) -> Result<()> {
    retrying(|| {
        let bucket = store.bucket(&name.bucket)?;
        let upload = Upload::open(&bucket, name)?;
        let _lock = upload.lock(&bucket)?;
        if let Some(receipt) = journal::settle(&bucket, &upload, name)? {
            journal::end(&bucket, &upload, name, &receipt);
            return Err(BackendError::NoSuchUpload.into());
        }
        upload.remove(&bucket, &name.id, Sync::Names)
    })
}

/// Whether an upload that is removed must stay so after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    /// As the durability level says.
    Names,
    /// It would be found to be completed.
    No,
}

impl Upload {
    /// Opens an upload of this key; one that was completed is none.
    pub fn open(bucket: &Bucket<'_>, name: &UploadName) -> Result<Self> {
        Self::open_id(bucket, name.id.as_str())?
            .filter(|upload| upload.record.key.as_deref() == Some(&name.key))
            .ok_or(BackendError::NoSuchUpload)
    }

    /// Opens an upload, whatever its key.
    pub fn open_id(bucket: &Bucket<'_>, id: &str) -> Result<Option<Self>> {
        let own_path = join(UPLOADS, id);
        let fd = match bucket.own_existing(&own_path) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            result => Arc::new(result.op("open an upload")?),
        };
        let bytes = match files::read_own(&fd, DESCRIPTION) {
            Err(Errno::NOENT) => return Ok(None),
            result => result.op("read an upload")?,
        };
        if journal::is_completed(bucket, id)? {
            return Ok(None);
        }
        let directory = Directory { fd, path: join(OWN_DIRECTORY, &own_path) };
        Ok(record::from_bytes(&bytes).map(|record| Self { directory, record }))
    }

    /// Waits for the exclusive right to complete or abort the upload. Whoever has it may need it
    /// for longer than anyone waits (`lock_wait`): then it is [`BackendError::Busy`], and who asks
    /// again later finds what it came to. Another try if the upload is gone by then.
    pub fn lock(&self, bucket: &Bucket<'_>) -> Result<Lock, Fail> {
        let file = self.open_description()?;
        lock_file(bucket, &file)?;
        Lock::of(file, &self.directory, DESCRIPTION)
    }

    /// [`Upload::lock`] for who does not wait: [`BackendError::Conflict`] if someone has it.
    pub fn lock_at_once(&self) -> Result<Lock, Fail> {
        let file = self.open_description()?;
        if !try_lock_file(&file).attempt("lock an upload")? {
            return Err(BackendError::Conflict(None).into());
        }
        Lock::of(file, &self.directory, DESCRIPTION)
    }

    fn open_description(&self) -> Result<OwnedFd, Fail> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        resolve::plain(&self.directory, DESCRIPTION, flags).attempt("open an upload")
    }

    /// Removes the upload, whose lock the caller holds. Without its description it is none any
    /// more; a part that comes late finds that out.
    fn remove(&self, bucket: &Bucket<'_>, id: &UploadId, sync: Sync) -> Result<(), Fail> {
        self.remove_description(bucket)?;
        if sync == Sync::Names {
            bucket.store.sync_names(&self.directory).op("sync a directory")?;
        }
        if let Ok(uploads) = bucket.own_directory(UPLOADS) {
            removing::remove_tree(&uploads, id.as_str());
        }
        Ok(())
    }
}

impl Upload {
    fn remove_description(&self, bucket: &Bucket<'_>) -> Result<(), Fail> {
        let remove = |directory: &OwnedFd, name: &str| {
            rustix::fs::unlinkat(directory, name, AtFlags::empty()).attempt("remove an upload")
        };
        if !bucket.store.names_may_blink(&self.directory) {
            return remove(&self.directory.fd, DESCRIPTION);
        }
        // The caller has it open, as its lock: removed here it would linger, and keep the
        // directory.
        let (staging, name) = (bucket.staging_directory()?, unique::name());
        rustix::fs::renameat(&self.directory, DESCRIPTION, &staging, &name).attempt("remove an upload")?;
        remove(&staging, &name)
    }
}

/// Removes receipts of which no one asks any more.
pub(crate) fn sweep_receipts(
    bucket: &Bucket<'_>,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    let Some(completed) = bucket.find_for_removal(COMPLETED)? else { return Ok(()) };
    for (id, _) in entries(&completed).op("read receipts")? {
        if removing::is_older(&completed, &id, options.completed_age)
            && rustix::fs::unlinkat(&completed, &*id, AtFlags::empty()).is_ok()
        {
            report.completed += 1;
        }
    }
    Ok(())
}

/// Ends what crashed, and removes what is left of completed, broken and (if wanted) abandoned
/// uploads.
pub(crate) fn sweep(
    bucket: &Bucket<'_>,
    bucket_name: &BucketName,
    options: &SweepOptions,
    report: &mut SweepReport,
) -> Result<()> {
    let Some(uploads) = bucket.find_for_removal(UPLOADS)? else { return Ok(()) };
    for (id, _) in entries(&uploads).op("read uploads")?.into_iter().filter(|(id, _)| is_id(id)) {
        let Some(upload) = error::unless_failed(&id, Upload::open_id(bucket, &id), report)? else { continue };
        match upload {
            Some(upload) => {
                let (Some(key), Ok(id)) = (upload.record.key.clone(), UploadId::new(&id)) else { continue };
                let name = UploadName { bucket: bucket_name.clone(), key, id };
                sweep_upload(bucket, &uploads, &upload, &name, options, report);
            }
            // Of one that crashed while it was created, completed or aborted.
            None if removing::is_older(&uploads, &id, options.staging_age) && !is_newer(&uploads, &id) => {
                report.uploads += usize::from(removing::remove_tree(&uploads, &id));
            }
            None => {}
        }
    }
    Ok(())
}

/// True for an upload that a newer version of this program created on the same tree.
fn is_newer(uploads: &OwnedFd, id: &str) -> bool {
    files::read_own(uploads, &format!("{id}/{DESCRIPTION}")).is_ok_and(|bytes| record::is_newer(&bytes))
}

/// Ends an upload whose Complete was interrupted, or removes one that was abandoned. One that
/// someone is at is left alone.
fn sweep_upload(
    bucket: &Bucket<'_>,
    uploads: &OwnedFd,
    upload: &Upload,
    name: &UploadName,
    options: &SweepOptions,
    report: &mut SweepReport,
) {
    let interrupted = [uploads::JOURNAL, uploads::WHOLE_NAME]
        .into_iter()
        .any(|name| removing::is_older(&upload.directory, name, options.staging_age));
    let abandoned = options.upload_age.is_some_and(|age| removing::is_older(uploads, name.id.as_str(), age));
    if !interrupted && !abandoned {
        return;
    }
    let Ok(_lock) = upload.lock_at_once() else { return };
    match journal::settle(bucket, upload, name) {
        Ok(Some(receipt)) => {
            journal::end(bucket, upload, name, &receipt);
            report.completed += 1;
        }
        Ok(None) if abandoned && upload.remove(bucket, &name.id, Sync::Names).is_ok() => report.uploads += 1,
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(id = name.id.as_str(), ?error, "an interrupted upload is not swept");
            report.unswept += 1;
        }
    }
}
