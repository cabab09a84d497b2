//! The mark of a `.slipway` that the server made.
//!
//! Whoever may write in a bucket's directory can rename a directory in it to `.slipway`: one that
//! belongs to the server's user, or to the bucket's owner, and that is closed to all others looks
//! like ours by owner and mode. So what is ours has a mark that nobody can set who may not write
//! in the directory itself, and without it nothing in there is removed.
//!
//! The mark is set before the directory has its name, in DIR if that is possible: there the sweep
//! finds what a crash leaves. (In the bucket, `fsck` does.) One that has the name already never
//! gets it from us, not even if nothing is in it: it could be renamed back, be filled by its owner,
//! and come here once more.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use crate::bucket::Bucket;
use crate::error::{Fail, Io, Op};
use crate::files;
use crate::fs::linking::move_to_free;
use crate::fs::reading::{is_empty, leaves_traits};
use crate::fs::removing;
use crate::keymap::OWN_DIRECTORY;
use crate::layout::aside::aside_of_nothing;
use crate::layout::mark::{ATTRIBUTE, FILE};
use crate::layout::scattered::scattered_name;
use crate::ours::Before;
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;
use crate::trust::Purpose;

/// No name is longer.
const NAME_BYTES_MAX: usize = 255;

/// True if an open `.slipway`, which others may not write in, has its mark.
pub(crate) fn is_set(own: &OwnedFd, stat: &Stat) -> Io<bool> {
    match rustix::fs::fgetxattr(own, ATTRIBUTE, &mut [0u8; 16]) {
        Ok(_) => return Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    match rustix::fs::statat(own, FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(file) => {
            Ok(FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_uid == stat.st_uid)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// True if the mark of an open directory says that it is the one of this name ([`set_for`]).
pub(crate) fn is_set_for(name: &str, own: &OwnedFd, stat: &Stat) -> Io<bool> {
    let mut text = [0u8; NAME_BYTES_MAX];
    match rustix::fs::fgetxattr(own, ATTRIBUTE, &mut text) {
        Ok(length) => return Ok(&text[..length] == name.as_bytes()),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
        Err(Errno::RANGE) => return Ok(false),
        Err(errno) => return Err(errno),
    }
    Ok(is_set(own, stat)? && files::read_own_up_to(own, FILE, NAME_BYTES_MAX)? == name.as_bytes())
}

/// Gives an open directory the mark of a `.slipway`.
fn set(store: &Store, own: &OwnedFd) -> Io<()> {
    set_text(store, own, b"1", b"")
}

/// Gives an open directory a mark that is good for one name only.
pub(crate) fn set_for(name: &str, store: &Store, own: &OwnedFd) -> Io<()> {
    set_text(store, own, name.as_bytes(), name.as_bytes())
}

fn set_text(store: &Store, own: &OwnedFd, in_attribute: &[u8], in_file: &[u8]) -> Io<()> {
    if !store.sidecars() {
        match rustix::fs::fsetxattr(own, ATTRIBUTE, in_attribute, XattrFlags::empty()) {
            Err(Errno::OPNOTSUPP) => {}
            result => return result,
        }
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(own, FILE, flags, Mode::from_raw_mode(0o600)) {
        Err(Errno::EXIST) => return Ok(()),
        result => result?,
    };
    files::write_all(&file, in_file, 0)?;
    if store.hands_over { give_to_owner_of(own, file) } else { Ok(()) }
}

fn give_to_owner_of(directory: impl AsFd, made: impl AsFd) -> Io<()> {
    let owner = rustix::fs::fstat(directory)?;
    rustix::fs::fchown(made, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}

/// Removes an open, empty `.slipway` of a bucket, and its mark. That stays if the directory does.
pub(crate) fn remove_marked(bucket: &Bucket<'_>, own: &OwnedFd) -> Io<()> {
    let unmarked = rustix::fs::unlinkat(own, FILE, AtFlags::empty());
    let removed = removing::remove_directory(&bucket.fd, OWN_DIRECTORY);
    if removed.is_err() && unmarked.is_ok() {
        set(bucket.store, own)?;
    }
    removed
}

/// Opens `.slipway`, making it if needed.
pub(crate) fn open_or_make(bucket: &Bucket<'_>) -> Result<OwnedFd, Fail> {
    match bucket.own() {
        Err(Errno::NOENT) => {}
        result => {
            let own = result.attempt("open a directory of the bucket's own")?;
            // An empty one without the mark makes way: whoever can have put it there could have
            // removed it as well.
            let makes_way = || Ok::<_, Errno>(!is_set(&own, &rustix::fs::fstat(&own)?)?);
            if makes_way() != Ok(true)
                || rustix::fs::unlinkat(&bucket.fd, OWN_DIRECTORY, AtFlags::REMOVEDIR).is_err()
            {
                return Ok(own);
            }
        }
    }
    if make(bucket)? {
        bucket.sync_made(&*bucket.fd)?;
    }
    // By its name: others may have given that to another one by now.
    bucket.own().attempt("open a directory of the bucket's own")
}

/// Makes `.slipway`. False if someone else was faster.
fn make(bucket: &Bucket<'_>) -> Result<bool, Fail> {
    let root = &bucket.store.root;
    // In DIR the sweep finds what a crash leaves, without reading all of the bucket. Not where that
    // gives it a group or an ACL, which what is staged in there would have.
    if !leaves_traits(root) {
        match make_in(bucket, root, &aside_of_nothing()) {
            // The bucket is a file system of its own, or DIR another user's.
            Ok(Err(Errno::XDEV | Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {}
            result => return result?.attempt("name a directory of the bucket's own"),
        }
    }
    make_in(bucket, &bucket.fd, &scattered_name())?.attempt("name a directory of the bucket's own")
}

/// Makes `.slipway` under a name in `above`, and moves it to its place.
fn make_in(bucket: &Bucket<'_>, above: &OwnedFd, prepared: &str) -> Result<Io<bool>, Fail> {
    let before = Before::making();
    if let Err(errno) = rustix::fs::mkdirat(above, prepared, Mode::from_raw_mode(0o700)) {
        return Ok(Err(errno));
    }
    let made = prepare(bucket, above, prepared, before);
    let moved = match &made {
        Ok(_) => match move_to_free(above, prepared, &bucket.fd, OWN_DIRECTORY) {
            // Someone else was faster.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => Ok(false),
            result => result.map(|()| true),
        },
        Err(_) => Ok(false),
    };
    if moved != Ok(true) {
        if let Ok(made) = &made {
            let _ = rustix::fs::unlinkat(made, FILE, AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(above, prepared, AtFlags::REMOVEDIR);
    }
    let made = made?;
    if moved == Ok(true) {
        // Not before: what finds out why a directory can't be flushed needs a `.slipway`.
        bucket.sync_made(&made)?;
    }
    Ok(moved)
}

/// Opens what was made after `before` under a name in `above`. AGAIN if another is in its place, as
/// far as that can be told.
pub(crate) fn open_made(above: impl AsFd, made: &str, before: Before) -> Io<OwnedFd> {
    let opened = resolve::create_here(above, made, DIRECTORY, Mode::empty())?;
    let entries = resolve::plain(&opened, "", DIRECTORY)?;
    if before.check(&opened).is_ok() && is_empty(entries)? { Ok(opened) } else { Err(Errno::AGAIN) }
}

/// Gives what was made after `before` its owner and the mark. An error if another is in its place.
pub(crate) fn prepare(
    bucket: &Bucket<'_>,
    above: impl AsFd,
    prepared: &str,
    before: Before,
) -> Result<OwnedFd, Fail> {
    let own = match open_made(above, prepared, before) {
        Err(Errno::AGAIN) => return Err(Fail::Retry),
        result => result.attempt("open a directory of the bucket's own")?,
    };
    bucket.vouch(&own, prepared, Purpose::Work).attempt("use a directory of the bucket's own")?;
    if bucket.store.hands_over {
        give_to_owner_of(&bucket.fd, &own).attempt("give a directory to its owner")?;
    }
    set(bucket.store, &own).attempt("mark a directory of the bucket's own")?;
    Ok(own)
}
