//! `DIR/.slipway`, where gateways keep files about a tree, such as root's keys and the account.

use std::ffi::OsStr;
use std::fs;
use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use backend_posix::format::FILE_BYTES_MAX;
use backend_posix::open_plain_file;
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

/// The bits of a mode that let other users write.
const WRITABLE: u32 = 0o022;

/// The name of the state directory.
pub const STATE_DIR: &str = ".slipway";

/// The access of a gateway to a state directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and create files.
    Keep,
    /// Only read files.
    Read,
}

impl Access {
    /// Returns the access of a gateway that serves a tree read-only, or not.
    pub const fn of(read_only: bool) -> Self {
        if read_only { Self::Read } else { Self::Keep }
    }
}

/// Creates the file `name` in `state_dir` with `text`, and flushes it to disk; creates `state_dir`
/// if it does not exist. Returns false if the file exists already: if several gateways start at
/// once on one tree, one creates the file, and all use it. Fails with [`Access::Read`], and if
/// nothing can be written.
pub fn create(state_dir: &Path, access: Access, name: &str, text: &[u8], mode: u32) -> Result<bool> {
    match write(state_dir, access, name, text, mode, place) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(e),
    }
}

/// Replaces the file `name` as a whole; otherwise it does the same as [`create`].
pub fn replace(state_dir: &Path, access: Access, name: &str, text: &[u8], mode: u32) -> Result<()> {
    write(state_dir, access, name, text, mode, |from, to| fs::rename(from, to))
}

fn write(
    state_dir: &Path,
    access: Access,
    name: &str,
    text: &[u8],
    mode: u32,
    place: impl Fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    if access == Access::Read {
        return Err(Error::new(
            ErrorKind::ReadOnlyFilesystem,
            "the gateway runs with --read-only and creates no files",
        ));
    }
    make(state_dir)?;
    // Written whole under another name first: a crash must not leave half a file. Under a name of
    // its own: two gateways may well have the same process id, in two containers.
    let staging = staging_name(state_dir, name)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&staging)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let placed = written.and_then(|()| place(&staging, &state_dir.join(name)));
    match fs::remove_file(&staging) {
        // It was moved.
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    placed.and_then(|()| sync(state_dir))
}

/// Opens the file `name` in `state_dir`, if it exists and is a regular file. A link is not followed
/// and a pipe not waited for, even if it appears during the call.
pub fn open(state_dir: &Path, name: &str) -> Result<Option<fs::File>> {
    let not_text = || Error::new(ErrorKind::InvalidInput, "the path of the directory is not UTF-8");
    let own = state_dir.file_name().and_then(OsStr::to_str).ok_or_else(not_text)?;
    open_below(state_dir.parent().unwrap_or(state_dir), own, name)
}

/// Opens a file as [`open`] does, in the state directory at the path `own` below `above`. No link
/// in `own` is followed.
fn open_below(above: &Path, own: &str, name: &str) -> Result<Option<fs::File>> {
    open_plain_file(above, &format!("{own}/{name}"))
}

/// Returns the text of the file `name` in `state_dir`, if it exists. It is an error, which names
/// the path, if the file can't be read completely, is not UTF-8, or is longer than any file that a
/// gateway writes.
pub fn read(state_dir: &Path, name: &str) -> std::result::Result<Option<String>, String> {
    let text = open(state_dir, name).and_then(|file| file.map(text_of).transpose());
    text.map_err(|error| format!("{}: {error}", state_dir.join(name).display()))
}

/// Reads a file as [`read`] does, in the state directory at the path `own` below `above`, where
/// other users may create any file.
pub fn read_below(above: &Path, own: &str, name: &str) -> Result<Option<String>> {
    open_below(above, own, name)?.map(text_of).transpose()
}

fn text_of(file: fs::File) -> Result<String> {
    let mut text = String::new();
    read_text(file, &mut text).map(|()| text)
}

/// Reads an open file to its end, as [`read`] does.
pub fn read_text(file: fs::File, text: &mut String) -> Result<()> {
    let most = FILE_BYTES_MAX as u64;
    if file.take(most + 1).read_to_string(text)? > FILE_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::InvalidData,
            format!("the file is longer than {most} bytes, more than any file of this kind"),
        ));
    }
    Ok(())
}

/// True if `state_dir` does not exist, or belongs to this user or root and no other user may write
/// to it.
pub fn is_trusted(state_dir: &Path) -> bool {
    let Ok(metadata) = fs::symlink_metadata(state_dir) else { return true };
    let owner = metadata.uid();
    let ours = owner == 0 || owner == rustix::process::geteuid().as_raw();
    metadata.is_dir() && ours && metadata.mode() & WRITABLE == 0
}

/// True if `state_dir` looks as if this server had made it. It is for file systems on which
/// [`is_trusted`] cannot hold: those that show our user as another one (NFS with `root_squash`), or
/// all files as one user's (FUSE, NTFS). The directory must have the owner that a new file of ours
/// gets in it. Other users may write to it only if they also get rights to that new file, which
/// shows that modes are not kept. It is also true on a read-only file system, where no file can be
/// made to compare with.
pub fn is_as_made_here(state_dir: &Path) -> bool {
    let Ok(there) = fs::symlink_metadata(state_dir) else { return true };
    let Ok(staging) = staging_name(state_dir, "try") else { return false };
    let file = match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staging) {
        Ok(file) => file,
        Err(e) => return e.kind() == ErrorKind::ReadOnlyFilesystem && there.is_dir(),
    };
    let _ = fs::remove_file(&staging);
    let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    file.metadata().is_ok_and(|new| {
        there.is_dir()
            && there.uid() == new.uid()
            && (there.mode() & WRITABLE == 0 || new.mode() & 0o077 != 0)
    })
}

/// Returns the error for a state directory that is not trusted.
pub fn distrust(state_dir: &Path) -> String {
    let cure = match fs::symlink_metadata(state_dir) {
        Ok(there) if there.is_symlink() => "it is a symbolic link: move it away",
        Ok(there) if !there.is_dir() => "it is a file: move it away",
        Ok(there) if there.mode() & WRITABLE != 0 => {
            "other users may write to it: if it is the server's, close it to others (chmod 700); if not, move it away"
        }
        _ => {
            "it belongs to another user: if it is the server's, give it to the server's user (chown); if not, move it away"
        }
    };
    format!(
        "{}: must be a directory that belongs to the server's user or root, and that no other user may write to: {cure}",
        state_dir.display()
    )
}

fn staging_name(state_dir: &Path, name: &str) -> Result<PathBuf> {
    let mut unique = [0u8; 8];
    aws_lc_rs::rand::fill(&mut unique).map_err(|_| Error::other("no random numbers are available"))?;
    Ok(state_dir.join(format!("{name}.{:016x}.tmp", u64::from_be_bytes(unique))))
}

fn make(state_dir: &Path) -> Result<()> {
    if fs::symlink_metadata(state_dir).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(state_dir)?;
    state_dir.parent().map_or(Ok(()), sync)
}

fn sync(directory: &Path) -> Result<()> {
    fs::File::open(directory)?.sync_all()
}

/// Renames a file; `AlreadyExists` if the new name is taken.
fn place(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::link(from, to) {
        // No hard links there.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
            Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
        }
        result => Ok(result?),
    }
}
