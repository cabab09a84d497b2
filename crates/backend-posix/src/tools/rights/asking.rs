//! Asks the kernel, as a user, what it would allow with one file or directory.

use std::path::{Path, PathBuf};

use kernel_calls::acting::{Identity, acting};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, Stat, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::error::Io;
use crate::fs::descriptor;
use crate::fs::resolve::{self, PLACE, READ};

/// The attribute that an access list is.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// The attribute of a directory that the access lists of new entries are made of.
const DEFAULT_LIST: &str = "system.posix_acl_default";
/// The longest attribute of Linux.
const ATTRIBUTE_BYTES_MAX: usize = 65_536;
/// The tag of the entry of the owner (linux/posix_acl.h).
const OWNERS_ENTRY: u16 = 1;
/// The bit of a directory whose names only owners change.
const STICKY: u32 = 0o1000;
/// A file that nobody but the superuser may write to, whatever the kernel is asked.
const CLOSED_TO_WRITERS: &str = "/proc/version";

/// A file or directory with what decides about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Its type and mode, as `st_mode` has them.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// True if it has an access list besides its mode.
    pub has_access_list: bool,
}

/// The permission that a user lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// The right to look names up in a directory (`x`).
    Search,
    /// The right to read a file or a directory (`r`).
    Read,
    /// The right to change names in a directory (`w`).
    Write,
    /// The ownership of an entry, or of this directory, in which it is and which is sticky.
    Owner(Entry),
    /// The ownership of a sticky directory, of which a record is to be written.
    OwnRecord,
    /// Rights in new directories, which belong to the user, but by the default access list of this
    /// one give their owner these alone (as in a mode).
    DefaultList(u16),
    /// Nothing: the file has the attribute `immutable` or `append-only`, and so has to stay.
    Unchangeable,
}

/// The first thing that the kernel refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file or directory that it is refused for.
    pub entry: Entry,
    /// The permission that the user lacks for it.
    pub lack: Lack,
}

/// The reason why the questions ended.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Box<Refusal>),
    /// The kernel could not be asked.
    Unknown(String),
}

/// A name that the gateway holds without having opened its file.
pub(super) struct HeldEntry {
    pub fd: OwnedFd,
    pub path: PathBuf,
    stat: Stat,
}

impl AsFd for HeldEntry {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Says that something could not be looked at.
pub(super) fn unknown(path: &Path, errno: Errno) -> Stop {
    Stop::Unknown(format!("{}: {errno}", path.display()))
}

impl HeldEntry {
    pub fn new(fd: OwnedFd, path: PathBuf) -> Result<Self, Stop> {
        match rustix::fs::fstat(&fd) {
            Ok(stat) => Ok(Self { fd, path, stat }),
            Err(errno) => Err(unknown(&path, errno)),
        }
    }

    /// The entry of a directory; `None` if there is none. Links are not followed.
    pub fn child(&self, name: &str) -> Result<Option<Self>, Stop> {
        let path = self.path.join(name);
        match resolve::place_here(&self.fd, name.as_bytes()) {
            Ok(fd) => Self::new(fd, path).map(Some),
            Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(None),
            Err(errno) => Err(unknown(&path, errno)),
        }
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    pub fn is_directory(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub fn is_link(&self) -> bool {
        self.kind() == FileType::Symlink
    }

    fn is_sticky(&self) -> bool {
        self.stat.st_mode & STICKY != 0
    }

    /// True if nobody may remove or replace it.
    fn is_unchangeable(&self) -> bool {
        let seen = rustix::fs::statx(&self.fd, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
        let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
        seen.is_ok_and(|seen| seen.stx_attributes.intersects(fixed))
    }

    /// Returns the bits that the default access list gives to the owner of a new directory; `None`
    /// without a list.
    fn default_of_owner(&self) -> Option<u16> {
        let mut list = vec![0; ATTRIBUTE_BYTES_MAX];
        let path = descriptor::path(self.fd.as_fd());
        let length = rustix::fs::getxattr(path, DEFAULT_LIST, &mut list[..]).ok()?;
        // A version, then entries of a tag, rights and an id (linux/posix_acl_xattr.h).
        let (entries, _) = list.get(4..length)?.as_chunks::<8>();
        let number = |low: u8, high: u8| u16::from_le_bytes([low, high]);
        entries
            .iter()
            .map(|[tag, tag_high, rights, rights_high, ..]| {
                (number(*tag, *tag_high), number(*rights, *rights_high))
            })
            .find_map(|(tag, rights)| (tag == OWNERS_ENTRY).then_some(rights))
    }

    pub fn entry(&self) -> Entry {
        let path = descriptor::path(self.fd.as_fd());
        let mut no_bytes: [u8; 0] = [];
        let has_access_list =
            !self.is_link() && rustix::fs::getxattr(path, ACCESS_LIST, &mut no_bytes).is_ok();
        let Stat { st_mode, st_uid, st_gid, .. } = self.stat;
        Entry { path: self.path.clone(), mode: st_mode, uid: st_uid, gid: st_gid, has_access_list }
    }
}

/// The user as whom the kernel is asked.
pub(super) struct ActingUser<'a>(Identity<'a>);

impl<'a> ActingUser<'a> {
    /// Makes it, after a trial whether the kernel answers for the user and not for this process.
    pub fn new(who: Identity<'a>) -> Result<Self, Stop> {
        let ask = || rustix::fs::accessat(CWD, CLOSED_TO_WRITERS, Access::WRITE_OK, AtFlags::EACCESS);
        match acting(who, ask) {
            Ok(Err(Errno::ACCESS)) => Ok(Self(who)),
            Ok(answer) => Err(Stop::Unknown(format!(
                "asked whether the user may write to {CLOSED_TO_WRITERS}, which nobody but root may, the kernel says \
                 {answer:?}: it does not answer for another user here (faccessat2 needs Linux 5.8)"
            ))),
            Err(error) => Err(Stop::Unknown(error.to_string())),
        }
    }

    fn ask(&self, held: &HeldEntry, lack: Lack, question: impl FnOnce() -> Io<()>) -> Result<(), Stop> {
        match acting(self.0, question) {
            // A lease of another program's: it may be read once that has given it up.
            Ok(Ok(()) | Err(Errno::AGAIN)) => Ok(()),
            Ok(Err(Errno::ACCESS | Errno::PERM)) => Err(refused(held, lack)),
            Ok(Err(errno)) => Err(unknown(&held.path, errno)),
            Err(error) => Err(Stop::Unknown(error.to_string())),
        }
    }

    /// Fails unless names may be looked up in a directory.
    pub fn search(&self, held: &HeldEntry) -> Result<(), Stop> {
        self.ask(held, Lack::Search, || resolve::place_here(&held.fd, b".").map(drop))
    }

    /// Fails unless a directory or a regular file may be read.
    pub fn read(&self, held: &HeldEntry) -> Result<(), Stop> {
        let path = descriptor::path(held.fd.as_fd());
        self.ask(held, Lack::Read, || rustix::fs::open(path, READ, Mode::empty()).map(drop))
    }

    /// Fails unless names may be made in a directory, and it may be read.
    pub fn write(&self, held: &HeldEntry) -> Result<(), Stop> {
        self.read(held)?;
        self.search(held)?;
        let access = || rustix::fs::accessat(&held.fd, ".", Access::WRITE_OK, AtFlags::EACCESS);
        self.ask(held, Lack::Write, access)
    }

    /// Fails unless a new directory may be made in a directory, and then be used by who made it.
    /// The kernel cannot be asked for what it would make; but an owner's rights are the first entry
    /// of a list, and nothing else.
    pub fn make_directory(&self, held: &HeldEntry) -> Result<(), Stop> {
        self.write(held)?;
        match held.default_of_owner() {
            Some(rights) if rights & 7 != 7 => Err(refused(held, Lack::DefaultList(rights & 7))),
            _ => Ok(()),
        }
    }

    /// Fails unless a name may be removed from a directory, or replaced in it, that may be written
    /// to. No call asks for that without doing it; it is the rule of the kernel's `check_sticky`.
    pub fn remove(&self, directory: &HeldEntry, held: &HeldEntry) -> Result<(), Stop> {
        if directory.is_unchangeable() {
            return Err(refused(directory, Lack::Unchangeable));
        }
        if held.is_unchangeable() {
            return Err(refused(held, Lack::Unchangeable));
        }
        if directory.is_sticky() && !self.owns(directory) && !self.owns(held) {
            return Err(refused(held, Lack::Owner(directory.entry())));
        }
        Ok(())
    }

    /// Fails unless a record may be written to a directory, which may be written to otherwise
    /// (xattr(7), "Extended user attributes").
    pub fn write_record(&self, directory: &HeldEntry) -> Result<(), Stop> {
        let lacks = directory.is_sticky() && !self.owns(directory);
        if lacks { Err(refused(directory, Lack::OwnRecord)) } else { Ok(()) }
    }

    fn owns(&self, held: &HeldEntry) -> bool {
        held.stat.st_uid == self.0.uid
    }

    /// Does some work as the user.
    pub fn act<T>(&self, work: impl FnOnce() -> T) -> Result<T, Stop> {
        acting(self.0, work).map_err(|error| Stop::Unknown(error.to_string()))
    }
}

pub(super) fn refused(held: &HeldEntry, lack: Lack) -> Stop {
    Stop::Refused(Box::new(Refusal { entry: held.entry(), lack }))
}

/// Holds a directory that the gateway has open.
pub(super) fn hold(directory: impl AsFd, path: PathBuf) -> Result<HeldEntry, Stop> {
    match resolve::plain(directory, "", PLACE) {
        Ok(fd) => HeldEntry::new(fd, path),
        Err(errno) => Err(unknown(&path, errno)),
    }
}
