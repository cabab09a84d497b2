//! Opens and makes `.slipway`, and the bucket's own directories in it.
//!
//! The mark of a new `.slipway` ([`marks`]) is set before the directory gets its name. If possible,
//! this happens in DIR, where the sweep finds what a crash leaves. (In the bucket, `fsck` finds
//! it.) A directory that already has the name never gets the mark, not even if it is empty: its
//! owner could rename it back, fill it, and rename it to `.slipway` again.
//!
//! Everything in `.slipway` belongs to the gateway. So the functions here act as the gateway, even
//! while the thread acts as a user ([`kernel_calls::acting`]). The directories that they return are
//! closed to users: a caller that changes names in one needs an [`as_self`], and is refused without
//! it.

use std::borrow::Cow;

use kernel_calls::acting::as_self;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

use super::bucket::Bucket;
use super::made::{Before, open_made};
use super::marks;
use super::trust::Purpose;
use crate::error::{Fail, Io, Op};
use crate::fs::linking::{create_whole, move_to_free};
use crate::fs::reading::{is_empty, leaves_traits};
use crate::fs::resolve::{self, DIRECTORY, PLACE};
use crate::fs::{file_info, files, removing};
use crate::layout::aside::aside_of_nothing;
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::mark::FILE;
use crate::layout::scattered::scattered_name;
use crate::layout::staged::STAGING;

impl Bucket<'_> {
    /// Opens `.slipway`; NOENT if it does not exist. Names in it are changed through this
    /// descriptor: anyone who may write in the bucket can replace `.slipway` by a link, which a
    /// path of several names would follow. Fails with EPERM if it is not as the server makes it
    /// ([`Bucket::vouch`]).
    pub fn own(&self) -> Io<OwnedFd> {
        self.own_for(Purpose::Work)
    }

    /// Opens `.slipway` as [`Bucket::own`] does, for a purpose.
    pub fn own_for(&self, purpose: Purpose) -> Io<OwnedFd> {
        as_self(|| {
            let own = self.open_own(OWN_DIRECTORY)?;
            self.vouch(&own, OWN_DIRECTORY, purpose)?;
            Ok(own)
        })
    }

    /// Opens one of the bucket's own directories, without checking its owner and mode. If something
    /// else has its name or is mounted there, logs that and returns EPERM.
    pub fn open_own(&self, path: &str) -> Io<OwnedFd> {
        self.create_own(path, DIRECTORY)
    }

    /// Opens a file as [`Bucket::open_own`] opens a directory; `flags` may create it.
    pub fn create_own(&self, path: &str, flags: OFlags) -> Io<OwnedFd> {
        // The kernel takes no mode of what is not made.
        let mode = if flags.contains(OFlags::CREATE) { 0o600 } else { 0 };
        as_self(|| {
            resolve::create_here(&self.fd, path, flags, Mode::from_raw_mode(mode))
                .map_err(|errno| self.obstacle(path, errno))
        })
    }

    /// Returns EPERM instead of the errno if something else has the name of `.slipway` or of a
    /// directory in it.
    fn obstacle(&self, path: &str, errno: Errno) -> Errno {
        if !matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::XDEV) {
            return errno;
        }
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        let is_directory = |path: &str| {
            let place = resolve::create_here(&self.fd, path, PLACE | OFlags::NOFOLLOW, Mode::empty());
            place.and_then(file_info::of).map(|info| info.is_directory())
        };
        // What is deeper is looked at by who opens it.
        let stranger = ends.take(2).map(|end| &path[..end]).find(|path| match is_directory(path) {
            Ok(is_directory) => !is_directory,
            Err(errno) => matches!(errno, Errno::LOOP | Errno::NOTDIR | Errno::XDEV),
        });
        let Some(stranger) = stranger else { return errno };
        self.log_obstacle(stranger);
        Errno::PERM
    }

    /// Opens `.slipway/NAME`, or a directory below; NOENT if it does not exist, EPERM if it is not
    /// as the server makes it.
    pub fn own_existing(&self, name: &str) -> Io<OwnedFd> {
        let path = join(OWN_DIRECTORY, name);
        as_self(|| {
            let directory = self.open_own(&path)?;
            self.vouch(&directory, &path, Purpose::Work)?;
            Ok(directory)
        })
    }

    /// Opens `.slipway/NAME`, making it if needed.
    pub fn own_directory(&self, name: &str) -> Result<OwnedFd, Fail> {
        match self.own_existing(name) {
            Err(Errno::NOENT) => {}
            result => return result.attempt("open one of the bucket's .slipway directories"),
        }
        as_self(|| {
            let own = open_or_make(self)?;
            self.make_own_directory(&own, name, &join(OWN_DIRECTORY, name))
        })
    }

    /// Opens `.slipway/staging`, making it if needed.
    pub fn staging_directory(&self) -> Result<OwnedFd, Fail> {
        self.own_directory(STAGING)
    }

    /// Opens `.slipway/NAME`, from which files may be removed; NOENT if it does not exist, EPERM if
    /// it is not as the server makes it.
    pub fn open_for_removal(&self, name: &str) -> Io<OwnedFd> {
        as_self(|| {
            let own = self.own_for(Purpose::Removal)?;
            let directory = resolve::create_here(own, name, DIRECTORY, Mode::empty())?;
            self.vouch(&directory, &join(OWN_DIRECTORY, name), Purpose::Work)?;
            Ok(directory)
        })
    }

    /// Opens a directory as [`Bucket::open_for_removal`] does; `None` if it does not exist.
    pub fn find_for_removal(&self, name: &str) -> backend::Result<Option<OwnedFd>> {
        match self.open_for_removal(name) {
            Err(Errno::NOENT) => Ok(None),
            result => result.map(Some).op("open one of the bucket's .slipway directories"),
        }
    }

    /// Opens the directory `name` in `above`, one of the bucket's own, and makes it if needed.
    /// `path` is its path, relative to the bucket.
    pub fn make_own_directory(&self, above: &OwnedFd, name: &str, path: &str) -> Result<OwnedFd, Fail> {
        let made = match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno).attempt("make one of the bucket's .slipway directories"),
        };
        let directory = resolve::create_here(above, name, DIRECTORY, Mode::empty());
        let directory = directory.attempt("open one of the bucket's .slipway directories")?;
        self.vouch(&directory, path, Purpose::Work)
            .attempt("use one of the bucket's .slipway directories")?;
        if made {
            self.hand_over_if_new(&directory).attempt("change the owner of a directory")?;
            self.sync_made(above)?;
        }
        Ok(directory)
    }

    /// Flushes a directory to disk after something was made in it, if the durability level says so.
    pub fn sync_made(&self, directory: impl AsFd) -> Result<(), Fail> {
        if self.store.options.durability.syncs_names()
            && let Err(errno) = rustix::fs::fsync(directory)
        {
            // The first flush of a directory there ever was: the file system may lack them. What
            // was made is there by now, so that this comes here no more than once for each.
            self.try_device()?;
            return Err(errno).attempt("sync a directory");
        }
        Ok(())
    }

    /// Gives an open file or directory that was just made in `.slipway` to the owner of `.slipway`,
    /// if root is working for another user.
    pub fn hand_over(&self, made: impl AsFd) -> Io<()> {
        if !self.store.hands_over {
            return Ok(());
        }
        let owner = rustix::fs::fstat(self.own()?)?;
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        as_self(|| rustix::fs::fchown(made, Some(uid), Some(gid)))
    }

    /// Writes a file in `.slipway` as [`write_whole`](crate::fs::linking::write_whole) does. The
    /// file belongs to the owner of `.slipway`, even if root is working for another user.
    pub fn write_own(&self, directory: impl AsFd, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fail> {
        let content = |file: &OwnedFd| self.hand_over(file).map(|()| Cow::Borrowed(bytes));
        as_self(|| create_whole(directory, name, 0o600, sync, content))
    }

    /// Does the same as [`Bucket::hand_over`] for an entry that may have just been made, but only
    /// if its owner and mode are those of a new one: another user may have put something else
    /// there.
    pub fn hand_over_if_new(&self, opened: impl AsFd) -> Io<()> {
        if !self.store.hands_over {
            return Ok(());
        }
        let stat = rustix::fs::fstat(&opened)?;
        let empty = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => stat.st_size == 0 && stat.st_nlink == 1,
            FileType::Directory => is_empty(resolve::plain(&opened, "", DIRECTORY)?)?,
            _ => false,
        };
        let ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if empty && ours { self.hand_over(opened) } else { Ok(()) }
    }
}

/// Removes an open, empty `.slipway` of a bucket, and its mark. The mark stays if the directory
/// does.
pub(crate) fn remove_marked(bucket: &Bucket<'_>, own: &OwnedFd) -> Io<()> {
    let unmarked = rustix::fs::unlinkat(own, FILE, AtFlags::empty());
    let removed = removing::remove_directory(&bucket.fd, OWN_DIRECTORY);
    if removed.is_err() && unmarked.is_ok() {
        marks::set(bucket.store, own)?;
    }
    removed
}

/// Opens `.slipway`, making it if needed.
pub(crate) fn open_or_make(bucket: &Bucket<'_>) -> Result<OwnedFd, Fail> {
    match bucket.own() {
        Err(Errno::NOENT) => {}
        result => {
            let own = result.attempt("open one of the bucket's .slipway directories")?;
            // An empty one without the mark makes way: whoever can have put it there could have
            // removed it as well.
            let makes_way = || Ok::<_, Errno>(!marks::is_set(&own, &rustix::fs::fstat(&own)?)?);
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
    bucket.own().attempt("open one of the bucket's .slipway directories")
}

/// Makes `.slipway`. Returns false if it exists already.
fn make(bucket: &Bucket<'_>) -> Result<bool, Fail> {
    let root = &bucket.store.root;
    // In DIR the sweep finds what a crash leaves, without reading all of the bucket. Not where that
    // gives it a group or an ACL, which what is staged in there would have.
    if !leaves_traits(root) {
        match make_in(bucket, root, &aside_of_nothing()) {
            // The bucket is a file system of its own, or DIR another user's.
            Ok(Err(Errno::XDEV | Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {}
            result => return result?.attempt("name one of the bucket's .slipway directories"),
        }
    }
    make_in(bucket, &bucket.fd, &scattered_name())?.attempt("name one of the bucket's .slipway directories")
}

/// Makes `.slipway` under another name in `above`, and moves it to its place.
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

/// Gives a directory that was made after `before` its owner and the mark. Fails if another one has
/// taken its place.
pub(crate) fn prepare(
    bucket: &Bucket<'_>,
    above: impl AsFd,
    prepared: &str,
    before: Before,
) -> Result<OwnedFd, Fail> {
    let own = match open_made(above, prepared, before) {
        Err(errno @ Errno::AGAIN) => {
            return Err(Fail::lost_to("open one of the bucket's .slipway directories", errno));
        }
        result => result.attempt("open one of the bucket's .slipway directories")?,
    };
    bucket.vouch(&own, prepared, Purpose::Work).attempt("use one of the bucket's .slipway directories")?;
    if bucket.store.hands_over {
        give_to_gateway(bucket, &own).attempt("change the owner of a directory")?;
    }
    marks::set(bucket.store, &own).attempt("mark one of the bucket's .slipway directories")?;
    Ok(own)
}

/// Gives a directory that root has made to the user who serves the tree. That is the owner of the
/// tree's `.slipway`: buckets may belong to other users, for whom the gateway acts. Where the tree
/// has none yet, it is the owner of the bucket.
fn give_to_gateway(bucket: &Bucket<'_>, made: &OwnedFd) -> Io<()> {
    match resolve::create_here(&bucket.store.root, OWN_DIRECTORY, DIRECTORY, Mode::empty()) {
        Ok(of_tree) => files::give_to_owner_of(of_tree, made),
        Err(Errno::NOENT) => files::give_to_owner_of(&bucket.fd, made),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, chown};

    use crate::layout::locks::LOCK_FILES;
    use crate::testing::Scene;
    use crate::write::key_lock;

    /// Else the server, which is another user's, could not take the locks that root's tool made.
    #[test]
    fn locks_that_root_makes_for_another_user_are_that_users() {
        const OTHER: u32 = 1001;
        let mut scene = Scene::new();
        let own = scene.own_path();
        let owner = |path| fs::metadata(path).map(|metadata| metadata.uid()).unwrap();
        for path in [&scene.path(), &own] {
            if chown(path, Some(OTHER), None).is_err() || owner(path.clone()) != OTHER {
                return eprintln!(
                    "\n*** SKIPPED: no owners here, so that locks get theirs is NOT tested ***\n"
                );
            }
        }
        scene.store = scene.store.handing_over();
        drop(key_lock::take(&scene.bucket(), "a").unwrap());
        let locks = own.join(LOCK_FILES);
        let made: Vec<_> = fs::read_dir(&locks).unwrap().map(|entry| owner(entry.unwrap().path())).collect();
        assert_eq!((owner(locks), made), (OTHER, vec![OTHER]));
    }

    /// Else the gateway would refuse what the sweep made in a bucket of a user's.
    #[test]
    fn what_root_makes_in_a_bucket_of_a_user_is_the_gateways() {
        for (of_tree, expected) in [(None, 1001), (Some(1002), 1002), (Some(0), 0)] {
            let mut scene = Scene::new();
            let (own, own_of_tree) = (scene.own_path(), scene.path().with_file_name(".slipway"));
            let _ = fs::remove_dir_all(&own);
            let _ = fs::remove_dir_all(&own_of_tree);
            if of_tree.is_some() {
                fs::create_dir(&own_of_tree).unwrap();
            }
            let given = chown(scene.path(), Some(1001), None)
                .and_then(|()| of_tree.map_or(Ok(()), |uid| chown(&own_of_tree, Some(uid), None)));
            if given.is_err() || fs::metadata(scene.path()).unwrap().uid() != 1001 {
                return eprintln!(
                    "\n*** SKIPPED: no owners here, so that users have theirs is NOT tested ***\n"
                );
            }
            scene.store = scene.store.handing_over();
            drop(scene.bucket().own_directory("uploads").map_err(crate::error::Fail::for_good).unwrap());
            assert_eq!(fs::metadata(&own).unwrap().uid(), expected);
            assert_eq!(fs::metadata(own.join("uploads")).unwrap().uid(), expected);
        }
    }
}
