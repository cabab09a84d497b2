//! Directories in DIR in which DeleteBucket sets aside the uploads and locks of a bucket.
//!
//! Whoever may write in DIR can give a directory of another user such a name, and the sweep would
//! remove that directory, or take its contents for uploads. So a name proves nothing (as in
//! [`marks`]): the server makes these directories inaccessible to others, and marks each with its
//! name before it moves anything into it. A directory without the mark is left alone, and logged.
//! If a power cut or a crash prevents the mark, the directory is empty, and whoever could have made
//! such a directory could also remove it. With durability `none`, a directory that holds uploads
//! may lack the mark, too; it stays.

use std::time::Duration;

use backend::{BackendError, Result, SweepReport};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;
use s3_types::BucketName;

use super::attributes::identity;
use crate::base::options::SweepOptions;
use crate::base::seldom::SeldomEach;
use crate::base::unique;
use crate::error::{Fail, Io, Op, is_of_one, leads_nowhere, retrying};
use crate::fs::reading::{entries, has_only};
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{files, removing};
use crate::layout::aside::{PREFIX, aside_of_nothing, is_of_nothing, prefix_of};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::tree::{METADATA, OF_GATEWAYS};
use crate::layout::uploads::UPLOADS;
use crate::layout::{keymap, locks, mark};
use crate::limits::STRANGE_ASIDE_LOGGED_EVERY;
use crate::tree::bucket::Bucket;
use crate::tree::format;
use crate::tree::made::{self, Before};
use crate::tree::marks;
use crate::tree::store::Store;

/// A directory of the server in DIR, which holds the uploads and locks of a bucket while the bucket
/// is deleted.
pub(crate) struct Aside<'s> {
    store: &'s Store,
    name: String,
    pub fd: OwnedFd,
}

impl<'s> Aside<'s> {
    /// Makes and marks a directory with a name that belongs to no bucket.
    pub fn of_nothing(store: &'s Store) -> Io<Self> {
        Self::make(store, &aside_of_nothing())
    }

    /// Makes and marks the directory. AGAIN if another directory took its place.
    fn make(store: &'s Store, name: &str) -> Io<Self> {
        let before = Before::making();
        match rustix::fs::mkdirat(&store.root, name, Mode::RWXU) {
            // The answer to a first try of the kernel's got lost (NFS), or it is another's, as
            // shows right below.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let made = made::open_made(&store.root, name, before);
        let marked = made.and_then(|fd| {
            let aside = Self { store, name: name.to_owned(), fd };
            aside.mark().map(|()| aside)
        });
        if marked.is_err() {
            let _ = rustix::fs::unlinkat(&store.root, name, AtFlags::REMOVEDIR);
        }
        marked
    }

    fn mark(&self) -> Io<()> {
        let marked = marks::set_for(&self.name, self.store, &self.fd);
        if marked.is_err() {
            let _ = rustix::fs::unlinkat(&self.fd, mark::FILE, AtFlags::empty());
        }
        marked
    }

    /// Flushes the directory and its mark to disk, before anything is moved into it.
    fn sync(&self) -> Io<()> {
        if self.store.keeps_order(self.store.device) {
            return Ok(());
        }
        self.store.sync_names(&self.fd)?;
        self.store.sync_names(&self.store.root)
    }

    /// Makes the directory, and moves the uploads of an open `.slipway` to it.
    pub fn take(bucket: &Bucket<'s>, own: &OwnedFd, name: &BucketName) -> Result<Self, Fail> {
        let store = bucket.store;
        let aside = match Self::make(store, &(prefix_of(name, &identity(bucket)?) + &unique::name())) {
            Err(errno @ Errno::AGAIN) => return Err(Fail::lost_to("set uploads aside", errno)),
            result => result.attempt("set uploads aside")?,
        };
        let safe =
            aside.is_as_safe_as(own).and_then(|safe| if safe { aside.sync() } else { Err(Errno::PERM) });
        let moved = safe.and_then(|()| rustix::fs::renameat(own, UPLOADS, &aside.fd, UPLOADS));
        match moved {
            Ok(()) | Err(Errno::NOENT) => Ok(aside),
            // The bucket is a subvolume, or has another project than DIR.
            Err(Errno::XDEV) => match removing::remove_directory(own, UPLOADS) {
                Ok(()) | Err(Errno::NOENT) => Ok(aside),
                Err(errno) => {
                    aside.remove();
                    if matches!(errno, Errno::NOTEMPTY | Errno::EXIST) {
                        return Err(BackendError::BucketHasUploads.into());
                    }
                    Err(errno).attempt("remove a directory")
                }
            },
            Err(errno) => {
                aside.remove();
                Err(errno).attempt("set uploads aside")
            }
        }
    }

    /// True if only users who have access to the contents of an open `.slipway` have access to this
    /// directory.
    fn is_as_safe_as(&self, own: &OwnedFd) -> Io<bool> {
        let same_owner = rustix::fs::fstat(&self.fd)?.st_uid == rustix::fs::fstat(own)?.st_uid;
        Ok(self.store.is_closed_and_ours(&self.fd)? || (same_owner && self.store.is_closed(&self.fd)?))
    }

    /// Opens the directory with this name; `None` if something else has the name.
    fn find(store: &'s Store, name: &str) -> Option<Self> {
        let fd = resolve::create_here(&store.root, name, DIRECTORY, Mode::empty()).ok()?;
        let aside = Self { store, name: name.to_owned(), fd };
        aside.is_ours().unwrap_or(false).then_some(aside)
    }

    fn is_ours(&self) -> Io<bool> {
        // Of one that is another's, which may have millions of names, few are read.
        let stat = rustix::fs::fstat(&self.fd)?;
        // A crash came while it was marked, or a `.slipway` made. No one loses anything by it.
        if marks::is_set(&self.fd, &stat)? && self.has_only_its_mark()? {
            return Ok(true);
        }
        if !marks::is_set_for(&self.name, &self.fd, &stat)? || !self.store.is_closed_and_ours(&self.fd)? {
            return Ok(false);
        }
        let known = |name: &String| {
            matches!(&**name, UPLOADS | locks::LOCK_FILES | mark::FILE)
                || keymap::is_lingering(name)
                || (is_of_nothing(&self.name) && unique::is_name(name))
        };
        Ok(self.entries()?.iter().all(known))
    }

    fn has_only_its_mark(&self) -> Io<bool> {
        let opened = resolve::plain(&self.fd, "", DIRECTORY)?;
        // One reading may miss a name that is changed meanwhile; `entries` reads again.
        Ok(has_only(opened, |name| name.to_bytes() == mark::FILE.as_bytes())?
            && self.entries()?.iter().all(|name| name == mark::FILE))
    }

    fn has_uploads(&self) -> bool {
        let uploads = resolve::create_here(&self.fd, UPLOADS, DIRECTORY, Mode::empty());
        uploads.and_then(|uploads| has_only(uploads, |_| false)) == Ok(false)
    }

    fn entries(&self) -> Io<Vec<String>> {
        let names = entries(&resolve::plain(&self.fd, "", DIRECTORY)?)?;
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }

    /// Puts the uploads back, next to those that were created in the meantime.
    pub fn put_back(&self, bucket: &Bucket<'_>) -> Result<()> {
        retrying(|| {
            let aside = match resolve::create_here(&self.fd, UPLOADS, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(()),
                result => result.attempt("open uploads")?,
            };
            let uploads = bucket.own_directory(UPLOADS)?;
            for (id, _) in entries(&aside).attempt("read uploads")? {
                rustix::fs::renameat(&aside, &*id, &uploads, &*id).attempt("put an upload back")?;
            }
            rustix::fs::unlinkat(&self.fd, UPLOADS, AtFlags::REMOVEDIR).attempt("remove a directory")
        })
    }

    /// Removes the directory and its contents. Returns false if something remains, which the sweep
    /// removes.
    pub fn remove(&self) -> bool {
        for name in self.entries().unwrap_or_default() {
            if name != mark::FILE && rustix::fs::unlinkat(&self.fd, &*name, AtFlags::empty()).is_err() {
                removing::remove_tree(&self.fd, &name);
            }
        }
        // The mark stays as long as anything else does.
        let bare = self.entries().is_ok_and(|names| names.iter().all(|name| name == mark::FILE));
        if bare {
            let _ = rustix::fs::unlinkat(&self.fd, mark::FILE, AtFlags::empty());
        }
        match rustix::fs::unlinkat(&self.store.root, &*self.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => true,
            Err(_) => {
                let _ = marks::set_for(&self.name, self.store, &self.fd);
                false
            }
        }
    }
}

/// Completes what a crash during DeleteBucket interrupted: uploads return to their bucket if it
/// still exists, and are removed otherwise. The report has the number of buckets whose uploads were
/// removed, and the number of names that belong to something that the server did not make.
pub(crate) fn sweep_asides(store: &Store, options: &SweepOptions) -> Result<SweepReport> {
    let mut report = SweepReport::default();
    for aside in asides(store, options.staging_age)? {
        match end_aside(store, &aside) {
            Ok(Ended::Removed) => report.uploads += 1,
            Ok(Ended::NotOurs) => report.unswept += 1,
            Ok(Ended::Returned | Ended::Left(_) | Ended::Empty) => {}
            // One that can't be returned must not keep the others, nor the sweep of all buckets.
            Err(error) => {
                tracing::warn!(aside, %error, "an interrupted DeleteBucket moved the bucket's unfinished uploads to another directory, and they \
                    cannot be moved back: clients cannot continue them until the next sweep succeeds");
            }
        }
    }
    report.staging += sweep_own(store, options.staging_age)?;
    Ok(report)
}

/// Removes leftovers of crashes from the tree's `.slipway`: files that were to replace another one,
/// and empty directories that were made to change the time of `.slipway`. Returns how many there
/// were.
fn sweep_own(store: &Store, age: Duration) -> Result<usize> {
    let own = match resolve::plain(&store.root, OWN_DIRECTORY, DIRECTORY) {
        Err(errno) if leads_nowhere(errno) => return Ok(0),
        own => own.op("open the directory of the tree's own")?,
    };
    let names = entries(&own).op("read the directory of the tree's own")?;
    let remove = |name: &str, flags| rustix::fs::unlinkat(&own, name, flags).is_ok();
    let swept = names.iter().map(|(name, _)| &**name).filter(|name| {
        let old = || removing::is_older(&own, name, age);
        if is_of_nothing(name) {
            // Never with anything in it.
            old() && remove(name, AtFlags::REMOVEDIR)
        } else {
            is_staged_own(name) && old() && remove(name, AtFlags::empty())
        }
    });
    Ok(swept.count())
}

/// True for the temporary names under which files of a tree are written.
fn is_staged_own(name: &str) -> bool {
    let parts = name.strip_suffix(".tmp").and_then(|name| name.rsplit_once('.'));
    parts.is_some_and(|(of, digits)| {
        // The gateway's own files have 16 of them (docs/FORMAT.md).
        matches!(digits.len(), 16 | 32)
            && digits.bytes().all(|b| b.is_ascii_hexdigit())
            && ([METADATA, format::FILE, format::FEATURES_FILE, format::PENDING_FILE].contains(&of)
                || OF_GATEWAYS.contains(&of))
    })
}

/// Returns the names in the root that look like those of directories set aside, and whose
/// directories have not changed for `age`.
pub(crate) fn asides(store: &Store, age: Duration) -> Result<Vec<String>> {
    let root = resolve::plain(&store.root, "", DIRECTORY).op("open the root")?;
    let names = entries(&root).op("read the root")?.into_iter().map(|(name, _)| name);
    Ok(names.filter(|name| name.starts_with(PREFIX) && removing::is_older(&root, name, age)).collect())
}

/// The result of [`end_aside`] for a directory that was set aside.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The directory's uploads are in their bucket again.
    Returned,
    /// The directory's uploads were removed, since their bucket no longer exists.
    Removed,
    /// The directory had no uploads, and was removed.
    Empty,
    /// The directory was left unchanged, for this reason.
    Left(&'static str),
    /// The name belongs to something that the server did not make, which was left unchanged.
    NotOurs,
}

const STAYS: Ended = Ended::Left("some of its contents cannot be removed");

/// True if [`end_aside`] would act on a name.
pub(crate) fn may_end(store: &Store, name: &str) -> bool {
    let empty = || {
        let opened = resolve::create_here(&store.root, name, DIRECTORY, Mode::empty())?;
        has_only(opened, |_| false)
    };
    empty() == Ok(true) || Aside::find(store, name).is_some()
}

/// Ends the setting aside of a directory: returns its uploads to their bucket, or removes them if
/// the bucket is gone.
pub(crate) fn end_aside(store: &Store, name: &str) -> Result<Ended> {
    // Empty, it needs no mark: whoever gave it the name could have removed it.
    if rustix::fs::unlinkat(&store.root, name, AtFlags::REMOVEDIR).is_ok() {
        return Ok(Ended::Empty);
    }
    let Some(aside) = Aside::find(store, name) else {
        log_not_ours(store, name);
        return Ok(Ended::NotOurs);
    };
    let remove = || {
        let gone = if aside.has_uploads() { Ended::Removed } else { Ended::Empty };
        if aside.remove() { gone } else { STAYS }
    };
    if is_of_nothing(name) {
        return Ok(remove());
    }
    let of = name.strip_prefix(PREFIX).and_then(|rest| rest.split(',').next()).map(BucketName::new);
    let Some(Ok(of)) = of else { return Ok(Ended::Left("its name contains no valid bucket name")) };
    let found = store.bucket(&of).and_then(|bucket| {
        let known = identity(&bucket)?;
        Ok((bucket, known))
    });
    match found {
        // One that is known by its record, and has none, was about to be deleted.
        Ok((bucket, known)) if known.is_empty() || name.starts_with(&prefix_of(&of, &known)) => {
            aside.put_back(&bucket)?;
            Ok(if aside.remove() { Ended::Returned } else { STAYS })
        }
        // Another bucket has the name now, or none.
        Ok(_) | Err(BackendError::NoSuchBucket) => Ok(remove()),
        // One that can't be opened may be opened again.
        Err(error) if is_of_one(&error) => {
            tracing::warn!(aside = name, %error, "an interrupted DeleteBucket moved the bucket's unfinished uploads to another directory, and they \
                cannot be moved back, since the bucket cannot be opened");
            Ok(Ended::Left("its bucket cannot be opened"))
        }
        Err(error) => Err(error),
    }
}

fn log_not_ours(store: &Store, name: &str) {
    static LOGGED: SeldomEach<String> = SeldomEach::every(STRANGE_ASIDE_LOGGED_EVERY);
    if LOGGED.is_due(name.to_owned()) {
        tracing::error!(
            path = ?files::path_of(&store.root).join(name),
            "this directory has a name of the form that the server gives to temporary directories during \
             DeleteBucket, but the server did not make it: its owner, mode or extended attribute differs from what \
             the server sets. It is left unchanged. Another user with write access to the served directory may have made it: \
             move it away, or remove it if nobody needs it"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use backend::NewUpload;

    use super::*;
    use crate::buckets::delete;
    use crate::layout::keymap::KeyPath;
    use crate::maintenance::sweep;
    use crate::testing::{Scene, fixture};
    use crate::upload::{self, UploadName};

    const NOW: SweepOptions = SweepOptions {
        staging_age: Duration::ZERO,
        completed_age: Duration::from_hours(1),
        upload_age: None,
        all_chains: true,
    };

    fn asides_in(scene: &Scene) -> Vec<std::path::PathBuf> {
        let root = scene.path().parent().unwrap().to_owned();
        let names = fixture::names(&root).into_iter();
        names.filter(|name| name.to_string_lossy().starts_with(PREFIX)).map(|name| root.join(name)).collect()
    }

    fn take(scene: &Scene) {
        let bucket = scene.bucket();
        Aside::take(&bucket, &bucket.own().unwrap(), &scene.name).unwrap();
    }

    /// Files are removed only if the server gives such names, and if they are no longer new.
    #[test]
    fn what_a_crash_left_in_the_directory_of_the_tree_goes() {
        let scene = Scene::new();
        let own = scene.path().with_file_name(".slipway");
        let _ = fs::create_dir(&own);
        let before = fixture::names(&own);
        for name in [METADATA, format::FILE, format::FEATURES_FILE, format::PENDING_FILE] {
            fs::write(own.join(format!("{name}.{}.tmp", unique::name())), "half").unwrap();
        }
        for name in ["tree.toml", "account.toml", "credentials.toml", "try"] {
            fs::write(own.join(format!("{name}.0123456789abcdef.tmp")), "half").unwrap();
        }
        fs::create_dir(own.join(aside_of_nothing())).unwrap();
        let kept = ["metadata.1.tmp", "mine.00000000000000000000000000000000.tmp"];
        for name in kept {
            fs::write(own.join(name), "").unwrap();
        }
        let later = SweepOptions { staging_age: Duration::from_hours(1), ..NOW };
        assert_eq!(sweep_asides(&scene.store, &later).unwrap().staging, 0);
        assert_eq!(sweep_asides(&scene.store, &NOW).unwrap().staging, 9);
        assert_eq!(fixture::names(&own).len(), before.len() + kept.len());
    }

    /// The crash comes after the uploads were set aside. The bucket still exists, or another one
    /// has its name.
    #[test]
    fn uploads_of_a_delete_that_crashed_return_or_go() {
        let scene = Scene::new();
        let id = upload::create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
        let name = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id };
        let sweep = || {
            sweep_asides(&scene.store, &NOW).unwrap();
            if scene.store.bucket(&scene.name).is_ok() {
                sweep::sweep(&scene.store, &scene.name, &NOW).unwrap();
            }
        };
        let asides = || asides_in(&scene).len();

        take(&scene);
        assert!(matches!(upload::list_parts(&scene.store, &name, 0, 1), Err(BackendError::NoSuchUpload)));
        assert_eq!(asides(), 1);
        sweep();
        upload::list_parts(&scene.store, &name, 0, 1).unwrap();
        assert_eq!(asides(), 0);

        // Where they can't be returned, that is no one else's trouble.
        take(&scene);
        let own = scene.path().join(".slipway");
        fs::rename(&own, scene.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &own).unwrap();
        assert_eq!(sweep_asides(&scene.store, &NOW).unwrap(), SweepReport::default());
        fs::remove_file(&own).unwrap();
        fs::rename(scene.path().join("moved"), &own).unwrap();
        sweep();
        assert_eq!(asides(), 0);

        take(&scene);
        delete(&scene.store, &scene.name).unwrap();
        scene.create_again();
        assert_eq!(sweep_asides(&scene.store, &NOW).unwrap().uploads, 1);
        assert!(matches!(upload::list_parts(&scene.store, &name, 0, 1), Err(BackendError::NoSuchUpload)));
        assert_eq!(asides(), 0);
    }

    /// A user who may write in DIR made it, and may have marked it while they had rights in it.
    #[test]
    fn what_is_none_of_ours_stays() {
        type Theirs = fn(&Store, &std::path::Path);
        let mark: Theirs = |store, path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            marks::set_for(name, store, &fs::File::open(path).unwrap().into()).unwrap();
        };
        let theirs: [(&str, Theirs); 4] = [
            ("uploads/1/upload", |_, _| {}),
            ("thesis", mark),
            ("uploads/1/upload", |store, path| {
                marks::set_for("another", store, &fs::File::open(path).unwrap().into()).unwrap();
            }),
            ("uploads/1/upload", |store, path| {
                let name = path.file_name().unwrap().to_str().unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
                marks::set_for(name, store, &fs::File::open(path).unwrap().into()).unwrap();
            }),
        ];
        for metadata in [None, Some(crate::base::options::Metadata::Sidecar)] {
            let options =
                crate::base::options::Options { metadata, ..crate::base::options::Options::default() };
            let scene = Scene::with(options);
            let known = identity(&scene.bucket()).unwrap();
            for name in
                [aside_of_nothing(), prefix_of(&scene.name, &known) + "1", format!("{PREFIX}gone,1,1")]
            {
                for (n, (file, make)) in theirs.iter().enumerate() {
                    let path = scene.path().with_file_name(&name);
                    fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
                    fs::write(path.join(file), "years").unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
                    make(&scene.store, &path);
                    let report = sweep_asides(&scene.store, &NOW).unwrap();
                    assert_eq!((report.uploads, report.unswept), (0, 1), "{name} {n}");
                    assert_eq!(fs::read(path.join(file)).unwrap(), b"years", "{name} {n}");
                    fs::remove_dir_all(&path).unwrap();
                }
            }
        }
    }

    /// A crash at each step of making the directory.
    #[test]
    fn what_a_crash_leaves_without_uploads_goes() {
        for metadata in [None, Some(crate::base::options::Metadata::Sidecar)] {
            let options =
                crate::base::options::Options { metadata, ..crate::base::options::Options::default() };
            let scene = Scene::with(options);
            let at = |name: &str| scene.path().with_file_name(name);
            fs::create_dir(at(".slipway,deleting,bucket,1,1")).unwrap();
            fs::create_dir(at(".slipway,deleting,bucket,1,2")).unwrap();
            fs::write(at(".slipway,deleting,bucket,1,2").join(mark::FILE), "").unwrap();
            drop(Aside::of_nothing(&scene.store).unwrap());
            assert_eq!(asides_in(&scene).len(), 3);
            assert_eq!(sweep_asides(&scene.store, &NOW).unwrap(), SweepReport::default());
            assert_eq!(asides_in(&scene).len(), 0);
        }
    }

    /// A mark counts only for the name in it: with another bucket's name, the directory would give
    /// that bucket its uploads.
    #[test]
    fn a_mark_is_good_for_one_name() {
        let scene = Scene::new();
        scene.own_path();
        scene.bucket().own_directory(UPLOADS).unwrap();
        take(&scene);
        let [path] = &asides_in(&scene)[..] else { panic!() };
        let other = path.with_file_name(format!("{PREFIX}other,1,1"));
        fs::rename(path, &other).unwrap();
        assert_eq!(end_aside(&scene.store, ".slipway,deleting,other,1,1").unwrap(), Ended::NotOurs);
        fs::rename(&other, path).unwrap();
        sweep_asides(&scene.store, &NOW).unwrap();
        assert_eq!(asides_in(&scene).len(), 0);
    }
}
