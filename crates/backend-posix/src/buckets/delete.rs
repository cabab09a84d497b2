//! Deletes buckets.
//!
//! DeleteBucket refuses what S3 refuses (objects), and also what people made and S3 does not show
//! (a FIFO, a link, a name that is not UTF-8): removing those would destroy someone's work. Empty
//! directories are removed, whoever made them: to S3 such a bucket is empty. Uploads in progress
//! are removed with their bucket, as on S3, but only with it: until the removal is certain, they
//! wait outside the bucket.
//!
//! The last step is the kernel's own `rmdir`, which only succeeds on an empty directory and after
//! which nothing can be made in it: a PUT at the same time either makes the delete fail, or fails
//! itself.

use backend::{BackendError, BusyResource, Result};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use s3_types::BucketName;

use super::aside::Aside;
use super::attributes::{head, restore, sync_root};
use super::documents;
use crate::base::step::step;
use crate::base::who::Who;
use crate::error::{self, Fail, Io, Op, retrying};
use crate::facts::{chain, object_lock, place};
use crate::fs::file_info;
use crate::fs::reading::{entries, read_names};
use crate::fs::removing;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, OWN_DIRECTORY, RECORDS, join};
use crate::layout::overflow::OVERFLOW;
use crate::layout::scattered::SCATTERED;
use crate::layout::staged::{STAGING, is_scattered, is_staged_name};
use crate::layout::uploads::{self, UPLOADS};
use crate::layout::versions::{VERSIONS, entry_of};
use crate::layout::{self, converting};
use crate::limits::{STAGING_WAITS, UNSURE_TRIES};
use crate::tree::bucket::Bucket;
use crate::tree::presence::is_mount_point;
use crate::tree::store::Store;
use crate::tree::trust::Purpose;
use crate::tree::{lock, own};
use crate::write::{key_lock, orphans, recovery};

/// Removes a bucket as the gateway ([`delete_as`]).
#[cfg(test)]
pub(crate) fn delete(store: &Store, name: &BucketName) -> Result<()> {
    delete_as(store, name, &Who::Gateway)
}

/// Removes a bucket, and then its documents. What people have made in the bucket is examined and
/// removed with the identity `who`; the gateway removes the bucket itself and its own files in it.
pub(crate) fn delete_as(store: &Store, name: &BucketName, who: &Who) -> Result<()> {
    object_lock::refuse_bucket(store, name)?;
    delete_directory(store, name, who)?;
    step("a bucket is gone").op("remove a bucket")?;
    documents::forget(store, name);
    object_lock::forget_bucket(store, name);
    Ok(())
}

fn delete_directory(store: &Store, name: &BucketName, who: &Who) -> Result<()> {
    let mut waits = 0;
    retrying(|| {
        let bucket = store.bucket(name)?;
        match remove(&bucket, name)? {
            Removal::Done => return Ok(sync_root(store)?),
            Removal::NotEmpty => {}
        }
        attempt_as(who, || refuse_if_used(&bucket, name))?;
        refuse_if_strange(&bucket, name)?;
        remove_chains(&bucket, name)?;
        // With all locks held, nothing is replaced, deleted or completed, and no record overflows.
        let locks = key_lock::take_all(&bucket)?;
        recovery::empty_staging(&bucket)?;
        remove_chains(&bucket, name)?;
        // Since the first look, locks were waited for. What came meanwhile is found before the
        // first directory goes, and not after some of them.
        step("a bucket is to be emptied").attempt("remove a bucket")?;
        attempt_as(who, || refuse_if_used(&bucket, name))?;
        attempt_as(who, || remove_directories(&bucket, name))?;
        let created = head(store, name)?.created;
        // From here on it is this one, whatever takes its name.
        let own = match bucket.own_for(Purpose::Removal) {
            Err(Errno::NOENT) => None,
            result => Some(result.attempt("remove a directory of the bucket's own")?),
        };
        let aside = own.as_ref().map(|own| Aside::take(&bucket, own, name)).transpose()?;
        let remove_own = |(own, aside)| remove_own(&bucket, own, name, aside, &mut waits);
        let mut documents = None;
        let removed = own.as_ref().zip(aside.as_ref()).map_or(Ok(()), remove_own).and_then(|()| {
            documents = documents::hold(store)?;
            attempt_as(who, || remove_records(&bucket, name, &bucket.fd, ""))?;
            step("a bucket is empty").attempt("remove a bucket")?;
            remove(&bucket, name)
        });
        let done = matches!(removed, Ok(Removal::Done));
        let marked = if done { Ok(()) } else { restore(&bucket, created) };
        drop((documents, locks));
        if done {
            sync_root(store)?;
        } else if let Some(aside) = &aside {
            aside.put_back(&bucket)?;
        }
        if let Some(aside) = &aside {
            // FUSE may have yet to hear that locks are closed, and keeps them until then. What
            // stays the sweep removes.
            let mut tries = 1..if store.volume.lingers { UNSURE_TRIES } else { 1 };
            while !aside.remove()
                && let Some(tries) = tries.next()
            {
                resolve::pause(tries);
            }
        }
        if done {
            return Ok(());
        }
        marked?;
        // Mostly, a PUT came in between.
        removed.and(Err(Fail::lost("remove a bucket that was written to")))
    })
}

/// Does some work whose file calls are made with the identity `who`.
fn attempt_as(who: &Who, work: impl FnOnce() -> Result<(), Fail>) -> Result<(), Fail> {
    who.call(|| match work() {
        Err(Fail::Storage(error)) => Err(error),
        done => Ok(done),
    })?
}

enum Removal {
    Done,
    NotEmpty,
}

fn remove(bucket: &Bucket<'_>, name: &BucketName) -> Result<Removal, Fail> {
    match removing::remove_directory(&bucket.store.root, name.as_str()) {
        Ok(()) => Ok(Removal::Done),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Removal::NotEmpty),
        // A mount point is its administrator's.
        Err(Errno::BUSY) if is_mount_point(&bucket.fd).attempt("stat a bucket")? => {
            Err(BackendError::BucketMounted.into())
        }
        Err(errno) => Err(errno).attempt("remove a bucket"),
    }
}

/// Refuses a bucket that holds more than directories, before anything is changed. It does not
/// recurse, and opens one directory at a time, since there may be many levels.
fn refuse_if_used(bucket: &Bucket<'_>, bucket_name: &BucketName) -> Result<(), Fail> {
    let mut paths = vec![String::new()];
    while let Some(path) = paths.pop() {
        let directory = open_directory(bucket, &path)?;
        let record = place::directory_record(bucket, &directory).attempt("read a record")?;
        if record.may_be_object() {
            return Err(BackendError::BucketNotEmpty.into());
        }
        refuse_if_fixed(bucket_name, &directory, &path)?;
        let (mut refusal, mut staged, mut records) = (None, Vec::new(), false);
        let read = read_names(&directory, |name, kind| {
            let no_object = |why| Some(no_object(bucket_name, &join(&path, &name.to_string_lossy()), why));
            match (name.to_str(), kind) {
                (Ok("." | ".."), _) => {}
                (Ok(OWN_DIRECTORY), _) if path.is_empty() => {}
                // Where there are no files, they are of nothing; what else is there is looked for.
                (Ok(RECORDS), FileType::Directory | FileType::Unknown) => records = true,
                (Ok(name), _) if keymap::is_lingering(name) => {}
                (Ok(name), _) if keymap::is_of_file_system(name) => {
                    refusal = no_object(OF_FILE_SYSTEM);
                }
                // Of what kind an unknown one is turns out when it is opened.
                (Ok(name), FileType::Directory | FileType::Unknown) => paths.push(join(&path, name)),
                (Ok(name), FileType::RegularFile) if is_scattered(name) => staged.push(name.to_owned()),
                (Ok(name), FileType::RegularFile) => {
                    refusal = match keymap::hidden_because(&join(&path, name)) {
                        Some(why) => no_object(why),
                        None => Some(BackendError::BucketNotEmpty),
                    };
                }
                (Ok(_), FileType::Symlink) => refusal = no_object("a symbolic link"),
                (Ok(_), _) => refusal = no_object("neither a file nor a directory"),
                (Err(_), _) => refusal = no_object("its name is not UTF-8"),
            }
            Ok(refusal.is_none())
        });
        read.attempt("read a directory")?;
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        if records && !orphans::may_go(&directory)? {
            return Err(no_object(
                bucket_name,
                &join(&path, RECORDS),
                "it contains a file that is not a record",
            )
            .into());
        }
        for name in staged {
            // One that is held is a PUT under way.
            if !recovery::remove_staged(bucket, &directory, &name, false)? {
                return Err(BackendError::BucketNotEmpty.into());
            }
        }
    }
    Ok(())
}

/// Removes the folder of records of the directory at `path`. Refuses the bucket if something that
/// is not a record was made there since the bucket was searched.
fn remove_records(
    bucket: &Bucket<'_>,
    bucket_name: &BucketName,
    directory: &OwnedFd,
    path: &str,
) -> Result<(), Fail> {
    if orphans::remove_folder(bucket, directory)? {
        return Ok(());
    }
    Err(no_object(bucket_name, &join(path, RECORDS), "it contains a file that is not a record").into())
}

const OF_FILE_SYSTEM: &str = "a name that is reserved for snapshots or for the file system";

/// Returns the error for a bucket that cannot be deleted although its listing may be empty.
fn no_object(bucket: &BucketName, path: &str, why: &'static str) -> BackendError {
    BackendError::BucketHoldsFiles { path: join(bucket.as_str(), path), why }
}

/// Refuses a bucket whose `.slipway` contains something made by a person or by a newer gateway.
fn refuse_if_strange(bucket: &Bucket<'_>, bucket_name: &BucketName) -> Result<(), Fail> {
    let own = match bucket.open_own(OWN_DIRECTORY) {
        Err(Errno::NOENT) => return Ok(()),
        result => result.attempt("open a directory of the bucket's own")?,
    };
    refuse_if_strange_in(&own, bucket_name, OWN_DIRECTORY, |name| layout::own::NAMES.contains(&name))?;
    bucket.vouch(&own, OWN_DIRECTORY, Purpose::Removal).attempt("remove a directory of the bucket's own")?;
    for (name, is_ours) in [(STAGING, is_staged_name as fn(&str) -> bool), (UPLOADS, uploads::is_id)] {
        match resolve::plain(&own, name, DIRECTORY) {
            // What is not a directory is in the way of what follows.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            result => {
                let directory = result.attempt("open a directory of the bucket's own")?;
                refuse_if_strange_in(&directory, bucket_name, &join(OWN_DIRECTORY, name), is_ours)?;
            }
        }
    }
    Ok(())
}

/// Refuses a bucket if a directory of the server in it has a name that the server does not give.
fn refuse_if_strange_in(
    directory: &OwnedFd,
    bucket_name: &BucketName,
    path: &str,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), Fail> {
    let names = entries(directory).attempt("read a directory")?;
    match names.iter().find(|(name, _)| !is_ours(name) && !keymap::is_lingering(name)) {
        None => Ok(()),
        Some((name, _)) => {
            Err(no_object(bucket_name, &join(path, name), "not created by the gateway").into())
        }
    }
}

/// Removes the directories of old versions. Refuses a bucket that has versions or delete markers,
/// or something there that is neither.
fn remove_chains(bucket: &Bucket<'_>, bucket_name: &BucketName) -> Result<(), Fail> {
    let mut paths = vec![VERSIONS.to_owned()];
    while let Some(path) = paths.last().cloned() {
        let directory = match bucket.own_existing(&path) {
            Err(Errno::NOENT) if paths.len() == 1 => return Ok(()),
            opened => opened.attempt("open the old versions of a key")?,
        };
        let before = paths.len();
        for (name, kind) in entries(&directory).attempt("read the old versions of a key")? {
            let kind = type_of(&directory, &name, kind).attempt("look at an old version")?;
            let Some(kind) = kind else { continue };
            if kind == FileType::Directory {
                paths.push(join(&path, &name));
            } else if keymap::is_lingering(&name) || chain::is_leftover(bucket, &directory, &name)? {
                let removed = rustix::fs::unlinkat(&directory, &*name, AtFlags::empty());
                removed.attempt("remove a leftover")?;
            } else {
                let path = join(OWN_DIRECTORY, &join(&path, &name));
                let is_version = kind == FileType::RegularFile && entry_of(&name).is_some();
                return Err(if is_version {
                    BackendError::BucketHasVersions { path: join(bucket_name.as_str(), &path) }
                } else {
                    no_object(bucket_name, &path, "not created by the gateway")
                }
                .into());
            }
        }
        if paths.len() == before {
            paths.pop();
            let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
            let above = if above.is_empty() { bucket.own() } else { bucket.own_existing(above) };
            remove_empty(above.attempt("open the old versions of a key")?, name)?;
        }
    }
    Ok(())
}

/// Returns the type of a name, which is looked up if reading the directory did not show it; `None`
/// if the name is gone.
fn type_of(directory: &OwnedFd, name: &str, kind: FileType) -> Io<Option<FileType>> {
    if kind != FileType::Unknown {
        return Ok(Some(kind));
    }
    match file_info::at(directory, name) {
        Err(Errno::NOENT) => Ok(None),
        info => info.map(|info| Some(info.kind)),
    }
}

/// Refuses a directory that cannot be removed (a mount point, or missing permissions), before any
/// other is removed.
fn refuse_if_fixed(bucket_name: &BucketName, directory: &OwnedFd, path: &str) -> Result<(), Fail> {
    let stat = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)
        .attempt("stat a directory")?;
    if !path.is_empty() && stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
        return Err(no_object(bucket_name, path, "a file system is mounted there").into());
    }
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    let may = rustix::fs::accessat(directory, ".", wanted, AtFlags::EACCESS);
    may.attempt("remove a directory")
}

/// Opens what should be a directory. Anything else means that the bucket is not empty.
fn open_directory(bucket: &Bucket<'_>, path: &str) -> Result<OwnedFd, Fail> {
    match resolve::plain(&bucket.fd, path, DIRECTORY) {
        Err(errno @ Errno::NOENT) => Err(Fail::lost_to("open a directory", errno)),
        Err(errno) if error::leads_nowhere(errno) => Err(BackendError::BucketNotEmpty.into()),
        result => result.attempt("open a directory"),
    }
}

/// Removes the directories that [`refuse_if_used`] found. Opens them anew, so that each is read
/// from its start.
fn remove_directories(bucket: &Bucket<'_>, bucket_name: &BucketName) -> Result<(), Fail> {
    let mut paths = vec![String::new()];
    while let Some(path) = paths.last().cloned() {
        let directory = open_directory(bucket, &path)?;
        let before = paths.len();
        for (name, _) in entries(&directory).attempt("read a directory")? {
            if (path.is_empty() && name == OWN_DIRECTORY) || name == RECORDS {
                continue;
            }
            if keymap::is_lingering(&name) {
                // Of a client that is gone. Where it is not, the file gets another such name, and
                // goes when it is closed.
                let _ = rustix::fs::unlinkat(&directory, &*name, AtFlags::empty());
                continue;
            }
            let child = join(&path, &name);
            if keymap::is_of_file_system(&name) {
                return Err(no_object(bucket_name, &child, OF_FILE_SYSTEM).into());
            }
            let opened = open_directory(bucket, &child)?;
            let record = place::directory_record(bucket, opened).attempt("read a record")?;
            if record.may_be_object() {
                return Err(BackendError::BucketNotEmpty.into());
            }
            paths.push(child);
        }
        if paths.len() == before {
            paths.pop();
            let (above, name) = keymap::split(&path);
            if !path.is_empty() {
                remove_records(bucket, bucket_name, &directory, &path)?;
                remove_empty(open_directory(bucket, above)?, name)?;
            }
        }
    }
    Ok(())
}

/// Removes an open `.slipway`. The locks, which the caller holds, are set aside. `waits` counts how
/// often files that are being written prevented the removal.
fn remove_own(
    bucket: &Bucket<'_>,
    own: &OwnedFd,
    bucket_name: &BucketName,
    aside: &Aside<'_>,
    waits: &mut usize,
) -> Result<(), Fail> {
    for name in [uploads::COMPLETED, OVERFLOW, SCATTERED] {
        removing::remove_tree(own, name);
    }
    match removing::remove_directory(own, STAGING) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            // On a file system without unnamed files. They may be about to go; if not, a large PUT
            // is under way.
            *waits += 1;
            return Err(if *waits < STAGING_WAITS {
                Fail::lost("remove a directory that is written to")
            } else {
                BackendError::Busy(BusyResource::Bucket).into()
            });
        }
        Err(errno) => return Err(errno).attempt("remove a directory"),
    }
    let _ = rustix::fs::unlinkat(own, converting::ANNOUNCEMENT, AtFlags::empty());
    lock::remove_all(own, &aside.fd)?;
    match own::remove_marked(bucket, own) {
        Err(errno @ (Errno::NOTEMPTY | Errno::EXIST)) => {
            // No more tries would help.
            refuse_if_strange(bucket, bucket_name)?;
            Err(Fail::lost_to("remove a directory", errno))
        }
        result => result.attempt("remove a directory"),
    }
}

fn remove_empty(directory: impl AsFd, name: &str) -> Result<(), Fail> {
    match removing::remove_directory(directory, name) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // By an object, as the next try finds, or by a file that is about to go.
        Err(errno @ (Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR)) => {
            Err(Fail::lost_to("remove a directory", errno))
        }
        Err(errno) => Err(errno).attempt("remove a directory"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use backend::BackendError;

    use super::*;
    use crate::base::options::{Metadata, Options, SweepOptions};
    use crate::base::step::at_each_step;
    use crate::layout::scattered;
    use crate::maintenance::sweep;
    use crate::testing::Scene;

    /// Between the first look and the first removal, locks are waited for.
    #[test]
    fn what_comes_while_a_delete_waits_keeps_empty_directories() {
        let scene = Scene::new();
        let path = scene.path();
        for n in 0..20 {
            fs::create_dir(path.join(format!("mine{n}"))).unwrap();
        }
        // The directory that is looked at last, as directories are removed from the other end.
        let first = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let first = first.filter(|path| !path.ends_with(OWN_DIRECTORY)).find(|path| path.is_dir()).unwrap();
        let put = move |step: &'static str| {
            if step == "a bucket is to be emptied" {
                fs::write(first.join("object"), "1").unwrap();
            }
            Ok(())
        };
        let deleted = at_each_step(put, || delete(&scene.store, &scene.name));
        assert!(matches!(deleted, Err(BackendError::BucketNotEmpty)), "{deleted:?}");
        let left = (0..20).filter(|n| path.join(format!("mine{n}")).is_dir()).count();
        assert_eq!(left, 20);
    }

    /// Reasons to refuse the last step are checked before the first.
    #[test]
    fn a_delete_that_is_refused_leaves_empty_directories() {
        let scene = Scene::new();
        fs::create_dir_all(scene.path().join("mine/deep")).unwrap();
        fs::create_dir(scene.own_path().join("theirs")).unwrap();
        assert!(matches!(delete(&scene.store, &scene.name), Err(BackendError::BucketHoldsFiles { .. })));
        assert!(scene.path().join("mine/deep").is_dir());
        fs::remove_dir(scene.path().join(".slipway/theirs")).unwrap();
        delete(&scene.store, &scene.name).unwrap();
    }

    /// So does a directory with a name of ours, if it has entries with names that the server does
    /// not give.
    #[test]
    fn what_is_none_of_ours_in_our_own_keeps_the_bucket() {
        for path in ["staging/site/index.html", "uploads/2024/photo.jpg"] {
            let scene = Scene::new();
            let at = scene.own_path().join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(&at, "x").unwrap();
            let options = SweepOptions {
                staging_age: Duration::ZERO,
                upload_age: Some(Duration::ZERO),
                ..SweepOptions::default()
            };
            sweep::sweep(&scene.store, &scene.name, &options).unwrap();
            assert!(matches!(delete(&scene.store, &scene.name), Err(BackendError::BucketHoldsFiles { .. })));
            assert!(at.exists(), "{path}");
            fs::remove_dir_all(at.parent().unwrap()).unwrap();
            delete(&scene.store, &scene.name).unwrap();
        }
    }

    /// The client is refused for files that it cannot see, so the error names them for the log.
    #[test]
    fn what_comes_up_while_a_bucket_is_deleted_is_named() {
        for (path, named) in
            [("d/.snapshot", "d/.snapshot"), ("d/.slipway,records/thesis", "d/.slipway,records")]
        {
            let scene = Scene::new();
            let at = scene.path().join(path);
            fs::create_dir_all(&at).unwrap();
            let refused = remove_directories(&scene.bucket(), &scene.name);
            let Err(Fail::Storage(BackendError::BucketHoldsFiles { path: told, .. })) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(told, join(scene.name.as_str(), named));
            assert!(at.is_dir());
        }
    }

    /// Not every file system says of what type a name is when its directory is read.
    #[test]
    fn a_type_that_is_not_told_is_looked_up() {
        let scene = Scene::new();
        fs::create_dir(scene.path().join("d")).unwrap();
        fs::write(scene.path().join("f"), "1").unwrap();
        let bucket = scene.bucket();
        let of = |name: &str| type_of(&bucket.fd, name, FileType::Unknown).unwrap();
        assert_eq!(
            [of("d"), of("f"), of("gone")],
            [Some(FileType::Directory), Some(FileType::RegularFile), None]
        );
    }

    /// On a file system without unnamed files, where its staging file stays longer than
    /// DeleteBucket waits.
    #[test]
    fn a_large_put_under_way_keeps_the_bucket() {
        let scene = Scene::new();
        let staging = scene.own_path().join("staging");
        let _ = fs::create_dir(&staging);
        let path = staging.join(crate::base::unique::name());
        let file = fs::File::create(&path).unwrap();
        file.lock().unwrap();
        let refused = delete(&scene.store, &scene.name);
        assert!(matches!(refused, Err(BackendError::Busy(BusyResource::Bucket))), "{refused:?}");
        assert!(path.exists());
        drop(file);
        delete(&scene.store, &scene.name).unwrap();
    }

    /// A directory of another user may have the name of the folder of records.
    #[test]
    fn what_is_no_record_stays_where_records_are() {
        type Theirs = fn(&std::path::Path);
        let theirs: [Theirs; 5] = [
            |folder| fs::write(folder.join("thesis"), "years").unwrap(),
            |folder| fs::write(folder.join("thesis"), "\x01".repeat(40)).unwrap(),
            |folder| fs::write(folder.join("thesis"), "").unwrap(),
            |folder| fs::create_dir_all(folder.join("thesis/chapter")).unwrap(),
            |folder| {
                let name = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
                fs::write(folder.join::<&std::ffi::OsStr>(name), "").unwrap();
            },
        ];
        for (metadata, path, (n, theirs)) in [None, Some(Metadata::Sidecar)]
            .into_iter()
            .flat_map(|metadata| ["", "d", "d/deep"].map(|path| (metadata, path)))
            .flat_map(|(metadata, path)| theirs.iter().enumerate().map(move |n| (metadata, path, n)))
        {
            let scene = Scene::with(Options { metadata, ..Options::default() });
            let folder = scene.path().join(path).join(RECORDS);
            scene.put("d/deep/a", b"1").unwrap();
            fs::create_dir_all(&folder).unwrap();
            theirs(&folder);
            let before = fs::read_dir(&folder).unwrap().count();
            // A file that goes without us leaves its record, which is in no one's way.
            fs::remove_file(scene.path().join("d/deep/a")).unwrap();
            let refused = delete(&scene.store, &scene.name);
            assert!(matches!(refused, Err(BackendError::BucketHoldsFiles { .. })), "{path} {n} {refused:?}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), before, "{path} {n}");
            // What looks once more, with all locks, leaves it as well.
            assert!(
                !orphans::remove_folder(&scene.bucket(), fs::File::open(folder.parent().unwrap()).unwrap())
                    .unwrap()
            );
            assert!(theirs_is_there(&folder), "{path} {n}");
        }
    }

    fn theirs_is_there(folder: &std::path::Path) -> bool {
        let other = |name: std::ffi::OsString| name == "thesis" || name.to_str().is_none();
        fs::read_dir(folder).unwrap().any(|entry| other(entry.unwrap().file_name()))
    }

    #[test]
    fn records_of_files_that_are_gone_keep_no_bucket() {
        let scene = Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() });
        scene.put("d/a", b"1").unwrap();
        scene.put("b", b"1").unwrap();
        for path in ["d/a", "b"] {
            fs::remove_file(scene.path().join(path)).unwrap();
        }
        fs::write(scene.path().join("d").join(RECORDS).join(scattered::scattered_name()), "torn").unwrap();
        delete(&scene.store, &scene.name).unwrap();
    }
}
