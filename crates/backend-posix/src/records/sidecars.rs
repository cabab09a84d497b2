//! Reads, writes and removes records in sidecars ([`Sidecar`]).

use std::borrow::Cow;

use backend::BackendError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use s3_types::UnixAccount;

use super::sidecar::{Entry, Sidecar};
use crate::base::unique;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, FileIdentity, FileInfo};
use crate::fs::linking::create_whole;
use crate::fs::resolve::{self, DIRECTORY, PLACE};
use crate::fs::{files, removing};
use crate::layout::keymap::RECORDS;
use crate::layout::records::OF_DIRECTORY;
use crate::layout::scattered::scattered_name;
use crate::record::{self, Kind, Raw, Reading};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::tree::{made, ours, trust};
use crate::volume::flat::Naming;
use crate::volume::long_path;

/// Reads the record of a name in a directory, without opening the file.
pub(super) fn read<R: Kind>(store: &Store, directory: impl AsFd, name: &str) -> Io<Reading<R>> {
    let info = file_info::at(&directory, name)?;
    if !info.is_file() {
        return Ok(Reading::Nothing);
    }
    let identity = store.identity(&directory, &info);
    Ok(Sidecar::read(directory, name)?.map_or(Reading::Nothing, |sidecar| sidecar.brief(Some(identity))))
}

/// Returns the sidecar of the open file at `path`, if it has one, and the file's identity.
fn of_open(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Option<(Sidecar, FileIdentity)>> {
    let Some(sidecar) = Sidecar::read(directory, path)? else { return Ok(None) };
    let identity = store.identity(&file, &file_info::of(&file)?);
    Ok(Some((sidecar.recognize(identity, || file_info::born_ns(file)), identity)))
}

/// Reads the record of the open file at `path`.
pub(super) fn of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Reading<R>> {
    let found = of_open(store, directory, path, file)?;
    Ok(found.map_or(Reading::Nothing, |(sidecar, identity)| sidecar.record(Some(identity))))
}

/// Reads the record as [`of`] does, in its stored form.
pub(super) fn raw_of<R: Kind>(
    store: &Store,
    directory: impl AsFd,
    path: &str,
    file: impl AsFd,
) -> Io<Raw<R>> {
    let found = of_open(store, directory, path, file)?;
    Ok(found.map_or(Raw::Absent, |(sidecar, identity)| sidecar.raw(Some(identity))))
}

/// Reads the record of an open directory.
pub(super) fn of_directory<R: Kind>(directory: impl AsFd) -> Io<Reading<R>> {
    let sidecar = Sidecar::read(directory, OF_DIRECTORY)?;
    Ok(sidecar.map_or(Reading::Nothing, |sidecar| sidecar.record(None)))
}

/// Reads the record as [`of_directory`] does, in its stored form.
pub(super) fn raw_of_directory<R: Kind>(directory: impl AsFd) -> Io<Raw<R>> {
    Ok(Sidecar::read(directory, OF_DIRECTORY)?.map_or(Raw::Absent, |sidecar| sidecar.raw(None)))
}

/// True if the open file at `path`, which `info` describes, still has that name. Otherwise a
/// sidecar there, without a record of the file, may have been written later for another file.
pub(super) fn has_name(directory: impl AsFd, path: &str, info: &FileInfo) -> bool {
    let named = resolve::plain(directory, path, PLACE).and_then(file_info::of);
    named.is_ok_and(|named| named.id() == info.id())
}

/// Writes the record of a file that already has its name; the caller holds the key's lock.
pub(super) fn put<R: Kind>(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    file: impl AsFd,
    record: &R,
) -> Result<(), Fail> {
    let info = file_info::of(&file).attempt("stat a file")?;
    let inode = bucket.store.identity(file, &info).inode;
    write(bucket, directory, name, (&record::to_bytes(record), inode), None)
}

/// Writes the record of a directory, or removes it if `record` is empty.
pub(super) fn put_of_directory<R: Kind>(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    record: &R,
) -> Result<(), Fail> {
    if record::is_empty(record) {
        return remove(bucket.store, directory, OF_DIRECTORY).attempt("remove a record");
    }
    write(bucket, directory, OF_DIRECTORY, (&record::to_bytes(record), 0), None)
}

/// Writes the record of a directory that has none.
pub(super) fn mark<R: Kind>(bucket: &Bucket<'_>, directory: impl AsFd, record: &R) -> Result<(), Fail> {
    if Sidecar::read(&directory, OF_DIRECTORY).attempt("read a record")?.is_some() {
        return Ok(());
    }
    put_of_directory(bucket, directory, record)
}

/// Writes the sidecar of `name` in `directory`: the record of the new file, whose inode number is
/// `inode` (0 if such numbers don't last), and that of the file `current`, which still has the
/// name. The caller holds the lock of the file's key.
pub(super) fn write(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    (record, inode): (&[u8], u64),
    current: Option<FileIdentity>,
) -> Result<(), Fail> {
    let born_ns = || resolve::plain(&directory, name, PLACE).ok().and_then(file_info::born_ns);
    let old = match current {
        Some(current) => {
            let old = Sidecar::read(&directory, name).attempt("read a record")?;
            old.map(|old| old.recognize(current, born_ns))
        }
        None => None,
    };
    let old = old.as_ref().zip(current).and_then(|(old, current)| {
        let entry = old.of(Some(current)).or_else(|| old.of_changed(Some(current)));
        entry.map(|entry| Entry { inode: current.inode, ..entry })
    });
    let new = Entry { inode, record };
    replace(bucket, directory, name, |own| Sidecar::pack(own, [new].into_iter().chain(old)))
}

/// Removes the sidecar of a file that no longer exists. The caller holds the lock of that file's
/// key. Fails with EPERM if the file with the sidecar's name is not a record. If the server did not
/// make the folder of records in `directory`, nothing is removed.
pub(super) fn remove(store: &Store, directory: impl AsFd, name: &str) -> Io<()> {
    let folder = match resolve::plain(&directory, RECORDS, DIRECTORY) {
        // A link that someone put there is no folder of ours.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        Err(errno) if long_path::is_too_long(&directory, errno) => return Ok(()),
        result => result?,
    };
    if trust::stranger_in(store, &directory, &folder)?.is_some() {
        return Ok(());
    }
    let removed = match Sidecar::may_go(store, &folder, name) {
        Ok(true) => rustix::fs::unlinkat(&folder, name, AtFlags::empty()),
        Ok(false) => Err(Errno::PERM),
        Err(errno) => Err(errno),
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) if long_path::is_too_long(&folder, errno) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Copies the sidecar of a file to a second name of the file, in another directory. If the sidecar
/// belongs to a file that had the name before, it is not copied: the new sidecar would attribute
/// its record to this file ([`Sidecar::recognize`]).
pub(super) fn take_along(
    bucket: &Bucket<'_>,
    from: (impl AsFd, &str),
    to: (impl AsFd, &str),
) -> Result<(), Fail> {
    let (directory, name) = from;
    let Some(sidecar) = Sidecar::read(&directory, name).attempt("read a record")? else { return Ok(()) };
    let place = match resolve::plain(&directory, name, PLACE) {
        // Another program's link is there since.
        Err(errno @ Errno::LOOP) => return Err(Fail::lost_to("look up a name", errno)),
        place => place.attempt("look up a name")?,
    };
    let info = file_info::of(&place).attempt("stat a file")?;
    let file = bucket.store.identity(&place, &info);
    let sidecar = sidecar.recognize(file, || file_info::born_ns(&place));
    if !sidecar.may_be_of(file) {
        return Ok(());
    }
    replace(bucket, to.0, to.1, |own| {
        let own = if sidecar.is_original() { own } else { 0 };
        Sidecar::pack(own, sidecar.entries())
    })
}

/// Removes the folder of records of a directory that will be removed, if it contains only the
/// directory's own record.
pub(super) fn clear(store: &Store, directory: impl AsFd) -> Io<()> {
    remove(store, &directory, OF_DIRECTORY)?;
    match removing::remove_directory(directory, RECORDS) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Writes a sidecar as a whole, and flushes it to disk if the durability level says so. `pack`
/// makes its contents for the inode number that it gets (0 if such numbers don't last).
fn replace(
    bucket: &Bucket<'_>,
    directory: impl AsFd,
    name: &str,
    pack: impl Fn(u64) -> Vec<u8>,
) -> Result<(), Fail> {
    let folder = folder(bucket, &directory)?;
    if !Sidecar::may_go(bucket.store, &folder, name).attempt("look at a record")? {
        tracing::warn!(
            path = ?files::path_of(&folder).join(name),
            "the server expects the record of an object at this path, but the file there is something else: it is \
             kept, and writes of the object are refused. A power cut with --durability none can leave such a \
             file. If no program needs it, remove it, or run slipway rehash, which replaces it"
        );
        return Err(BackendError::Denied { operation: "replace a file that is not a record" }.into());
    }
    let place = |from: &OwnedFd, staged: &str| -> Result<Io<()>, Fail> {
        let options = &bucket.store.options;
        let sync = options.durability.syncs_data();
        create_whole(from, staged, options.file_mode, sync, |file| {
            give_away(bucket, &directory, file)?;
            let identity = bucket.store.identity(file, &file_info::of(file)?);
            Ok(Cow::Owned(pack(identity.inode)))
        })?;
        let placed = rustix::fs::renameat(from, staged, &folder, name);
        if placed.is_err() {
            let _ = rustix::fs::unlinkat(from, staged, AtFlags::empty());
        }
        Ok(placed)
    };
    let placed = match place(&bucket.staging_directory()?, &unique::name())? {
        // Something is mounted inside the bucket. What a crash leaves here, `fsck` finds.
        Err(Errno::XDEV) => place(&folder, &scattered_name())?,
        placed => placed,
    };
    placed.naming(&folder, "place a record")?;
    bucket.store.sync_names(&folder).attempt("sync a directory")
}

/// Opens the folder of records of a directory, making it if it is missing.
fn folder(bucket: &Bucket<'_>, directory: impl AsFd) -> Result<OwnedFd, Fail> {
    let checked = |folder: OwnedFd| {
        let vouched = bucket.vouch_for_records(&directory, &folder, RECORDS);
        vouched.attempt("use a directory's records").map(|()| folder)
    };
    match resolve::plain(&directory, RECORDS, DIRECTORY) {
        Err(Errno::NOENT) => {}
        result => return checked(result.op("open a directory's records")?),
    }
    let mode = Mode::from_raw_mode(bucket.store.options.directory_mode);
    let before = made::Before::making();
    match rustix::fs::mkdirat(&directory, RECORDS, mode) {
        Ok(()) => {}
        Err(errno @ Errno::EXIST) => {
            return Err(Fail::lost_to("make a directory for records", errno));
        }
        Err(errno) => return Err(errno).attempt("make a directory for records"),
    }
    bucket.store.sync_names(&directory).attempt("sync a directory")?;
    let owner = rustix::fs::fstat(&directory).attempt("stat a directory")?;
    let owner = UnixAccount::new(owner.st_uid, owner.st_gid).filter(|_| bucket.store.hands_over);
    if owner.is_none() {
        let folder = resolve::plain(&directory, RECORDS, DIRECTORY);
        return checked(folder.attempt("open a directory's records")?);
    }
    // Another directory may have its name by now, which must not be given away.
    let folder = ours::open_new(bucket, &directory, RECORDS, owner, before)?;
    files::give(&folder, owner).attempt("change the owner of a directory of records")?;
    Ok(folder)
}

/// Gives a file that root made, while it works for another user, to the owner of the file's
/// directory.
fn give_away(bucket: &Bucket<'_>, directory: impl AsFd, made: impl AsFd) -> Io<()> {
    if !bucket.store.hands_over {
        return Ok(());
    }
    let owner = rustix::fs::fstat(directory)?;
    rustix::fs::fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}
