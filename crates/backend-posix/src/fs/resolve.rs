//! Opens paths safely.
//!
//! Everything is opened by `openat2`, beneath a directory that is already open. In the common case
//! symbolic links are forbidden altogether, and one call decides. Only a path with a link takes the
//! slow way: it is resolved beneath the bucket, and /proc then shows where it led, so that a link
//! can't lead into `.slipway` or into snapshots.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::time::Instant;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::descriptor;
use super::file_info::{self, FileInfo};
use crate::error::{Io, LEASED};
use crate::layout::keymap::{self, OWN_DIRECTORY, RECORDS};
use crate::limits::{LEASE_PAUSE, LEASE_WAIT_MAX, PATH_BYTES_MAX, UNSURE_PAUSE, UNSURE_TRIES};

/// The flags with which files are opened for reading. The opening does not wait if the file is a
/// FIFO after all, and a terminal does not become the controlling one.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The flags with which a name is held without opening its file. The descriptor then stands for the
/// file, whatever happens to its name.
pub(crate) const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// The flags with which directories are opened.
pub(crate) const DIRECTORY: OFlags = READ.union(OFlags::DIRECTORY);

const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
const PLAIN: ResolveFlags = BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// Opens a path without symbolic links; ELOOP if it has one.
pub(crate) fn plain(directory: impl AsFd, path: &str, flags: OFlags) -> Io<OwnedFd> {
    create(directory, path, flags, Mode::empty())
}

/// Opens a directory at a path that may not be UTF-8, without symbolic links.
pub(crate) fn plain_directory(directory: impl AsFd, path: &[u8]) -> Io<OwnedFd> {
    if let Ok(path) = str::from_utf8(path) {
        return plain(directory, path, DIRECTORY);
    }
    let mut opened = plain(directory, "", DIRECTORY)?;
    for name in path.split(|byte| *byte == b'/') {
        opened = rustix::fs::openat2(&opened, name, DIRECTORY, Mode::empty(), PLAIN)?;
    }
    Ok(opened)
}

/// Holds a name, which need not be UTF-8, in a directory, without opening its file.
pub(crate) fn place_here(directory: impl AsFd, name: &[u8]) -> Io<OwnedFd> {
    rustix::fs::openat2(directory, name, PLACE | OFlags::NOFOLLOW, Mode::empty(), PLAIN)
}

/// Opens a path as [`plain`] does; `mode` is that of a file that `flags` may create.
pub(crate) fn create(directory: impl AsFd, path: &str, flags: OFlags, mode: Mode) -> Io<OwnedFd> {
    by_pieces(directory, path, flags, mode, PLAIN)
}

/// Opens a path as [`create`] does, without crossing a mount point; EXDEV if there is one on the
/// way.
pub(crate) fn create_here(directory: impl AsFd, path: &str, flags: OFlags, mode: Mode) -> Io<OwnedFd> {
    by_pieces(directory, path, flags, mode, PLAIN | ResolveFlags::NO_XDEV)
}

/// Opens a path as [`plain`] does, if that is possible without waiting for a disk and without
/// leaving the file system; otherwise it fails.
pub(crate) fn cached(directory: impl AsFd, path: &str, flags: OFlags) -> Io<OwnedFd> {
    let resolve = PLAIN | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)
}

/// Opens a path as [`cached`] does, but also across mount points. Behind one there may be a network
/// file system: opening a file there may wait, but with [`PLACE`] it does not.
pub(crate) fn cached_across(directory: impl AsFd, path: &str, flags: OFlags) -> Io<OwnedFd> {
    let resolve = PLAIN | ResolveFlags::CACHED;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), resolve)
}

/// Opens a path that may have symbolic links, as long as they stay in `directory`, and out of its
/// own `.slipway` and of directories that no key leads to. Also returns where it led, relative to
/// `directory`.
pub(crate) fn following(directory: impl AsFd, path: &str, flags: OFlags) -> Io<(OwnedFd, String)> {
    let directory = directory.as_fd();
    let opened = by_pieces(directory, path, flags, Mode::empty(), BENEATH)?;
    let (top, place) = (place_of(directory)?, place_of(&opened)?);
    let inside = Path::new(place.as_os_str()).strip_prefix(&top).map_err(|_| Errno::XDEV)?;
    let own = |c: Component<'_>| {
        c.as_os_str()
            .to_str()
            .is_some_and(|name| matches!(name, OWN_DIRECTORY | RECORDS) || keymap::is_of_file_system(name))
    };
    if inside.components().any(own) {
        return Err(Errno::XDEV);
    }
    // A place that is not UTF-8 only names a lock here, and is never reached by a key.
    Ok((opened, String::from_utf8_lossy(inside.as_os_str().as_bytes()).into_owned()))
}

/// Opens the file or directory at a path without symbolic links; ENXIO for anything else. See
/// [`reopen`].
pub(crate) fn content(directory: impl AsFd, path: &str) -> Io<OwnedFd> {
    content_after(directory, path, |_| ()).map(|(file, ())| file)
}

/// Opens a path as [`content`] does. `look` is called with the entry before it is opened, and its
/// result is returned, too.
pub(crate) fn content_after<T>(
    directory: impl AsFd,
    path: &str,
    look: impl Fn(&OwnedFd) -> T,
) -> Io<(OwnedFd, T)> {
    let open = || {
        let place = plain(&directory, path, PLACE)?;
        let seen = look(&place);
        let file = reopen(&place, || plain(&directory, path, READ));
        file.map(|file| Some((file, seen))).or_else(|errno| match errno {
            // FUSE, of a file that was replaced since its name was looked up.
            Errno::NOENT | Errno::STALE => Ok(None),
            errno => Err(errno),
        })
    };
    for tries in 1..UNSURE_TRIES {
        if let Some(file) = open()? {
            return Ok(file);
        }
        pause(tries);
    }
    open()?.ok_or(Errno::NOENT)
}

/// Waits, so that another program or gateway that is replacing a name can finish. The wait is
/// longer with each try, about 25 ms in total.
pub(crate) fn pause(tries: usize) {
    std::thread::sleep(UNSURE_PAUSE.saturating_mul(u32::try_from(tries).unwrap_or(u32::MAX)));
}

/// Opens the file or directory that a [`PLACE`] holds; ENXIO for anything else, which is never
/// opened: that would wake a process that waits to write to a FIFO, and may trigger a device.
/// Without /proc, `otherwise` opens it.
pub(crate) fn reopen(place: &OwnedFd, otherwise: impl FnOnce() -> Io<OwnedFd>) -> Io<OwnedFd> {
    let info = file_info::of(place)?;
    if !info.is_file() && !info.is_directory() {
        return Err(Errno::NXIO);
    }
    match unleased(|| rustix::fs::open(descriptor::path(place.as_fd()), READ, Mode::empty())) {
        // Not said of a file that has lost its name.
        Err(Errno::NOENT) => otherwise(),
        result => result,
    }
}

fn place_of(file: impl AsFd) -> Io<std::path::PathBuf> {
    let link = descriptor::path(file.as_fd());
    let place = rustix::fs::readlinkat(CWD, link, Vec::new())?;
    Ok(std::ffi::OsStr::from_bytes(place.as_bytes()).into())
}

/// Opens a long path in pieces: a key of 1,024 bytes may have a path of 15 KiB, which the kernel
/// does not take as a whole.
fn by_pieces(
    directory: impl AsFd,
    path: &str,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Io<OwnedFd> {
    let mut head;
    let (mut directory, mut path) = (directory.as_fd(), path);
    let mut opened;
    while path.len() > PATH_BYTES_MAX {
        let cut =
            path.as_bytes()[..PATH_BYTES_MAX].iter().rposition(|b| *b == b'/').ok_or(Errno::NAMETOOLONG)?;
        (head, path) = (&path[..cut], &path[cut + 1..]);
        opened = sure(
            directory,
            head,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            resolve,
        )?;
        directory = opened.as_fd();
    }
    sure(directory, path, flags, mode, resolve)
}

fn sure(directory: impl AsFd, path: &str, flags: OFlags, mode: Mode, resolve: ResolveFlags) -> Io<OwnedFd> {
    let path = if path.is_empty() { "." } else { path };
    let without_links = resolve.contains(ResolveFlags::NO_SYMLINKS);
    for _ in 1..UNSURE_TRIES {
        match rustix::fs::openat2(&directory, path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR | Errno::STALE) => {}
            // Without links nothing leads out: what was found was moved away in the same moment, as
            // a file is that becomes a directory, and something else has its name; or a network
            // file system made the kernel look anew.
            Err(Errno::XDEV) if without_links => {}
            result => return result,
        }
    }
    let open = || rustix::fs::openat2(&directory, path, flags, mode, resolve);
    match open() {
        // Who only holds the name breaks no lease.
        Err(Errno::AGAIN)
            if !flags.contains(OFlags::PATH)
                && rustix::fs::openat2(&directory, path, PLACE, Mode::empty(), resolve).is_ok() =>
        {
            unleased(open)
        }
        result => result,
    }
}

/// Opens a file on which another program may hold a lease (`F_SETLEASE`, as Samba and NFS servers
/// do). If the file is opened without waiting, the kernel returns EAGAIN, and tells the holder to
/// give up the lease, which takes milliseconds. Returns [`LEASED`] if the holder does not.
fn unleased(open: impl Fn() -> Io<OwnedFd>) -> Io<OwnedFd> {
    let mut begun = None;
    loop {
        match open() {
            Err(Errno::AGAIN) => {
                if begun.get_or_insert_with(Instant::now).elapsed() > LEASE_WAIT_MAX {
                    return Err(LEASED);
                }
                std::thread::sleep(LEASE_PAUSE);
            }
            result => return result,
        }
    }
}

/// Does the same as [`file_info::at`] for a path in which no link is followed: ELOOP if there is
/// one on the way.
pub(crate) fn at_path(directory: impl AsFd, path: &str) -> Io<FileInfo> {
    let look = || file_info::of(plain(&directory, path, PLACE | OFlags::NOFOLLOW)?);
    match look() {
        // As in `at_following`.
        Err(Errno::IO) => look(),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::fs::{RenameFlags, renameat_with};

    use super::*;

    /// A name that is exchanged again and again, as when a file becomes a directory, can always be
    /// opened.
    #[test]
    fn what_is_swapped_for_something_outside_is_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("staging/prepared")).unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        fs::write(root.path().join("d/a"), "").unwrap();
        let open = |name: &str| fs::File::open(root.path().join(name)).unwrap();
        let (staging, directory) = (open("staging"), open("d"));
        let swap = || renameat_with(&staging, "prepared", &directory, "a", RenameFlags::EXCHANGE);
        if swap() == Err(Errno::INVAL) {
            return eprintln!(
                "\n*** SKIPPED: no RENAME_EXCHANGE here, so names that are exchanged are NOT tested ***\n"
            );
        }
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    swap().unwrap();
                }
            });
            for _ in 0..200_000 {
                let opened = plain(&directory, "a", READ);
                if opened.is_err() {
                    done.store(true, Ordering::Relaxed);
                }
                opened.unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
