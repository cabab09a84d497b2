//! Decides whether a file or directory with one of the server's own names may be trusted to be one
//! that the server made.
//!
//! Anyone who may write in a directory can move another directory to any name in it: one of their
//! own, or another user's. The gateway obeys what it reads in `.slipway` (notes, announcements,
//! receipts), and removes entries there, with root's rights if root serves. So `.slipway` is
//! trusted only if its owner and mode are those that the server gives. That is checked on the open
//! directory that is then used, not on its name.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use kernel_calls::acting::is_acting;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::bucket::Bucket;
use super::marks;
use super::store::Store;
use crate::base::seldom::SeldomEach;
use crate::base::unique;
use crate::error::Io;
use crate::fs::{file_info, files};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::mark;
use crate::layout::versions::VERSIONS;
use crate::volume::description::Fact;
use crate::volume::trials::is_open_for_ever;

/// The user id of this process. To ask the kernel each time would add a call to each write.
static ACCOUNT: LazyLock<u32> = LazyLock::new(|| rustix::process::geteuid().as_raw());

/// The files that only the `.slipway` of a tree has, not that of a bucket.
const OF_TREES: [&str; 3] = ["tree.toml", "account.toml", "credentials.toml"];
/// The rights that this process takes from files it makes (its umask). It is read from /proc, since
/// the call that returns it also sets it.
static UMASK: LazyLock<u32> = LazyLock::new(|| {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    umask.and_then(|umask| u32::from_str_radix(umask.trim(), 8).ok()).unwrap_or(0)
});

/// The bits of a mode that let other users write.
const WRITABLE: u32 = 0o022;
/// The bits of a mode that give other users any right.
const ANY: u32 = 0o077;

/// The purpose for which a directory is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The directory is opened to make entries in it, or to read them.
    Work,
    /// The directory `.slipway` is opened to remove its entries. It must have its mark ([`marks`]),
    /// and other users must not have any right in it.
    Removal,
}

impl Bucket<'_> {
    /// Checks that an open directory with the name `path` in the bucket looks like one that the
    /// server makes in `.slipway`. It must belong to the server's user, the owner of the bucket
    /// (unless requests act as users) or that of `DIR/.slipway`, and other users may not write
    /// there, as far as its file system keeps modes. For [`Purpose::Removal`], `.slipway` must have
    /// its mark. Otherwise logs that, and fails with EPERM.
    pub fn vouch(&self, opened: &OwnedFd, path: &str, purpose: Purpose) -> Io<()> {
        let stat = rustix::fs::fstat(opened)?;
        // Where requests act as users, the bucket's owner is one of them, and must not see what the
        // others keep there.
        let may_be_owners = !self.store.options.impersonate;
        let ours = stat.st_uid == *ACCOUNT
            || keeper(self.store) == Some(stat.st_uid)
            || may_be_owners && rustix::fs::fstat(&self.fd)?.st_uid == stat.st_uid;
        let closed = |rights| stat.st_mode & rights == 0 || self.store.keeps_no_modes(opened, &stat);
        if !ours || !closed(WRITABLE) {
            if !self.log_tree(opened, path) {
                self.log_stranger(path, &stat);
            }
            return Err(Errno::PERM);
        }
        if purpose == Purpose::Removal && !(closed(ANY) && marks::is_set(opened, &stat)?) {
            if !self.log_tree(opened, path) {
                self.log_kept(path, &stat);
            }
            return Err(Errno::PERM);
        }
        Ok(())
    }

    /// Logs that the bucket is a tree of its own, if an open `.slipway` that the gateway must not
    /// empty is that of a tree. Returns false if it is not.
    fn log_tree(&self, opened: &OwnedFd, path: &str) -> bool {
        static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every_minute();
        if path != OWN_DIRECTORY || !is_of_tree(opened) {
            return false;
        }
        if file_info::of(&self.fd).is_ok_and(|bucket| LOGGED.is_due(bucket.id())) {
            tracing::warn!(
                path = ?self.place(),
                "this bucket is at the same time the directory that other gateways serve (slipway serve DIR). So this \
                 server removes no leftovers of crashes from it, and DeleteBucket refuses to delete it"
            );
        }
        true
    }

    /// True if a directory in `parent`, in a bucket, has an owner and a mode that a PUT gives. In
    /// any other directory, another user could have set the mark of a directory that a PUT made (a
    /// `user.` attribute), so that the gateway removes a directory that this user may not remove.
    pub fn may_be_made(&self, parent: impl AsFd, directory: &OwnedFd) -> Io<bool> {
        let stat = rustix::fs::fstat(directory)?;
        let is_owner = |of: &dyn Fn() -> Io<Stat>| of().map(|of| of.st_uid == stat.st_uid);
        let ours = stat.st_uid == *ACCOUNT
            // Given to whoever made it.
            || self.store.options.chown
            // The kernel decides whether the user may remove it.
            || is_acting()
            // They could remove it by themselves.
            || is_owner(&|| rustix::fs::fstat(&parent))?
            || is_owner(&|| rustix::fs::fstat(&self.fd))?
            || keeper(self.store) == Some(stat.st_uid);
        let mode = self.store.options.directory_mode;
        let is_within = |given: u32| stat.st_mode & WRITABLE & !given == 0;
        Ok(ours
            && (is_within(mode & !*UMASK)
                || is_within(mode & left_by_acl(&parent))
                || self.store.keeps_no_modes(directory, &stat)))
    }

    /// Logs a `.slipway` that is used, but in which nothing is removed.
    fn log_kept(&self, path: &str, stat: &Stat) {
        static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every_minute();
        if file_info::of(&self.fd).is_ok_and(|bucket| LOGGED.is_due(bucket.id())) {
            tracing::error!(
                path = ?self.place().join(path),
                mode = format_args!("{:04o}", stat.st_mode & 0o7777),
                "this directory looks like one that the server keeps its own files in, but other users have \
                 access to it, or nothing shows that the server made it. The server still writes to it, but \
                 removes nothing from it. If the server made it (it may have been copied without extended \
                 attributes): chmod 700 it and, as its owner, create the file {} in it (touch). If another user \
                 made it: move it away, and change the mode of the bucket's directory so that others cannot do \
                 this again (chmod o-w, or chmod +t)",
                mark::FILE
            );
        }
    }

    /// Logs that something else has the name of one of the bucket's own directories.
    pub fn log_obstacle(&self, path: &str) {
        static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every_minute();
        if file_info::of(&self.fd).is_ok_and(|bucket| LOGGED.is_due(bucket.id())) {
            tracing::error!(
                path = ?self.place().join(path),
                "the server needs a directory of its own at this path, but a file, a symbolic link or a mount \
                 point is there: writes that need the directory are refused. Another user who may write to the \
                 bucket's directory may have created it: move it away (or unmount it), and change the mode \
                 of the bucket's directory so that others cannot do this again (chmod o-w, or chmod +t)"
            );
        }
    }

    /// Fails with EPERM unless an open folder of records in `directory` may be one that the server
    /// made. Its mode does not matter, since it is the mode of directories in buckets: in it, only
    /// records are replaced or removed.
    pub fn vouch_for_records(&self, directory: impl AsFd, folder: &OwnedFd, path: &str) -> Io<()> {
        match stranger_in(self.store, directory, folder)? {
            None => Ok(()),
            Some(stat) => {
                self.log_stranger(path, &stat);
                Err(Errno::PERM)
            }
        }
    }

    fn log_stranger(&self, path: &str, stat: &Stat) {
        static LOGGED: SeldomEach<(u64, u64)> = SeldomEach::every_minute();
        let Ok(bucket) = file_info::of(&self.fd) else { return };
        if LOGGED.is_due(bucket.id()) {
            tracing::error!(
                path = ?self.place().join(path),
                owner = stat.st_uid,
                mode = format_args!("{:04o}", stat.st_mode & 0o7777),
                server = *ACCOUNT,
                "this directory looks like one that the server keeps its own files in, but has another owner or \
                 mode than the server gives it: its contents are ignored. If the server made it: give it to the \
                 server's user (chown) and chmod 700 it. If another user made it: move it away, and \
                 change the mode of the bucket's directory so that others cannot do this again (chmod o-w, or \
                 chmod +t)"
            );
        }
    }

    /// Returns the name of the bucket, for the operator.
    pub fn name_for_log(&self) -> String {
        let place = self.place();
        // Where a listing walks through the old versions of a bucket, their directory stands for
        // it.
        let old = Path::new(OWN_DIRECTORY).join(VERSIONS);
        let bucket = if place.ends_with(old) { place.ancestors().nth(2) } else { Some(&*place) };
        bucket.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the path of the bucket, for the operator.
    pub fn place(&self) -> PathBuf {
        files::path_of(&*self.fd)
    }
}

/// True if an open `.slipway` looks like that of a tree, not of a bucket.
pub(crate) fn is_of_tree(own: impl AsFd) -> bool {
    let has = |name: &str| rustix::fs::statat(&own, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    OF_TREES.into_iter().any(has)
}

/// Returns the attributes of a folder of records that the server did not make; `None` if it may
/// have made it. The server's folders belong to this process's user, to the gateway's, or to the
/// owner of the directory that contains them, to whom root's tools give them.
pub(crate) fn stranger_in(store: &Store, directory: impl AsFd, folder: &OwnedFd) -> Io<Option<Stat>> {
    let stat = rustix::fs::fstat(folder)?;
    let ours = stat.st_uid == *ACCOUNT
        || rustix::fs::fstat(directory)?.st_uid == stat.st_uid
        || keeper(store) == Some(stat.st_uid);
    Ok((!ours).then_some(stat))
}

/// True if the file `name` in `folder`, a folder of records, belongs to a user as which the server
/// writes there: the folder's owner, the user of this process, or that of the gateway if this
/// process is a tool. The file's mode is not checked, since it depends on the options with which
/// the file was written.
pub(crate) fn is_written_by_us(store: &Store, folder: &OwnedFd, name: &str) -> Io<bool> {
    let name = file_info::one_name(name)?;
    let uid = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
    Ok(uid == *ACCOUNT || uid == rustix::fs::fstat(folder)?.st_uid || keeper(store) == Some(uid))
}

/// Returns the owner of `DIR/.slipway`, unless other users could have made it.
fn keeper(store: &Store) -> Option<u32> {
    let root = rustix::fs::fstat(&store.root).ok()?;
    let own = state(store)?;
    (own.st_uid == root.st_uid || root.st_mode & WRITABLE == 0).then_some(own.st_uid)
}

fn state(store: &Store) -> Option<Stat> {
    let own = rustix::fs::statat(&store.root, OWN_DIRECTORY, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(own.st_mode) == FileType::Directory).then_some(own)
}

impl Store {
    /// True if an open directory directly in DIR belongs to the server, and others have no rights
    /// in it, as far as its file system keeps modes.
    pub fn is_closed_and_ours(&self, opened: &OwnedFd) -> Io<bool> {
        let stat = rustix::fs::fstat(opened)?;
        let owner = match state(self) {
            Some(_) => keeper(self),
            // No gateway has kept anything there yet.
            None => Some(rustix::fs::fstat(&self.root)?.st_uid),
        };
        let ours = stat.st_uid == *ACCOUNT || owner == Some(stat.st_uid);
        Ok(ours && self.is_closed(opened)?)
    }

    /// True if others have no rights in an open directory, as far as its file system keeps modes.
    pub fn is_closed(&self, opened: &OwnedFd) -> Io<bool> {
        let stat = rustix::fs::fstat(opened)?;
        Ok(stat.st_mode & ANY == 0 || self.keeps_no_modes(opened, &stat))
    }

    /// True if the file system of a directory keeps no modes (exFAT, NTFS, some FUSE file systems):
    /// then the mode of the directory, which seems to give others rights, means nothing. It is
    /// known if the device was tried; otherwise it is tried here.
    fn keeps_no_modes(&self, directory: impl AsFd, stat: &Stat) -> bool {
        if self.is_only_read() {
            // Nothing may be written to try it. `DIR/.slipway`, made closed to others, shows it for
            // its own file system.
            return state(self).is_some_and(|own| own.st_dev == stat.st_dev && own.st_mode & ANY != 0);
        }
        match self.volume_of(stat.st_dev, &directory).map(|volume| volume.modes) {
            Ok(Fact::Yes) => return false,
            Ok(Fact::No) => return true,
            _ if self.devices.is_modeless(stat.st_dev) => return true,
            _ => {}
        }
        let modeless = match new_file(directory) {
            Ok(file) => is_open_for_ever(file),
            // Nothing is written there anyway.
            Err(errno) => return errno == Errno::ROFS,
        };
        if modeless {
            self.devices.keep_modeless(stat.st_dev);
        }
        modeless
    }
}

/// Returns the rights of group and others that a directory's default ACL leaves to entries that are
/// made in it, whatever the umask is. There are none without a default ACL.
fn left_by_acl(directory: impl AsFd) -> u32 {
    const ENTRY_BYTES: usize = 8;
    const GROUP: u8 = 0x04;
    const MASK: u8 = 0x10;
    const OTHERS: u8 = 0x20;
    let mut acl = [0u8; 4 << 10];
    let read = rustix::fs::fgetxattr(directory, "system.posix_acl_default", &mut acl);
    // After a version of 4 bytes, entries of a tag, rights and an id.
    let entries = read.ok().and_then(|read| acl.get(4..read)).unwrap_or_default().chunks_exact(ENTRY_BYTES);
    let rights = |tag| entries.clone().find(|entry| entry[0] == tag).map(|entry| u32::from(entry[2] & 7));
    rights(MASK).or(rights(GROUP)).unwrap_or(0) << 3 | rights(OTHERS).unwrap_or(0)
}

/// Makes an empty file that others may not write to, and that disappears when it is closed.
fn new_file(directory: impl AsFd) -> Io<OwnedFd> {
    let (flags, mode) = (OFlags::RDWR | OFlags::CLOEXEC, Mode::from_raw_mode(0o600));
    match rustix::fs::openat(&directory, ".", flags | OFlags::TMPFILE, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {}
        result => return result,
    }
    let name = unique::name();
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&directory, &name, flags, mode)?;
    let _ = rustix::fs::unlinkat(directory, &name, AtFlags::empty());
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;
    use crate::fs::resolve::{self, DIRECTORY};
    use crate::testing::{Scene, fixture};

    const OTHER: u32 = 1001;

    /// Whether a bucket's `.slipway` with this mode, and this owner if one is given, is accepted
    /// for work and for removal. `None` if it can't be given away.
    fn counts(scene: &Scene, owner: Option<u32>, mode: u32) -> Option<[bool; 2]> {
        let path = scene.own_path();
        if let Some(owner) = owner
            && (chown(&path, Some(owner), None).is_err() || fs::metadata(&path).unwrap().uid() != owner)
        {
            return None;
        }
        // With records in files, the mark is a file as well.
        let mark = path.join(mark::FILE);
        if let Some(owner) = owner
            && mark.exists()
        {
            chown(mark, Some(owner), None).unwrap();
        }
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let bucket = scene.bucket();
        Some([Purpose::Work, Purpose::Removal].map(|purpose| bucket.own_for(purpose).is_ok()))
    }

    #[test]
    fn by_its_mode() {
        let mut scene = Scene::new();
        if scene.store.keeps_no_modes(&scene.store.root, &rustix::fs::fstat(&scene.store.root).unwrap()) {
            return eprintln!(
                "\n*** SKIPPED: files have no modes here, so checking them is NOT tested ***\n"
            );
        }
        for (mode, expected) in [
            (0o700, [true, true]),
            (0o755, [true, false]),
            (0o710, [true, false]),
            (0o720, [false, false]),
            (0o777, [false, false]),
            (0o1777, [false, false]),
        ] {
            assert_eq!(counts(&scene, None, mode), Some(expected), "{mode:o}");
        }
        // Where none are kept.
        let device = rustix::fs::fstat(&scene.store.root).unwrap().st_dev;
        scene.store.devices.keep_modeless(device);
        assert_eq!(counts(&scene, None, 0o777), Some([true, true]));
        // A trial of the device counts more.
        scene.store.volume.modes = Fact::Yes;
        assert_eq!(counts(&scene, None, 0o777), Some([false, false]));
    }

    #[test]
    fn by_its_owner() {
        let scene = Scene::new();
        let Some(others) = counts(&scene, Some(OTHER), 0o700) else {
            return eprintln!(
                "\n*** SKIPPED: files have no owners here, so checking them is NOT tested ***\n"
            );
        };
        assert_eq!(others, [false, false]);
        // That of the bucket, or of what is kept beside buckets.
        chown(scene.path(), Some(OTHER), None).unwrap();
        assert_eq!(counts(&scene, None, 0o700), Some([true, true]));
        chown(scene.path(), Some(0), None).unwrap();
        let root = scene.path().parent().unwrap().to_owned();
        let kept = root.join(OWN_DIRECTORY);
        fs::create_dir_all(&kept).unwrap();
        chown(&kept, Some(OTHER), None).unwrap();
        assert_eq!(counts(&scene, None, 0o700), Some([true, true]));
        // Unless anyone can have made that.
        fs::set_permissions(&root, Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(counts(&scene, None, 0o700), Some([false, false]));
    }

    /// A directory of the server's user that is inaccessible to others may have been renamed to
    /// `.slipway`: without the mark, nothing in it is removed.
    #[test]
    fn what_has_no_mark_is_used_and_nothing_in_it_removed() {
        let scene = Scene::new();
        let theirs = scene.path().join("webapp");
        fs::create_dir_all(theirs.join("staging")).unwrap();
        fs::set_permissions(&theirs, Permissions::from_mode(0o700)).unwrap();
        let own = scene.path().join(OWN_DIRECTORY);
        if own.exists() {
            fs::remove_dir_all(&own).unwrap();
        }
        fs::rename(&theirs, &own).unwrap();
        let counts =
            || [Purpose::Work, Purpose::Removal].map(|purpose| scene.bucket().own_for(purpose).is_ok());
        assert_eq!(counts(), [true, false]);
        scene.bucket().own_directory("locks").unwrap();
        assert_eq!(counts(), [true, false]);
        // The operator's mark.
        fs::write(own.join(mark::FILE), "").unwrap();
        assert_eq!(counts(), [true, true]);
        fs::remove_file(own.join(mark::FILE)).unwrap();
        fs::create_dir(own.join(mark::FILE)).unwrap();
        assert_eq!(counts(), [true, false]);
        // An empty one makes way, without the mark that another may have left.
        fs::remove_dir_all(&own).unwrap();
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
        scene.bucket().own_directory("locks").unwrap();
        assert_eq!(counts(), [true, true]);
    }

    /// Another program exchanges `.slipway` with a private directory of the server's user again and
    /// again: a delete removes nothing in that directory.
    #[test]
    fn what_takes_the_place_of_slipway_during_a_delete_stays() {
        for round in 0..fixture::rounds(100) {
            let scene = Scene::new();
            let (own, victim) = (scene.own_path(), scene.path().with_file_name(".victim"));
            for name in ["locks", "uploads"] {
                scene.bucket().own_directory(name).unwrap();
                fs::create_dir_all(victim.join(name)).unwrap();
                fs::write(victim.join(name).join("precious"), "").unwrap();
            }
            fs::set_permissions(&victim, Permissions::from_mode(0o700)).unwrap();
            let exchange = || renameat_with(CWD, &own, CWD, &victim, RenameFlags::EXCHANGE);
            if exchange().and_then(|()| exchange()).is_err() {
                return eprintln!(
                    "\n*** SKIPPED: no RENAME_EXCHANGE here, so replacing .slipway is NOT tested ***\n"
                );
            }
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        let _ = exchange();
                    }
                });
                let _ = crate::buckets::delete(&scene.store, &scene.name);
                done.store(true, Ordering::Relaxed);
            });
            let stays = |name: &str| [&own, &victim].iter().any(|at| at.join(name).join("precious").exists());
            assert!(["locks", "uploads"].into_iter().all(stays), "{round}");
        }
    }

    #[test]
    fn what_many_make_at_once_is_made_once() {
        for _ in 0..20 {
            let scene = Scene::new();
            std::thread::scope(|scope| {
                for name in ["locks", "staging", "uploads", "locks"] {
                    let bucket = scene.bucket();
                    scope.spawn(move || crate::error::retrying(|| bucket.own_directory(name)).unwrap());
                }
            });
            assert!(scene.bucket().own_for(Purpose::Removal).is_ok());
            let names = fs::read_dir(scene.path()).unwrap().map(|entry| entry.unwrap().file_name());
            let names = names.filter(|name| *name != *crate::layout::keymap::RECORDS);
            assert_eq!(names.collect::<Vec<_>>(), [OWN_DIRECTORY]);
        }
    }

    /// Files in a directory may get rights for others from a person's ACL, or on a file system that
    /// keeps no modes: a new file shows that.
    #[test]
    fn whether_modes_are_kept_is_tried() {
        let scene = Scene::new();
        let own = scene.own_path();
        let directory = resolve::plain(&scene.store.root, "", DIRECTORY).unwrap();
        let shown = rustix::fs::fstat(new_file(directory).unwrap()).unwrap().st_mode & ANY;
        fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
        let entries = || fs::read_dir(&own).unwrap().count();
        let before = entries();
        assert_eq!(scene.bucket().own().is_ok(), shown != 0);
        assert_eq!(entries(), before);
    }

    /// Only in a directory with an owner and a mode that a PUT gives is its mark believed.
    #[test]
    fn a_directory_that_others_could_have_marked_was_not_made_by_a_put() {
        let scene = Scene::new();
        let path = scene.path().join("d");
        fs::create_dir(&path).unwrap();
        let bucket = scene.bucket();
        let top = bucket.directory("").unwrap();
        let made = |mode: u32| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            bucket.may_be_made(&top, &resolve::plain(&top, "d", DIRECTORY).unwrap()).unwrap()
        };
        let keeps_modes = fs::metadata(&path).unwrap().mode() & 0o777 == 0o777 & !*UMASK;
        if !keeps_modes {
            return eprintln!(
                "\n*** SKIPPED: no modes are kept here, so those of directories are NOT tested ***\n"
            );
        }
        assert_eq!([made(0o755), made(0o700)], [true; 2]);
        assert_eq!([made(0o777), made(0o1777)], [*UMASK & 0o022 == 0; 2]);
        // The group may write by the default ACL, and all else as well.
        let entry = |tag: u8, rights: u8| [tag, 0, rights, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        let acl = [vec![2, 0, 0, 0], [entry(1, 7), entry(4, 7), entry(0x20, 5)].concat()].concat();
        if rustix::fs::fsetxattr(&top, "system.posix_acl_default", &acl, rustix::fs::XattrFlags::empty())
            .is_ok()
        {
            assert_eq!([made(0o775), made(0o777)], [true, *UMASK & 0o022 == 0]);
        }
        if chown(&path, Some(OTHER), None).is_ok() {
            assert_eq!([made(0o755), made(0o700)], [false; 2]);
        }
    }
}
