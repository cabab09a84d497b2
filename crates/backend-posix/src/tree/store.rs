//! A tree: its root, and the abilities of its file system.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use backend::BackendError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use s3_types::BucketName;

use super::format::{self, FormatError};
use super::lock_clock::LockClock;
use super::presence::{self, Presence};
use super::serving::{self, Serving};
use super::unmounted::Unmounted;
use crate::base::options::{Metadata, Options};
use crate::base::unique;
use crate::error::{Fail, Io, Op as _, cure, storage_error};
use crate::fs::file_info::{self, FileIdentity, FileInfo};
use crate::fs::files::{self, give_to_owner_of};
use crate::fs::linking::{place_whole, place_whole_by};
use crate::fs::reading::read_names;
use crate::fs::resolve::{self, DIRECTORY, PLACE};
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::records::ATTRIBUTE;
use crate::layout::tree::{METADATA, MetadataFile};
use crate::limits::{METADATA_LOOKS_MAX, OWN_FILE_BYTES_MAX};
use crate::record::{self, ObjectRecord, Reading};
use crate::volume::clock::Clocks;
use crate::volume::description::{Needs, Volume};
use crate::volume::devices::Devices;
use crate::volume::lack::Lack;

/// The reason why a directory can't be served.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct OpenError {
    path: PathBuf,
    reason: OpenReason,
}

#[derive(Debug, thiserror::Error)]
enum OpenReason {
    #[error("cannot be opened: {}{}", .0, cure(*.0))]
    Open(Errno),
    #[error("{OWN_DIRECTORY} cannot be read: {}{}", .0, cure(*.0))]
    Own(Errno),
    #[error(
        "{OWN_DIRECTORY} is a symbolic link: move it away; if the server made what it leads to, put that in its place"
    )]
    OwnIsLink,
    #[error(
        "the system call openat2 is refused; it needs Linux 5.6 or later, and must be allowed by the sandbox or \
         container runtime: {0}"
    )]
    NoOpenat2(Errno),
    #[error("cannot be served: {}", .0.sentence())]
    Lacks(Lack),
    #[error("cannot be served: --require-mount is given, but no file system is mounted there")]
    NotMounted,
    #[error(
        "cannot be served with --metadata xattr: it was served with --metadata sidecar before, and its records are \
         in files"
    )]
    HasSidecars,
    #[error(
        "cannot be served with --metadata sidecar: {0} has its record in an extended attribute, which would no \
         longer be read. Serve the directory without that option, or copy its objects to another directory through \
         S3"
    )]
    HasAttributes(String),
    #[error(
        "cannot be served with --metadata sidecar: it was served with records in extended attributes before"
    )]
    NotedAttributes,
    #[error("{0} contains {1:?} as the place of records, which this version of slipway does not know")]
    UnknownMetadata(String, String),
    #[error("{0}: {1}")]
    Format(String, FormatError),
    #[error("cannot be served with --metadata sidecar: this option cannot be stored in {0}: {1}")]
    Note(String, String),
    #[error(
        "--chown: the server may not give files to other users: it needs the capability CAP_CHOWN, and \
         CAP_DAC_OVERRIDE to go on reading and replacing these files; root has both"
    )]
    NoChown,
    #[error("--impersonate: {0}")]
    NoImpersonation(String),
    #[error("cannot be served: a thread for background work cannot be started: {0}")]
    NoThread(std::io::Error),
    #[error("cannot be served: its file system cannot be tested: {0}")]
    Trial(Errno),
    #[error("cannot be served: its extended attributes cannot be written: {0}")]
    Attributes(Errno),
    #[error("{0}")]
    Upgrade(String),
}

impl OpenError {
    /// Makes the error for a file system that lacks something required.
    pub(crate) fn lacking(root: &Path, lack: Lack) -> Self {
        Self { path: root.to_owned(), reason: OpenReason::Lacks(lack) }
    }

    /// Makes the error for a file system that cannot be tested.
    pub(crate) fn no_trial(root: &Path, errno: Errno) -> Self {
        Self { path: root.to_owned(), reason: OpenReason::Trial(errno) }
    }

    /// Makes the error for a tree in which file calls cannot be made as other users.
    pub(crate) fn no_impersonation(root: &Path, why: String) -> Self {
        Self { path: root.to_owned(), reason: OpenReason::NoImpersonation(why) }
    }

    /// Makes the error for a thread that cannot be started.
    pub(crate) fn no_thread(root: &Path, error: std::io::Error) -> Self {
        Self { path: root.to_owned(), reason: OpenReason::NoThread(error) }
    }
}

/// An open tree.
#[derive(Debug)]
pub(crate) struct Store {
    pub root: OwnedFd,
    pub options: Options,
    /// The device (`st_dev`) of the root; a bucket that is a mount point has another one.
    pub device: u64,
    /// The root's volume, as it was tried at the start ([`Store::with_volume`]).
    pub volume: Volume,
    /// The devices of buckets that are not on the root's device.
    pub devices: Devices,
    clocks: Clocks,
    sidecars: bool,
    /// True if files made in `.slipway` are given to the owner of the tree. It is true for tools,
    /// which root runs on trees that another user serves.
    pub hands_over: bool,
    pub presence: Presence,
    pub unmounted: Unmounted,
    /// The number of times that a listing could not read a record or a directory.
    pub unread: AtomicU64,
    /// The time that object locks go by.
    pub lock_clock: LockClock,
    /// True if nothing may be written, not even to test something.
    only_read: bool,
    /// The lock by which a tool prevents upgrades of the tree; `None` for a gateway.
    #[expect(dead_code, reason = "dropping it releases the lock")]
    serving: Option<Serving>,
}

impl Store {
    /// Opens the tree at `root`, and checks that objects can be stored there.
    pub fn open(root: &Path, options: Options) -> Result<Self, OpenError> {
        if options.chown && !may_chown() {
            return Err(OpenError { path: root.to_owned(), reason: OpenReason::NoChown });
        }
        let store = Self { only_read: false, ..Self::attach(root, options)? };
        let checked = if store.sidecars { note_sidecars(&store.root) } else { check_attributes(&store.root) };
        checked.map_err(|reason| OpenError { path: root.to_owned(), reason })?;
        store.measure_clocks();
        Ok(store)
    }

    /// Opens the tree at `root` for files in its `.slipway`, without a check whether objects can be
    /// stored there.
    pub fn open_own(root: &Path, options: Options) -> Result<Self, OpenError> {
        Ok(Self { only_read: false, ..Self::attach(root, options)? })
    }

    /// Compares this machine's clock with the one that sets times in the tree, if that may be
    /// another clock. Until the comparison is done, the last one counts.
    pub fn measure_clocks(&self) {
        if self.volume.kind.is_local() || self.is_only_read() {
            return;
        }
        let changed_ns = || file_info::fresh(&self.root).ok().map(|info| info.changed_ns);
        self.clocks.measure(if self.sidecars {
            time_of_new_file(&self.root).ok()
        } else {
            let before = changed_ns();
            // A change that leaves nothing.
            let _ = check_attributes(&self.root);
            changed_ns().filter(|after| Some(*after) != before)
        });
    }

    /// Fails while the path of the tree leads elsewhere, or the bucket's file system is unmounted.
    pub fn check_place_of(&self, bucket: &BucketName) -> backend::Result<()> {
        self.presence.check()?;
        self.unmounted.check(bucket)
    }

    /// Counts that a listing could not read a record or a directory.
    pub fn count_unread(&self) {
        self.unread.fetch_add(1, Relaxed);
    }

    /// Makes the checks that are repeated while the tree is served.
    pub fn look_after(&self) {
        self.presence.look(&self.root);
        if self.unmounted.any() {
            self.unmounted.look(&self.root, &self.presence);
        }
        if self.clocks.was_set() {
            self.measure_clocks();
        }
    }

    /// Opens a tree as [`Store::open`] does, for a command that changes it. If the superuser runs
    /// the command, what it makes in `.slipway` is given to the user who serves the tree. No
    /// upgrade begins as long as the tree is open.
    pub fn open_as_tool(root: &Path, options: Options) -> Result<Self, OpenError> {
        let store = Self::open(root, options)?.handing_over();
        let serving = serving::keep_from_upgrade(&store.root, None)
            .map_err(|why| OpenError { path: root.to_owned(), reason: OpenReason::Upgrade(why) })?;
        Ok(Self { serving: Some(serving), ..store })
    }

    /// Makes the store give everything that it makes in `.slipway` to its owner, if this process is
    /// root's.
    pub fn handing_over(self) -> Self {
        Self { hands_over: rustix::process::geteuid().is_root(), ..self }
    }

    /// Opens a tree as [`Store::open`] does, for tools that only read: without the check, which
    /// writes.
    pub fn attach(root: &Path, options: Options) -> Result<Self, OpenError> {
        let fail = |reason| OpenError { path: root.to_owned(), reason };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(root, flags, Mode::empty()).map_err(|e| fail(OpenReason::Open(e)))?;
        resolve::plain(&fd, "", DIRECTORY).map_err(|e| fail(OpenReason::NoOpenat2(e)))?;
        let opened = |e| fail(OpenReason::Open(e));
        if options.require_mount && !presence::is_mount_point(&fd).map_err(opened)? {
            return Err(fail(OpenReason::NotMounted));
        }
        let device = file_info::of(&fd).map_err(opened)?.device;
        let volume = Volume::on(device, &fd).map_err(opened)?;
        // Before anything else is taken from the tree, or written to it.
        let of_own = |errno| match errno {
            Errno::LOOP => OpenReason::OwnIsLink,
            errno => OpenReason::Own(errno),
        };
        let format = format::check_at(&fd).map_err(|e| fail(of_own(e)))?;
        format.map_err(|(file, error)| fail(OpenReason::Format(join(OWN_DIRECTORY, file), error)))?;
        let found = match read_metadata_file(&fd).map_err(fail)? {
            MetadataFile::None if format::notes_sidecars(&fd).map_err(|e| fail(OpenReason::Own(e)))? => {
                MetadataFile::Torn
            }
            found => found,
        };
        let sidecars = match (options.metadata, found) {
            (Some(Metadata::Xattr), MetadataFile::Sidecar { .. } | MetadataFile::Torn) => {
                return Err(fail(OpenReason::HasSidecars));
            }
            (Some(Metadata::Sidecar), MetadataFile::None) | (_, MetadataFile::Torn) => {
                match has_attributes(&fd).map_err(opened)? {
                    Some(path) => return Err(fail(OpenReason::HasAttributes(path))),
                    None => true,
                }
            }
            (Some(Metadata::Sidecar), MetadataFile::Attributes) => {
                return Err(fail(OpenReason::NotedAttributes));
            }
            (_, MetadataFile::Sidecar { .. }) => true,
            (Some(Metadata::Xattr) | None, MetadataFile::None | MetadataFile::Attributes) => false,
        };
        let clocks = Clocks::new();
        let presence = Presence::new(root, volume.inodes_last);
        let unmounted = Unmounted::new(&presence);
        Ok(Self {
            root: fd,
            options,
            device,
            volume,
            devices: Devices::default(),
            clocks,
            sidecars,
            hands_over: false,
            presence,
            unmounted,
            unread: AtomicU64::new(0),
            lock_clock: LockClock::default(),
            only_read: true,
            serving: None,
        })
    }

    /// True if nothing may be written, not even to test something.
    pub fn is_only_read(&self) -> bool {
        self.only_read
    }

    /// Replaces an error by another one if it has a special meaning on this file system.
    pub fn explain(&self, error: BackendError) -> BackendError {
        match error {
            // Of a path that is too long, by sshfs. Elsewhere, of blocks whose checksum is wrong.
            BackendError::Io { ref source, .. }
                if !self.volume.kind.is_local() && Errno::from_io_error(source) == Some(Errno::BADMSG) =>
            {
                storage_error("", Errno::NAMETOOLONG)
            }
            error => error,
        }
    }

    /// Sets the volume of the root, after it was tried.
    pub fn with_volume(self, volume: Volume) -> Self {
        Self { volume, ..self }
    }

    /// Returns the abilities of a volume that the options need.
    pub fn needs(&self) -> Needs {
        let Options { allow_same_names, durability, .. } = self.options;
        Needs { names: !allow_same_names, flushes: durability.syncs_names(), attributes: !self.sidecars }
    }

    /// Returns the place where records are kept. Only [`records`](crate::records) reads and writes
    /// them, and needs this; the few others that ask have something to do for only one of the two
    /// places.
    pub fn metadata(&self) -> Metadata {
        if self.sidecars { Metadata::Sidecar } else { Metadata::Xattr }
    }

    /// True if records are in files beside the objects', not in attributes.
    pub(super) fn sidecars(&self) -> bool {
        self.sidecars
    }

    /// Writes to the tree's open `.slipway` the word that stops the first builds, which do not look
    /// for a format.
    pub fn note_format(&self, own: &OwnedFd) -> Result<(), BackendError> {
        let note =
            if self.sidecars { MetadataFile::Sidecar { stop: true } } else { MetadataFile::Attributes };
        match files::read_own(own, METADATA) {
            Ok(text) if MetadataFile::of(&text) == Some(note) => Ok(()),
            Ok(_) | Err(Errno::NOENT) => self.place_in_own(own, METADATA, 0o600, &note.text(), true),
            Err(errno) => Err(errno).op("read where the records are"),
        }
    }

    /// Writes a file in the tree's open `.slipway`, as a whole ([`place_whole`]).
    pub fn place_in_own(
        &self,
        own: &OwnedFd,
        name: &str,
        mode: u32,
        text: &str,
        replace: bool,
    ) -> Result<(), BackendError> {
        let content = |file: &OwnedFd| {
            if self.hands_over {
                give_to_owner_of(own, file)?;
            }
            Ok(Cow::Borrowed(text.as_bytes()))
        };
        place_whole_by(own, name, mode, replace, content).map_err(Fail::for_good)
    }

    /// True if any later change of a directory will show in its time; see [`Clocks::is_settled`].
    pub fn is_settled(&self, directory: impl AsFd, info: &FileInfo, began_ns: i64) -> bool {
        let volume = self.volume_of(info.device, directory);
        volume.is_ok_and(|volume| self.clocks.is_settled(volume.changes, info, began_ns))
    }

    /// True if a directory, whose time is still that in `info`, did not change while it was read
    /// from `began_ns` on, as far as the time alone can show that. On file systems that are not
    /// local it is always true.
    pub fn shows_changes(&self, directory: impl AsFd, info: &FileInfo, began_ns: i64) -> bool {
        let Volume { kind, changes, .. } = self.volume_on(info.device, directory);
        !kind.is_local() || self.clocks.is_settled(changes, info, began_ns)
    }

    /// Flushes the names in a directory to disk, if the durability level says so.
    pub fn sync_names(&self, directory: impl AsFd) -> Io<()> {
        if self.options.durability.syncs_names() { rustix::fs::fsync(directory) } else { Ok(()) }
    }

    /// Returns the volume that `file` is on; `device` is the file's. The kernel is asked once for
    /// each device.
    pub fn volume_of(&self, device: u64, file: impl AsFd) -> Io<Volume> {
        match self.known_volume(device) {
            Some(volume) => Ok(volume),
            None => self.devices.meet(device, file).map(|device| device.volume),
        }
    }

    /// Returns the volume as [`Store::volume_of`] does, with the most cautious values if it can't
    /// be known.
    pub fn volume_on(&self, device: u64, file: impl AsFd) -> Volume {
        self.volume_of(device, file).unwrap_or_else(|_| Volume::unknown())
    }

    /// Returns the volume as [`Store::volume_on`] does, for the device of `file`.
    pub fn volume_at(&self, file: impl AsFd) -> Volume {
        let device = file_info::of(&file).map(|info| info.device);
        device.map_or_else(|_| Volume::unknown(), |device| self.volume_on(device, file))
    }

    /// Returns the volume as [`Store::volume_of`] does, if the device is known already.
    pub fn known_volume(&self, device: u64) -> Option<Volume> {
        if device == self.device {
            return Some(self.volume);
        }
        self.devices.get(device).map(|device| device.volume)
    }

    /// True if the device keeps the order of changes ([`Volume::ordered`]). False for a device that
    /// is not known yet.
    pub fn keeps_order(&self, device: u64) -> bool {
        self.known_volume(device).is_some_and(|volume| volume.ordered)
    }

    /// Returns a file's inode number, if it never changes while the file exists. `file` is the file
    /// or its directory; its volume is looked up only if it is on another device than the root.
    pub fn lasting_inode(&self, file: impl AsFd, info: &FileInfo) -> Option<u64> {
        let last = self.volume_of(info.device, file).is_ok_and(|volume| volume.inodes_last);
        last.then_some(info.inode)
    }

    /// Returns the attributes of a file for its ETag, without an inode number that does not last;
    /// `file` is as for [`Store::lasting_inode`].
    pub fn lasting(&self, file: impl AsFd, info: &FileInfo) -> FileInfo {
        FileInfo { inode: self.lasting_inode(file, info).unwrap_or(0), ..*info }
    }

    /// Returns the identity of a file; `file` is as for [`Store::lasting_inode`].
    pub fn identity(&self, file: impl AsFd, info: &FileInfo) -> FileIdentity {
        FileIdentity { stamp: info.stamp, inode: self.lasting_inode(file, info).unwrap_or(0) }
    }

    /// True if space may be reserved ahead of the bytes of `file`. It depends on the file's volume,
    /// since a bucket may be on another file system than the root.
    pub fn reserves(&self, file: impl AsFd) -> bool {
        let volume = file_info::of(&file).and_then(|info| self.volume_of(info.device, file));
        volume.is_ok_and(|volume| !volume.reserves.is_no())
    }

    /// True if reads may be tried on the caller's own thread.
    pub fn reads_inline(&self) -> bool {
        self.volume.kind.is_local() && !self.sidecars
    }

    /// True if a file on `device` gets its final time when it is written, not when it is flushed to
    /// a server. It is false for a device that is not known yet.
    pub fn times_are_final(&self, device: u64) -> bool {
        self.known_volume(device).is_some_and(|volume| volume.kind.is_local())
    }

    /// True if renames show in the times of files ([`Volume::rename_changes`]). It is false for a
    /// device that is not known yet, and if other machines set the times.
    pub fn names_show_on(&self, device: u64) -> bool {
        let shows = |volume: Volume| volume.kind.is_local() && volume.rename_changes.is_yes();
        self.known_volume(device).is_some_and(shows)
    }

    /// Treats the tree as one on a file system without `RENAME_EXCHANGE`, from now on.
    #[cfg(test)]
    pub fn assume_swapless(&mut self) {
        self.volume.exchange = crate::volume::description::Fact::No;
    }

    /// Treats every bucket as one on another device than the root, from now on.
    #[cfg(test)]
    pub fn assume_elsewhere(&mut self) {
        self.device = u64::MAX;
    }

    /// Treats the tree as one on a file system that machines share, from now on.
    #[cfg(test)]
    pub fn assume_shared(&mut self) {
        let Volume { inodes_last, ordered, reflinks, reserves, .. } = self.volume;
        self.volume = Volume { inodes_last, ordered, reflinks, reserves, ..Volume::unknown() };
    }
}

fn may_chown() -> bool {
    let needed = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

fn read_metadata_file(root: &OwnedFd) -> Result<MetadataFile, OpenReason> {
    let path = join(OWN_DIRECTORY, METADATA);
    match files::read_own_and_info(root, &path, OWN_FILE_BYTES_MAX) {
        Ok((text, info)) => {
            // Anything but a regular file reads as an empty one without attributes.
            let note = MetadataFile::of(&text).filter(|_| info.is_some());
            let unknown = || String::from_utf8_lossy(text.trim_ascii()).into_owned();
            note.ok_or_else(|| OpenReason::UnknownMetadata(path, unknown()))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(MetadataFile::None),
        Err(errno) => Err(OpenReason::Own(errno)),
    }
}

/// Returns the path of an entry at the top of a bucket that has its record in an attribute, if one
/// of the first entries has one.
fn has_attributes(root: &OwnedFd) -> Io<Option<String>> {
    for bucket in names(root)? {
        let Ok(directory) = resolve::plain(root, &bucket, DIRECTORY) else { continue };
        for name in names(&directory)? {
            let place = resolve::plain(&directory, &name, PLACE);
            if place.is_ok_and(|place| {
                matches!(record::peek_place::<ObjectRecord>(place), Ok(Reading::Known(_) | Reading::Closed))
            }) {
                return Ok(Some(join(&bucket, &name)));
            }
        }
    }
    Ok(None)
}

/// Returns the first names in a directory.
fn names(directory: &OwnedFd) -> Io<Vec<String>> {
    let mut names = Vec::new();
    read_names(resolve::plain(directory, "", DIRECTORY)?, |name, _| {
        if let Ok(name) = name.to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
        Ok(names.len() < METADATA_LOOKS_MAX)
    })?;
    Ok(names)
}

/// Writes the file that says that records are in files, so that no gateway looks for them in
/// attributes.
fn note_sidecars(root: &OwnedFd) -> Result<(), OpenReason> {
    let found = read_metadata_file(root)?;
    if matches!(found, MetadataFile::Sidecar { .. }) {
        return Ok(());
    }
    let note = || {
        match rustix::fs::mkdirat(root, OWN_DIRECTORY, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.to_string()),
        }
        let own = resolve::plain(root, OWN_DIRECTORY, DIRECTORY).map_err(|e| e.to_string())?;
        let text = MetadataFile::Sidecar { stop: false }.text();
        place_whole(&own, METADATA, 0o600, text.as_bytes(), found == MetadataFile::Torn)
            .map_err(|e| format!("{e:?}"))?;
        rustix::fs::fsync(root).map_err(|e| e.to_string())
    };
    match note() {
        Ok(()) => Ok(()),
        // Another gateway was faster.
        Err(_) if matches!(read_metadata_file(root)?, MetadataFile::Sidecar { .. }) => Ok(()),
        // What can only be read needs no note.
        Err(_) if rustix::fs::accessat(root, ".", Access::WRITE_OK, AtFlags::EACCESS).is_err() => Ok(()),
        Err(why) => Err(OpenReason::Note(join(OWN_DIRECTORY, METADATA), why)),
    }
}

/// Returns the time that a new file in `.slipway` gets.
fn time_of_new_file(root: &OwnedFd) -> Io<i128> {
    let own = resolve::plain(root, OWN_DIRECTORY, DIRECTORY)?;
    let name = unique::name();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&own, &name, flags, Mode::from_raw_mode(0o600))?;
    let info = file_info::fresh(&file);
    drop(file);
    let _ = rustix::fs::unlinkat(&own, &name, AtFlags::empty());
    Ok(info?.changed_ns)
}

fn check_attributes(root: &OwnedFd) -> Result<(), OpenReason> {
    let probe = "user.slipway.probe";
    match rustix::fs::fsetxattr(root, probe, b"1", XattrFlags::empty()) {
        Ok(()) => {
            let _ = rustix::fs::fremovexattr(root, probe);
            return Ok(());
        }
        Err(Errno::OPNOTSUPP) => return Err(OpenReason::Lacks(Lack::Attributes)),
        // A tree that may only be read is fine; then reading must work.
        Err(Errno::ROFS | Errno::ACCESS | Errno::PERM | Errno::NOSPC | Errno::DQUOT) => {}
        Err(errno) => return Err(OpenReason::Attributes(errno)),
    }
    match rustix::fs::fgetxattr(root, ATTRIBUTE, &mut [0u8; 0]) {
        Ok(_) | Err(Errno::NODATA | Errno::RANGE) => Ok(()),
        Err(Errno::OPNOTSUPP) => Err(OpenReason::Lacks(Lack::Attributes)),
        Err(errno) => Err(OpenReason::Attributes(errno)),
    }
}

#[cfg(test)]
mod tests;
