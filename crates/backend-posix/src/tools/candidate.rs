//! A file that may get a record.
//!
//! The record must describe the file's present bytes, and the name must still be that file's. To
//! make sure of that, the file is read only when its times are old enough that a later write would
//! change them (git's racily-clean rule). Then, under the lock that everyone who replaces the name
//! takes, the file must be unchanged since. If a write comes at that moment, its new mtime makes
//! the record stale at once.
//!
//! A write sets the times when it begins, and may store its bytes much later. So the file must not
//! be open for writing when reading begins, nor when it gets its record, as far as that can be
//! known.

use std::time::Duration;

use backend::{BackendError, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::{BucketName, ChecksumAlgorithm, Digester, Digests};

use super::progress::Progress;
use crate::base::options::DEFAULT_CHECKSUM;
use crate::buckets::documents;
use crate::error::{Fail, Op, leads_nowhere, retrying};
use crate::facts::chain::Chain;
use crate::facts::object_lock::LockedKey;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::{files, resolve};
use crate::layout::keymap::KeyPath;
use crate::layout::versions::Id;
use crate::limits::TIMES_SETTLE_REMOTE;
use crate::record::{ObjectContent, ObjectRecord, OfFile, Raw, Version, order_after};
use crate::records::{self, Present};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;
use crate::write::{keep, key_lock};

/// The reason why a damaged record is not replaced where versions are kept.
pub(super) const DAMAGED_VERSION: &str = "its record is damaged, so that it is not known which version of its key \
    it is: `slipway fsck --repair` makes a new one of it";

/// The sentence about a file that is a locked version, which no tool changes.
pub(crate) const LOCKED: &str =
    "it is a locked version, which another program has changed: `slipway fsck` tells more";

/// An open regular file, as it was when it was opened.
pub(crate) struct Candidate<'b> {
    pub file: OwnedFd,
    pub info: FileInfo,
    bucket: &'b Bucket<'b>,
    directory: Directory,
    name: String,
    /// Another program had it open for writing before it was read.
    written: bool,
    /// True if a damaged record may be replaced ([`Candidate::replace_damaged_record`]).
    replaces_damaged: bool,
}

impl<'b> Candidate<'b> {
    /// Opens the file; `None` if it does not exist, or is not a regular file.
    pub fn open(bucket: &'b Bucket<'b>, directory: &Directory, name: &str) -> Result<Option<Self>> {
        let file = match resolve::content(directory, name) {
            Err(errno) if leads_nowhere(errno) => return Ok(None),
            result => result.op("open a file")?,
        };
        let info = file_info::stat(&file)?;
        let (directory, name) = (directory.clone(), name.to_owned());
        let (written, replaces_damaged) = (false, false);
        Ok(info.is_file().then_some(Self { file, info, bucket, directory, name, written, replaces_damaged }))
    }

    /// Reads the file, and returns its ETag and its checksum by `algorithm`; `each` gets the bytes,
    /// too. Waits first if the file was written only just now.
    pub fn digest(
        &mut self,
        algorithm: ChecksumAlgorithm,
        progress: &Progress,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Digests> {
        self.wait_until_writes_show()?;
        let mut digester = Digester::new(Some(algorithm), self.bucket.store.options.etag);
        files::read_through(&self.file, self.info.stamp.size_bytes, |piece| {
            digester.update(piece);
            each(piece);
            progress.add_bytes(piece.len());
        })
        .op("read a file")?;
        Ok(digester.finish())
    }

    /// [`Candidate::digest`] by the default algorithm.
    pub fn digest_by_default(&mut self, progress: &Progress) -> Result<Digests> {
        self.digest(DEFAULT_CHECKSUM, progress, |_| {})
    }

    /// Waits until another write would show in the file's times, however coarse they are. The ctime
    /// decides, since programs cannot set it.
    pub fn wait_until_writes_show(&mut self) -> Result<()> {
        self.written = kernel_calls::has_writer(&self.file) == Some(true);
        let local = self.bucket.store.times_are_final(self.info.device);
        let settled = if local { self.info.settling_time() } else { TIMES_SETTLE_REMOTE };
        let age = i128::from(file_info::now_ns()) - self.info.changed_ns;
        let left = i128::try_from(settled.as_nanos()).unwrap_or(0) - age;
        // A time in the future is another machine's clock; there is no use in waiting for it.
        if left > 0 {
            std::thread::sleep(settled.min(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))));
            self.info = file_info::stat(&self.file)?;
        }
        Ok(())
    }

    /// Lets [`Candidate::adopt`] replace a damaged record, unless the bucket, which has this name,
    /// keeps versions: the file would become the null version of its key. Returns false then.
    pub fn replace_damaged_record(&mut self, name: &BucketName) -> bool {
        self.replaces_damaged = !documents::keeps_versions(self.bucket.store, name);
        self.replaces_damaged
    }

    /// Gives the file the record that `record` makes of its present one ([`records::update`]), if
    /// it has not changed since the last look. False if it has, or is open for writing.
    pub fn adopt(&self, record: impl Fn(Option<ObjectRecord>) -> ObjectRecord) -> Result<bool> {
        let stamped = |old| {
            let mut record = record(old);
            record.set_stamp(self.info.stamp);
            record
        };
        let Self { file, info: _, bucket, directory, name, written: _, replaces_damaged } = self;
        let replaces_damaged = || -> Result<bool> { Ok(*replaces_damaged) };
        // Bytes that a power cut could still take must not be vouched for.
        rustix::fs::fdatasync(&self.file).op("sync a file")?;
        let mut quiet = !self.written;
        self.under_lock(|lock| {
            quiet &= kernel_calls::has_writer(&self.file) != Some(true);
            let present = Present { bucket, directory, name, file, replaces_damaged: &replaces_damaged };
            Ok(quiet && records::update(lock, &present, stamped)?)
        })
    }

    /// True if a file of this key with this record is a version whose lock is in force.
    pub fn is_locked(&self, bucket_name: &BucketName, key: &str, record: &ObjectRecord) -> Result<bool> {
        let Some(version) = record.version else { return Ok(false) };
        let place = KeyPath::of(key);
        let locked = LockedKey { store: self.bucket.store, bucket: bucket_name, place: &place };
        match retrying(|| locked.refuse_if_locked(version.order)) {
            Err(BackendError::Locked) => Ok(true),
            asked => asked.map(|()| false),
        }
    }

    /// Its record, unparsed if that fails.
    pub fn raw_record(&self) -> Result<Raw<ObjectRecord>> {
        let raw = records::raw_of(self.bucket.store, &self.directory, &self.name, &self.file);
        raw.op("read a record")
    }

    /// Removes a damaged record. False if the file or its record has changed.
    pub fn remove_damaged_record(&self) -> Result<bool> {
        self.instead_of_damaged_record(|_| {
            records::remove(self.bucket.store, &self.directory, &self.name, &self.file)
                .attempt("remove a record")
        })
    }

    /// Replaces a damaged record, in a bucket that keeps versions, by one that says only that the
    /// file is the newest version of its key. It was that already, under an id that is lost. False
    /// if the file or its record has changed.
    pub fn make_newest_version(&self, place: &KeyPath) -> Result<bool> {
        let Self { file, info, bucket, directory, name, written: _, replaces_damaged: _ } = self;
        self.instead_of_damaged_record(|lock| {
            let newest = match Chain::open(bucket, place)? {
                Some(chain) => {
                    keep::settle_marker(bucket, &chain)?;
                    chain.olds().attempt("read the old versions of a key")?.first().map(|old| old.order)
                }
                None => None,
            };
            let version = Version { order: order_after(newest), id: Id::Order, is_marker: false };
            let new = ObjectRecord::of_version(Some(ObjectContent::of_foreign(info.stamp)), version);
            let present = Present { bucket, directory, name, file, replaces_damaged: &|| Ok(true) };
            records::update(lock, &present, |_| new).map(drop)
        })
    }

    /// Does `work` if the record is damaged, under the lock of the file's key. False if the file or
    /// its record has changed.
    fn instead_of_damaged_record(&self, work: impl Fn(&Lock) -> Result<(), Fail>) -> Result<bool> {
        self.under_lock(|lock| {
            // One in a file of its own may be another by now.
            let damaged = matches!(self.raw_record()?, Raw::Damaged(_));
            if damaged {
                work(lock)?;
            }
            Ok(damaged)
        })
    }

    /// Does `work` under the lock of the file's key, if the file has not changed since the last
    /// look; false if it has.
    fn under_lock(&self, mut work: impl FnMut(&Lock) -> Result<bool, Fail>) -> Result<bool> {
        retrying(|| {
            let lock = key_lock::take_name(self.bucket, &self.directory.path, &self.name)?;
            Ok(self.is_as_it_was()? && work(&lock)?)
        })
    }

    /// True if its name still leads to it, and it has not changed.
    pub fn is_as_it_was(&self) -> Result<bool, Fail> {
        let same = |info: &FileInfo| {
            (info.inode, info.device, info.stamp, info.changed_ns)
                == (self.info.inode, self.info.device, self.info.stamp, self.info.changed_ns)
        };
        match file_info::at(&self.directory, &self.name) {
            Ok(named) => Ok(same(&named) && same(&file_info::stat(&self.file)?)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno).attempt("look up a name"),
        }
    }
}
