//! Turns a file into a directory on file systems without `RENAME_EXCHANGE`.
//!
//! That takes two steps: the file is renamed into the directory that was prepared with a link to
//! it, and the directory is renamed to the file's path. If another program has put a newer file
//! there, the directory holds that one. It is prepared beside the file: otherwise the file's own
//! directory might be empty between the steps, and be removed. Between the steps the name is
//! missing. Writers look under the key's lock, which the converter holds. Readers and listings look
//! at names without locks, so they are notified: the symbolic link `.slipway/converting` gets
//! another text before the first step (`<unique>:<the prepared directory>:<path>`) and after the
//! last (`<unique>`). A page during which it changed is made again, and a reader who found nothing
//! while it changed looks again under the key's lock.
//!
//! A crash between the steps leaves the text. Whoever finds it while holding the lock on
//! conversions moves the directory to its place: the next to lock the key, to list, to convert
//! another file, or the sweep. (Some file systems have no symbolic links for paths over about 1,000
//! bytes; such a file can't be converted: `KeyNotStorable`.)

use backend::BackendError;
use kernel_calls::acting::as_self;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use crate::base::step::step;
use crate::base::unique;
use crate::error::{Fail, Op, leads_nowhere, retrying};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::converting::{ANNOUNCEMENT, OUT};
use crate::layout::exchanged;
use crate::layout::keymap::{self, SELF, join};
use crate::layout::staged::is_scattered;
use crate::limits::{LISTING_TRIES, READ_CHANGES_MAX, UNSURE_TRIES};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;

/// Replaces a file by the directory that holds it as [`SELF`]. The caller holds the lock of the
/// file.
pub(crate) fn swap_by_steps(
    bucket: &Bucket<'_>,
    (parent, name): (&Directory, &str),
    (staging, prepared): (&OwnedFd, &str),
) -> Result<(), Fail> {
    let path = join(&parent.path, name);
    let _lock = finish_interrupted(bucket)?;
    // The sweep may have taken it for a leftover. It does that with the same lock.
    let directory = resolve::plain(staging, prepared, DIRECTORY).attempt("look up a name")?;
    file_info::at(&directory, SELF).attempt("look up a name")?;
    bucket.store.sync_names(staging).attempt("sync a directory")?;
    announce(bucket, &format!("{}:{prepared}:{path}", unique::name()))?;
    // Not removed: another program may have put a newer one there.
    let taken = rustix::fs::renameat(parent, name, &directory, OUT).attempt("move a file away");
    let was_taken = taken.is_ok();
    let placed = taken
        .and_then(|()| step("a file is taken").attempt("place a directory"))
        .and_then(|()| place(staging, prepared, parent, name));
    // If the directory can't have the name, the next who comes upon the announcement tries again.
    if !was_taken || placed.is_ok() || file_info::at(parent, name).is_ok() {
        let _ = announce(bucket, &unique::name());
    }
    placed
}

/// True if a prepared directory is still to be placed, or if that can't be known. The file in it
/// may have no other name.
pub(crate) fn is_on_its_way(bucket: &Bucket<'_>, prepared: &str) -> bool {
    read(bucket).map_or(true, |text| {
        text.as_deref().and_then(under_way).is_some_and(|(announced, _)| announced == prepared)
    })
}

/// Waits until no file is being converted by steps, finishes a conversion that a crash interrupted,
/// and prevents new ones until the lock is dropped. A caller that holds this lock must not wait for
/// another one.
pub(crate) fn finish_interrupted(bucket: &Bucket<'_>) -> Result<Lock, Fail> {
    let lock = bucket.lock_conversions()?;
    let text = read(bucket)?.unwrap_or_default();
    if let Some((prepared, path)) = under_way(&text) {
        tracing::warn!(
            path,
            "a crash interrupted the server while it turned an object's file at this path into a directory, so that \
            there can be objects below this path: it completes that now"
        );
        let (above, name) = keymap::split(path);
        match bucket.directory(above) {
            Ok(parent) if matches!(name, "" | "." | "..") => drop(parent),
            Ok(parent) if is_scattered(prepared) => place(&parent, prepared, &parent, name)?,
            Ok(parent) => place(bucket.staging_directory()?, prepared, &parent, name)?,
            // Someone has removed it, and all that was in it.
            Err(errno) if leads_nowhere(errno) => {}
            Err(errno) => return Err(errno).attempt("open a directory"),
        }
        // It may also stay: what is done is found to be done.
        let _ = announce(bucket, &unique::name());
    }
    Ok(lock)
}

/// Finishes the conversion of a path that is `wanted`, if a crash interrupted one. The caller holds
/// the locks of all such paths: a conversion that still runs would hold one of them. Only file
/// systems where names may be missing for a moment need this.
pub(crate) fn finish_wanted(bucket: &Bucket<'_>, wanted: impl Fn(&str) -> bool) -> Result<(), Fail> {
    if let Some(text) = read(bucket)?
        && under_way(&text).is_some_and(|(_, path)| wanted(path))
    {
        drop(finish_interrupted(bucket)?);
    }
    Ok(())
}

/// Does the same as [`finish_interrupted`]; returns `None` if it is not needed.
pub(crate) fn finish_any(bucket: &Bucket<'_>) -> Result<Option<Lock>, Fail> {
    let by_steps = !bucket.store.volume_at(&bucket.fd).exchange.is_yes();
    by_steps.then(|| finish_interrupted(bucket)).transpose()
}

/// The result of a look at a name without a lock.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Look<T> {
    /// The thing that the name leads to; `None` if it certainly does not exist.
    Sure(Option<T>),
    /// A file may have been converted during the look: only a look under the lock is reliable.
    Disturbed,
}

/// Looks again, without a lock, for something that was not found. It is for volumes on which a name
/// is only missing while a file is converted by steps.
pub(crate) fn look_undisturbed<T>(
    bucket: &Bucket<'_>,
    look: impl FnOnce() -> Result<Option<T>, Fail>,
) -> Result<Look<T>, Fail> {
    let before = match read(bucket) {
        // Nothing counts there; the operator was told.
        Err(BackendError::Denied { .. }) => None,
        result => result?,
    };
    match before {
        // An announcement stays, in one text or another: none was made before the first look.
        None => Ok(Look::Sure(None)),
        Some(text) if under_way(&text).is_some() => Ok(Look::Disturbed),
        Some(text) => {
            let found = look()?;
            let is_sure = found.is_some() || read(bucket)? == Some(text);
            Ok(if is_sure { Look::Sure(found) } else { Look::Disturbed })
        }
    }
}

/// Repeats `work`, which reads names without locks, until no file was converted during it.
pub(crate) fn undisturbed<T>(
    bucket: &Bucket<'_>,
    mut work: impl FnMut() -> backend::Result<T>,
) -> backend::Result<T> {
    if !bucket.store.volume_at(&bucket.fd).names_may_vanish() {
        return work();
    }
    // Who may not write can have no lock, and tries for longer.
    let tries_max = if bucket.store.is_only_read() { UNSURE_TRIES } else { LISTING_TRIES };
    for tries in 1..=tries_max {
        let before = match read(bucket) {
            // Nothing counts there; the operator was told.
            Err(BackendError::Denied { .. }) => return work(),
            result => result?,
        };
        if before.as_deref().and_then(under_way).is_none() {
            match work() {
                // FUSE, of something that another mount removed, or made a directory of, since it
                // was opened.
                Err(BackendError::Io { source, .. }) if is_gone(&source) => {}
                done => {
                    let done = done?;
                    if read(bucket)? == before {
                        return Ok(done);
                    }
                }
            }
        } else if bucket.store.is_only_read() {
            resolve::pause(tries);
        } else if finish_interrupted(bucket).is_err() {
            break;
        }
    }
    let _lock = match retrying(|| finish_interrupted(bucket)) {
        // Who may not write here can have no lock.
        Err(error @ (BackendError::ReadOnly | BackendError::Denied { .. })) => {
            tracing::warn!(
                ?error,
                "the server turns an object's file into a directory, so that there can be objects below it, and \
                 cannot take the lock that makes listings wait until this is done: a listing at this moment may \
                 leave the object out"
            );
            None
        }
        lock => Some(lock?),
    };
    work()
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::STALE | Errno::IO))
}

/// Moves a prepared directory to the path of the file that is in it, if the path is free. If a
/// directory was made there in the meantime, that one gets the file. Does nothing if the prepared
/// directory is gone.
fn place(staging: impl AsFd, prepared: &str, parent: &Directory, name: &str) -> Result<(), Fail> {
    let directory = match resolve::plain(&staging, prepared, DIRECTORY) {
        // Done, or not ours.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        result => result.attempt("open a directory")?,
    };
    let Ok(own) = file_info::at(&directory, SELF) else { return Ok(()) };
    if !own.is_file() || !sort_out(&directory, &own, parent, name)? {
        return Ok(());
    }
    for _ in 0..READ_CHANGES_MAX {
        let placed = match file_info::at(parent, name) {
            Err(Errno::NOENT) => match rustix::fs::renameat(&staging, prepared, parent, name) {
                // Another program has just put something there.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => continue,
                result => result,
            },
            Ok(info) if info.is_directory() => {
                let there = resolve::plain(parent, name, DIRECTORY).attempt("open a directory")?;
                match rustix::fs::linkat(&directory, SELF, there, SELF, AtFlags::empty()) {
                    Err(Errno::EXIST) => Ok(()),
                    result => result,
                }
            }
            result => result.map(drop),
        };
        return match placed {
            Err(Errno::NOENT) if file_info::at(&staging, prepared).is_err() => Ok(()),
            // The file's own directory is gone: if another one is made, the file comes into that.
            Err(errno @ Errno::NOENT) => Err(Fail::lost_to("place a directory", errno)),
            result => result.attempt("place a directory"),
        };
    }
    Err(Fail::lost("place a directory"))
}

/// Decides about the file [`OUT`]: it is removed if it is the same file as [`SELF`], and replaces
/// that if it is a newer file. Anything else is moved back to its path: then this returns false,
/// and the directory must not be placed.
fn sort_out(directory: &OwnedFd, own: &FileInfo, parent: &Directory, name: &str) -> Result<bool, Fail> {
    let out = match file_info::at(directory, OUT) {
        Err(Errno::NOENT) => return Ok(true),
        result => result.attempt("look up a name")?,
    };
    let taken_in = take_in(directory, own.id(), (directory, OUT), &out)?;
    if !taken_in && matches!(file_info::at(parent, name), Err(Errno::NOENT)) {
        rustix::fs::renameat(directory, OUT, parent, name).attempt("put a name back")?;
    }
    Ok(taken_in)
}

/// Handles a file that came out: if the `directory` already has the file (`expected`), its name is
/// removed; if it is a newer file, it replaces that one. Returns false if it is not a file.
pub(crate) fn take_in(
    directory: &OwnedFd,
    expected: (u64, u64),
    (above, name): (&OwnedFd, &str),
    out: &FileInfo,
) -> Result<bool, Fail> {
    if out.id() == expected {
        rustix::fs::unlinkat(above, name, AtFlags::empty()).attempt("remove a name")?;
    } else if out.is_file() {
        tracing::debug!(
            name,
            "another program replaced a file while it was being turned into a directory: the newer file is kept"
        );
        rustix::fs::renameat(above, name, directory, SELF).attempt("replace a file")?;
        // Where each name of a file has its own inode number, it may be the same file nevertheless:
        // then both names stay.
        let _ = rustix::fs::unlinkat(above, name, AtFlags::empty());
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// True if a prepared directory may have the only name of a file.
pub(crate) fn holds_something(directory: &OwnedFd) -> bool {
    !matches!(file_info::at(directory, OUT), Err(Errno::NOENT))
}

fn announce(bucket: &Bucket<'_>, text: &str) -> Result<(), Fail> {
    let (staging, name) = (bucket.staging_directory()?, unique::name());
    as_self(|| rustix::fs::symlinkat(text, &staging, &name)).attempt("announce a conversion")?;
    let own = bucket.own().attempt("open a directory")?;
    as_self(|| rustix::fs::renameat(&staging, &name, &own, ANNOUNCEMENT)).attempt("announce a conversion")?;
    bucket.store.sync_names(own).attempt("sync a directory")
}

/// Reads the text of the announcement; `None` if no file was ever converted by steps.
fn read(bucket: &Bucket<'_>) -> backend::Result<Option<String>> {
    let own = match bucket.own() {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        result => result.op("read an announcement")?,
    };
    for tries in 1..=UNSURE_TRIES {
        match as_self(|| rustix::fs::readlinkat(&own, ANNOUNCEMENT, Vec::new())) {
            Ok(text) => return Ok(Some(text.to_string_lossy().into_owned())),
            // FUSE says so too of one that is being replaced: then it is there for whoever only
            // looks for the name.
            Err(Errno::NOENT | Errno::STALE) => {
                let flags = resolve::PLACE | OFlags::NOFOLLOW;
                match as_self(|| resolve::plain(&own, ANNOUNCEMENT, flags)) {
                    Err(Errno::NOENT) => return Ok(None),
                    _ => resolve::pause(tries),
                }
            }
            // EINVAL: someone put something else there than a link, which announces nothing.
            Err(Errno::NOTDIR | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(errno).op("read an announcement"),
        }
    }
    Err(BackendError::OutOf("the file that announces a conversion kept changing while it was read"))
}

/// Returns the prepared directory and the path of the file during a conversion. Anyone who may
/// write in the bucket may have written the text, so it is used only if the directory's name has
/// the form of names in staging.
fn under_way(text: &str) -> Option<(&str, &str)> {
    let (prepared, path) = text.split_once(':')?.1.split_once(':')?;
    (is_scattered(prepared) || exchanged::is_in_staging(prepared)).then_some((prepared, path))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::time::Duration;

    use s3_types::Conditions;

    use super::*;
    use crate::base::options::SweepOptions;
    use crate::base::step::at_each_step;
    use crate::maintenance::sweep;
    use crate::testing::Scene;
    use crate::write::exchange::{Prepared, prepare};
    use crate::write::{directories, key_lock};
    use crate::{listing, object};

    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.store.assume_swapless();
        scene.put("a", b"1").unwrap();
        scene.put("b", b"1").unwrap();
        scene
    }

    /// The step after which a test's crash comes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum After {
        Prepared,
        Announced,
        Taken,
        Removed,
        Placed,
    }

    const PREPARED: &str = "x00000000000000000000000000000001";

    fn prepared<'p>(bucket: &Bucket<'_>, parent: &'p Directory, staging: &'p OwnedFd) -> Prepared<'p> {
        let file = file_info::at(parent, "a").unwrap();
        prepare(bucket, (parent, "a"), &file, None, (staging, PREPARED)).unwrap()
    }

    const CRASHES: [After; 5] =
        [After::Prepared, After::Announced, After::Taken, After::Removed, After::Placed];

    fn crash(scene: &Scene, after: After) {
        let bucket = scene.bucket();
        let parent = bucket.directory("").unwrap();
        let staging = bucket.staging_directory().unwrap();
        prepared(&bucket, &parent, &staging);
        if after != After::Prepared {
            announce(&bucket, &format!("1:{PREPARED}:a")).unwrap();
        }
        let staged = scene.path().join(".slipway/staging").join(PREPARED);
        if after == After::Taken {
            fs::rename(scene.path().join("a"), staged.join(OUT)).unwrap();
        }
        if matches!(after, After::Removed | After::Placed) {
            fs::remove_file(scene.path().join("a")).unwrap();
        }
        if after == After::Placed {
            fs::rename(staged, scene.path().join("a")).unwrap();
        }
    }

    fn sweep(scene: &Scene) {
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
        assert_eq!(fs::read_dir(scene.path().join(".slipway/staging")).unwrap().count(), 0);
        let text = read(&scene.bucket()).unwrap();
        assert!(text.as_deref().and_then(under_way).is_none());
    }

    fn keys(scene: &Scene) -> Vec<String> {
        let (bucket, prefix) = (scene.name.clone(), String::new());
        let query = listing::Query { bucket, prefix, delimiter: None, start: None, max_items: 10 };
        let page = listing::list(scene, &query).unwrap();
        page.items.iter().map(|item| format!("{item:?}").split('"').nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn the_file_is_in_its_directory_afterwards() {
        let scene = scene();
        let bucket = scene.bucket();
        let (parent, staging) = (bucket.directory("").unwrap(), bucket.staging_directory().unwrap());
        prepared(&bucket, &parent, &staging);
        swap_by_steps(&bucket, (&parent, "a"), (&staging, PREPARED)).unwrap();
        assert_eq!(scene.get("a").unwrap(), b"1");
        scene.put("a/b", b"2").unwrap();
        assert_eq!(scene.get("a/b").unwrap(), b"2");
        assert_eq!(keys(&scene), ["a", "a/b", "b"]);
        sweep(&scene);
    }

    /// Between the steps the directory of a file that is alone there must not seem to be empty.
    #[test]
    fn the_directory_of_a_file_that_is_taken_stays() {
        let mut scene = Scene::new();
        scene.store.assume_swapless();
        scene.put("d/a", b"1").unwrap();
        let scene = Arc::new(scene);
        let other = Arc::clone(&scene);
        let pruning = move |step| {
            if step == "a file is taken" {
                directories::prune(&other.bucket(), "d");
                assert!(other.path().join("d").exists());
            }
            Ok(())
        };
        at_each_step(pruning, || scene.put("d/a/b", b"2")).unwrap();
        assert_eq!((scene.get("d/a").unwrap(), scene.get("d/a/b").unwrap()), (b"1".to_vec(), b"2".to_vec()));
        sweep(&scene);
        assert_eq!(keys(&scene), ["d/a", "d/a/b"]);
    }

    /// If the second step fails, the file has no other name than that in the prepared directory.
    #[test]
    fn a_second_step_that_fails_loses_nothing() {
        let mut scene = Scene::new();
        scene.store.assume_swapless();
        scene.put("d/a", b"1").unwrap();
        let failing = |step| if step == "a file is taken" { Err(Errno::IO) } else { Ok(()) };
        assert!(at_each_step(failing, || scene.put("d/a/b", b"2")).is_err());
        assert_eq!(scene.get("d/a").unwrap(), b"1");
        sweep(&scene);
        assert_eq!(keys(&scene), ["d/a"]);
    }

    #[test]
    fn a_crash_hides_the_object_from_no_one() {
        let tests: [fn(&Scene); 6] = [
            |scene| assert_eq!(scene.get("a").unwrap(), b"1"),
            |scene| assert_eq!(keys(scene), ["a", "b"]),
            // Whose announcement takes the place of the one before.
            |scene| scene.put("b/c", b"3").unwrap(),
            |scene| scene.put("a/c", b"3").unwrap(),
            |scene| {
                let only_new =
                    Conditions { if_none_match: Some(s3_types::ETagCondition::Any), ..Conditions::default() };
                let target = crate::write::publish::Target { conditions: only_new, ..scene.target("a") };
                let mut stage = target.stage(&scene.store).unwrap();
                stage.staged.append(&[]).unwrap();
                let sealed = stage
                    .staged
                    .seal(&stage.bucket, None, crate::record::ObjectRecord::of_assembly())
                    .unwrap();
                let refused = target.publish(scene.bucket(), None, sealed);
                assert!(matches!(refused, Err(BackendError::PreconditionFailed(_))), "{refused:?}");
            },
            sweep,
        ];
        for after in CRASHES {
            for test in tests {
                let scene = scene();
                crash(&scene, after);
                test(&scene);
                sweep(&scene);
                assert_eq!(scene.get("a").unwrap(), b"1", "{after:?}");
                assert!(keys(&scene).starts_with(&["a".to_owned()]), "{after:?}");
            }
        }
    }

    #[test]
    fn what_is_deleted_after_a_crash_stays_so() {
        for after in CRASHES {
            let scene = scene();
            crash(&scene, after);
            assert!(object::delete(&scene.store, &scene.target("a"), None).unwrap().existed, "{after:?}");
            sweep(&scene);
            assert!(matches!(scene.get("a"), Err(BackendError::NoSuchKey)), "{after:?}");
            assert_eq!(keys(&scene), ["b"]);
        }
    }

    /// A user who may write in the bucket may write an announcement.
    #[test]
    fn an_announcement_leads_nowhere_else() {
        let scene = scene();
        let outside = scene.path().parent().unwrap().join("outside");
        fs::create_dir_all(outside.join("p")).unwrap();
        fs::write(outside.join("p/.slipway,self"), "secret").unwrap();
        let staging = scene.path().join(".slipway/staging");
        fs::create_dir_all(&staging).unwrap();
        let name = exchanged::name_in_staging();
        std::os::unix::fs::symlink(outside.join("p"), staging.join(&name)).unwrap();
        for text in ["1:../../../outside/p:stolen", "2:../../outside:stolen", &format!("3:{name}:stolen")] {
            announce(&scene.bucket(), text).unwrap();
            assert_eq!(keys(&scene), ["a", "b"], "{text}");
            let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
            sweep::sweep(&scene.store, &scene.name, &options).unwrap();
            assert!(
                outside.join("p/.slipway,self").exists() && !scene.path().join("stolen").exists(),
                "{text}"
            );
        }
    }

    /// Readers of a missing object take no lock, before and after a file was converted.
    #[test]
    fn a_missing_key_is_missing_without_its_lock() {
        let scene = scene();
        let bucket = scene.bucket();
        if bucket.store.volume_at(&bucket.fd).stale_names {
            return eprintln!(
                "\n*** SKIPPED: names are missing here for other reasons, so a look without a lock is NOT tested ***\n"
            );
        }
        let missing = || matches!(scene.get("missing"), Err(BackendError::NoSuchKey));
        let held = key_lock::take(&bucket, "missing").unwrap();
        assert!(missing());
        drop(held);
        announce(&bucket, "1").unwrap();
        let _held = key_lock::take(&bucket, "missing").unwrap();
        assert!(missing() && scene.get("b").unwrap() == b"1");
        assert!(matches!(
            object::delete(&scene.store, &scene.target("missing"), None).map(|receipt| receipt.existed),
            Ok(false)
        ));
    }

    /// A look during which a file was converted proves nothing.
    #[test]
    fn a_look_that_a_conversion_disturbs_does_not_count() {
        let scene = scene();
        let bucket = scene.bucket();
        let look = |during: &dyn Fn()| {
            let looked = look_undisturbed(&bucket, || {
                during();
                Ok(None::<()>)
            });
            looked.unwrap()
        };
        assert_eq!(look(&|| panic!("nothing was ever announced")), Look::Sure(None));
        announce(&bucket, "1").unwrap();
        assert_eq!(look(&|| {}), Look::Sure(None));
        assert_eq!(look(&|| announce(&bucket, "2").unwrap()), Look::Disturbed);
        announce(&bucket, &format!("3:{PREPARED}:a")).unwrap();
        assert_eq!(look(&|| panic!("one is under way")), Look::Disturbed);
    }

    /// An announcement blocks nobody if a person has removed its directory since the crash.
    #[test]
    fn one_whose_directory_is_gone_keeps_no_one() {
        let scene = scene();
        announce(&scene.bucket(), &format!("1:{}:gone/y", exchanged::name_in_staging())).unwrap();
        scene.put("b/c", b"2").unwrap();
        sweep(&scene);
        assert_eq!(keys(&scene), ["a", "b", "b/c"]);
    }

    #[test]
    fn a_directory_that_someone_made_meanwhile_gets_the_file() {
        let scene = scene();
        crash(&scene, After::Removed);
        fs::create_dir(scene.path().join("a")).unwrap();
        fs::write(scene.path().join("a/x"), "2").unwrap();
        assert_eq!(keys(&scene), ["a", "a/x", "b"]);
        assert_eq!(scene.get("a").unwrap(), b"1");
        sweep(&scene);
    }
}
