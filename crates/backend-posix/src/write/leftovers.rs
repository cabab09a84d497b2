//! Removes leftovers from a directory in a bucket.
//!
//! A name proves nothing there ([`ours`](crate::tree::ours)). So a leftover with one of the
//! server's names is removed only if it belongs to the server's user, and is something that anyone
//! who may write in the directory could also remove: a file's name, or an empty directory.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::note;
use crate::error::{Fail, Op};
use crate::fs::file_info;
use crate::fs::locking::try_lock_at;
use crate::fs::reading::is_empty;
use crate::fs::resolve::{self, DIRECTORY};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::ours::{is_at, is_our_account};

/// Removes a directory that [`open_new`](crate::tree::ours::open_new) opened, if it still has its
/// name and contains only its record. Returns true if it is gone.
pub(crate) fn remove_made(bucket: &Bucket<'_>, made: &OwnedFd, above: impl AsFd, name: &str) -> bool {
    let _ = records::clear(bucket.store, made);
    let own = file_info::of(made);
    match file_info::at(&above, name) {
        Ok(there) if own.is_ok_and(|own| own.id() == there.id()) => {
            rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR).is_ok()
        }
        Ok(_) => false,
        Err(errno) => errno == Errno::NOENT,
    }
}

/// Removes a directory that was just made, if it is empty: without a mark it would stay forever.
/// Returns true if it is gone.
pub(crate) fn remove_new(bucket: &Bucket<'_>, parent: impl AsFd, name: &str) -> bool {
    // Of another's that took its name, not even the record goes.
    let empty = |opened: &OwnedFd| is_empty(resolve::plain(opened, "", DIRECTORY)?);
    match resolve::plain(&parent, name, DIRECTORY) {
        Ok(directory) if empty(&directory) == Ok(true) => {
            let _ = records::clear(bucket.store, &directory);
            rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
        }
        Ok(_) => false,
        Err(errno) => errno == Errno::NOENT,
    }
}

/// Removes a directory that was left in a directory in a bucket, if it is empty and belongs to the
/// server's user. Returns true if it is gone.
pub(crate) fn remove_empty(bucket: &Bucket<'_>, above: impl AsFd, name: &str) -> Result<bool, Fail> {
    Ok(is_at(bucket, &above, name)? && remove_new(bucket, above, name))
}

/// Removes a file that was staged in a directory in a bucket and left there. No writer may hold it,
/// and it must belong to the server's user, or have belonged to it when a note of it was written.
/// Returns true if it is gone. A link never counts as the server's, since notes are only in
/// staging.
pub(crate) fn remove_scattered(bucket: &Bucket<'_>, above: &OwnedFd, name: &str) -> Result<bool, Fail> {
    let Ok(opened) = resolve::content(above, name) else { return Ok(false) };
    let stat = rustix::fs::fstat(&opened).attempt("stat a file")?;
    let regular = file_info::of(&opened).attempt("stat a file")?.is_file();
    let given = regular && note::is_given(bucket, name, stat.st_ino)?;
    if !given && !is_our_account(bucket, stat.st_uid).attempt("find out the owner")? {
        tracing::warn!(
            name,
            uid = stat.st_uid,
            "a file is named like the server's unfinished writes, but belongs to another user (uid): the sweep \
             does not remove it"
        );
        return Ok(false);
    }
    if !regular {
        drop(opened);
        return remove_empty(bucket, above, name);
    }
    let lock = try_lock_at(above, name, opened).attempt("lock a staging file")?;
    let still = || match file_info::at(above, name) {
        Ok(there) if given => Ok(there.inode == stat.st_ino),
        _ => is_at(bucket, above, name),
    };
    Ok(lock.is_some() && still()? && rustix::fs::unlinkat(above, name, AtFlags::empty()).is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, RenameFlags, Timespec, Timestamps, renameat_with};
    use s3_types::UnixAccount;

    use super::*;
    use crate::base::options::{Metadata, Options, SweepOptions};
    use crate::error::retrying;
    use crate::layout::keymap::RECORDS;
    use crate::layout::staged::is_scattered;
    use crate::maintenance::sweep;
    use crate::record::DirectoryRecord;
    use crate::testing::{Scene, fixture};
    use crate::tree::bucket::Directory;
    use crate::tree::made::Before;
    use crate::tree::ours::open_new;
    use crate::tree::own;
    use crate::tree::store::Store;
    use crate::volume::kind::Kind;
    use crate::write::exchange;
    use crate::write::staging::note_scattered;

    const VICTIM: u32 = 1001;
    const NOBODY: u32 = 65534;
    /// The time limit of a race on a busy machine. If the two threads really run at the same time,
    /// it takes a second.
    const RACE_TIME_MAX: Duration = Duration::from_mins(1);
    const PREPARED: &str = ".slipway,x00000000000000000000000000000007";

    /// A directory in a bucket that all may write in, and in which files were staged. `None`, with
    /// a message, if files can't be given away.
    fn scene() -> Option<Scene> {
        scene_with(Options::default())
    }

    fn scene_with(options: Options) -> Option<Scene> {
        let scene = Scene::with(options);
        scene.put("d/a", b"1").unwrap();
        let shared = scene.path().join("d");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o2777)).unwrap();
        let notes = scene.bucket().own_directory("scattered").unwrap();
        note_scattered(&scene.bucket(), &notes, "d").unwrap();
        fs::create_dir_all(scene.path().join("priv/victim/deep")).unwrap();
        let probe = scene.path().join("priv");
        if chown(&probe, Some(VICTIM), None).is_err() || fs::metadata(&probe).unwrap().uid() != VICTIM {
            eprintln!(
                "\n*** SKIPPED: files have no owners here, so keeping other users' files is NOT tested ***\n"
            );
            return None;
        }
        Some(scene)
    }

    /// Makes a directory that belongs to another user, the victim, with a file deep in it.
    fn theirs(at: &Path) {
        fs::create_dir_all(at.join("deep")).unwrap();
        fs::write(at.join("deep/thesis"), "years").unwrap();
        for path in [at.join("deep/thesis"), at.join("deep"), at.to_owned()] {
            chown(path, Some(VICTIM), Some(VICTIM)).unwrap();
        }
    }

    fn is_theirs(at: &Path) -> bool {
        fs::read(at.join("deep/thesis")).is_ok_and(|bytes| bytes == b"years")
            && fs::metadata(at).unwrap().uid() == VICTIM
    }

    fn scattered(scene: &Scene, kind: char, number: u32) -> PathBuf {
        scene.path().join(format!("d/.slipway,{kind}{number:032x}"))
    }

    fn sweep(scene: &Scene) {
        let options = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
        sweep::sweep(&scene.store, &scene.name, &options).unwrap();
    }

    #[test]
    fn what_others_have_stays_though_it_is_named_as_ours() {
        let Some(scene) = scene() else { return };
        for kind in ['t', 'x'] {
            theirs(&scattered(&scene, kind, 1));
            fs::write(scattered(&scene, kind, 2), "thesis").unwrap();
            fs::create_dir(scattered(&scene, kind, 3)).unwrap();
            for number in [2, 3] {
                chown(scattered(&scene, kind, number), Some(VICTIM), None).unwrap();
            }
            fs::hard_link(scattered(&scene, kind, 2), scene.path().join(format!("priv/{kind}"))).unwrap();
            // Of the server's own account, but what a crash leaves is empty.
            fs::create_dir_all(scattered(&scene, kind, 4).join("deep")).unwrap();
            fs::create_dir(scattered(&scene, kind, 5)).unwrap();
        }
        fs::write(scattered(&scene, 't', 6), "").unwrap();
        sweep(&scene);
        for kind in ['t', 'x'] {
            assert!(is_theirs(&scattered(&scene, kind, 1)), "{kind}");
            assert_eq!(fs::read(scattered(&scene, kind, 2)).unwrap(), b"thesis", "{kind}");
            assert!(scattered(&scene, kind, 3).exists(), "{kind}");
            assert!(scattered(&scene, kind, 4).join("deep").exists(), "{kind}");
            assert!(!scattered(&scene, kind, 5).exists(), "{kind}");
        }
        assert!(!scattered(&scene, 't', 6).exists());
    }

    /// Root may sweep a tree that a gateway with another account serves.
    #[test]
    fn what_the_gateway_left_is_ours_for_root() {
        let Some(scene) = scene() else { return };
        fs::write(scattered(&scene, 't', 1), "").unwrap();
        let kept = scene.path().parent().unwrap().join(".slipway");
        fs::create_dir_all(&kept).unwrap();
        let own = scene.path().join(".slipway");
        let mark = own.join(crate::layout::mark::FILE);
        let mark = mark.exists().then_some(mark);
        for path in [kept, own, scattered(&scene, 't', 1)].into_iter().chain(mark) {
            chown(path, Some(VICTIM), None).unwrap();
        }
        sweep(&scene);
        assert!(!scattered(&scene, 't', 1).exists());
    }

    #[test]
    fn a_link_in_a_directory_of_keys_is_no_note() {
        let Some(scene) = scene() else { return };
        let inbox = scene.path().join("priv/maildir/new");
        fs::create_dir_all(&inbox).unwrap();
        for path in ["priv/maildir/new", "priv/maildir", "priv/victim/deep", "priv/victim"] {
            chown(scene.path().join(path), Some(VICTIM), None).unwrap();
        }
        let texts = ["0:priv/maildir/new", "scattered:priv/victim/deep", "record:d/a"];
        let links = (1..).zip(texts).map(|(number, text)| {
            let link = scattered(&scene, 't', number);
            symlink(text, &link).unwrap();
            lchown(&link, Some(NOBODY), None).unwrap();
            // As if it were noted after all that it tells of.
            let time = Timespec { tv_sec: 4_000_000_000, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::utimensat(CWD, &link, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            link
        });
        let links: Vec<_> = links.collect();
        sweep(&scene);
        assert!(inbox.exists());
        assert!(links.iter().all(|link| link.symlink_metadata().is_ok()));
    }

    /// The names in `d` that the server made.
    fn names_of_ours(scene: &Scene) -> Vec<PathBuf> {
        let entries = fs::read_dir(scene.path().join("d")).unwrap().map(|entry| entry.unwrap());
        let is_ours = |name: &str| name == RECORDS || is_scattered(name);
        entries.filter(|e| e.file_name().to_str().is_some_and(is_ours)).map(|e| e.path()).collect()
    }

    /// Does `work` with `d` open, while another thread exchanges the first file or directory of
    /// ours that appears there with the victim's directory.
    fn exchanged_meanwhile<T>(scene: &Scene, work: impl FnOnce(&Bucket<'_>, &Directory) -> T) -> T {
        let victim = scene.path().join("d/victim");
        let exchange = |made: &PathBuf| renameat_with(CWD, made, CWD, &victim, RenameFlags::EXCHANGE);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let exchanger = scope.spawn(|| {
                while !done.load(Ordering::Relaxed)
                    && !names_of_ours(scene).iter().any(|made| exchange(made).is_ok())
                {
                    std::hint::spin_loop();
                }
            });
            let bucket = scene.bucket();
            let worked = work(&bucket, &bucket.directory("d").unwrap());
            done.store(true, Ordering::Relaxed);
            exchanger.join().unwrap();
            worked
        })
    }

    /// Repeats rounds until the exchange has come often enough between the making and the opening
    /// of the directory.
    #[test]
    fn what_takes_the_name_of_a_new_directory_is_not_given_away() {
        let requester = UnixAccount::new(1234, 4321);
        let Some(scene) = scene() else { return };
        let (started, mut round, mut exchanged_unopened) = (Instant::now(), 0, 0);
        while round < fixture::rounds(100) || exchanged_unopened < 5 {
            // On some machines the moment is short: then fewer have to do, but not none.
            if started.elapsed() > RACE_TIME_MAX {
                assert!(exchanged_unopened > 0, "no race won in {round} rounds");
                break;
            }
            round += 1;
            fs::write(scene.path().join("d/a"), "1").unwrap();
            theirs(&scene.path().join("d/victim"));
            let before = fs::metadata(scene.path().join("d/victim")).unwrap().ino();
            // What fails after the directory was made removes it.
            let fails = round % 2 == 0;
            let unopened = exchanged_meanwhile(&scene, |bucket, parent| {
                let file = file_info::at(parent, "a").unwrap();
                if fails {
                    fs::remove_file(scene.path().join("d/a")).unwrap();
                }
                exchange::prepare(bucket, (parent, "a"), &file, requester, (&parent.fd, PREPARED)).is_err()
            });
            exchanged_unopened += u32::from(unopened && !fails);
            let places = [names_of_ours(&scene), vec![scene.path().join("d/victim")]].concat();
            let has_it =
                |at: &PathBuf| fs::metadata(at).is_ok_and(|info| info.ino() == before) && is_theirs(at);
            assert!(places.iter().any(has_it), "{round}");
            for at in places {
                let _ = fs::remove_dir_all(at);
            }
        }
    }

    /// An empty directory of the server's user that existed before, such as one that a concurrent
    /// PUT has just made, is not taken for the new one.
    #[test]
    fn what_was_there_before_is_not_taken_for_what_is_made() {
        let scene = Scene::new();
        let bucket = scene.bucket();
        let top = bucket.directory("").unwrap();
        if !Kind::of(&top).unwrap().is_local() || file_info::born_ns(&top).is_none() {
            return eprintln!(
                "\n*** SKIPPED: no times of birth here, so older directories are NOT tested ***\n"
            );
        }
        let make = || fs::create_dir(scene.path().join(PREPARED)).unwrap();
        make();
        // The kernel's clock for files goes on every few milliseconds.
        std::thread::sleep(Duration::from_millis(50));
        let before = Before::making();
        let requester = UnixAccount::new(1234, 4321);
        for owner in [requester, None] {
            let opened = open_new(&bucket, &top, PREPARED, owner, before);
            assert!(matches!(opened, Err(Fail::LostRace(_))), "{owner:?}");
        }
        assert!(matches!(own::prepare(&bucket, &top, PREPARED, before), Err(Fail::LostRace(_))));
        for _ in 0..1000 {
            fs::remove_dir(scene.path().join(PREPARED)).unwrap();
            let before = Before::making();
            make();
            open_new(&bucket, &top, PREPARED, None, before).unwrap();
        }
    }

    /// Root's tools give a folder of records that they make to the owner of its directory.
    #[test]
    fn what_takes_the_name_of_a_new_folder_of_records_is_not_given_away() {
        let Some(scene) = scene_with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() })
        else {
            return;
        };
        let Scene { store, .. } = &scene;
        let place = scene.path().join("d");
        chown(&place, Some(NOBODY), None).unwrap();
        let tool = Store::open_as_tool(scene.path().parent().unwrap(), store.options.clone()).unwrap();
        for round in 0..fixture::rounds(1000) {
            let _ = fs::remove_dir_all(place.join(RECORDS));
            let _ = fs::remove_dir_all(place.join("victim"));
            theirs(&place.join("victim"));
            exchanged_meanwhile(&scene, |_, _| {
                let bucket = tool.bucket(&scene.name).unwrap();
                let directory = bucket.directory("d").unwrap();
                let record = DirectoryRecord::made();
                let _ = retrying(|| records::mark(&bucket, &directory, &record));
            });
            assert!(["victim", RECORDS].iter().any(|name| is_theirs(&place.join(name))), "{round}");
        }
        let _ = fs::remove_dir_all(place.join(RECORDS));
        records::mark(
            &tool.bucket(&scene.name).unwrap(),
            scene.bucket().directory("d").unwrap(),
            &DirectoryRecord::made(),
        )
        .unwrap();
        assert_eq!(fs::metadata(place.join(RECORDS)).unwrap().uid(), NOBODY);
    }

    #[test]
    fn what_takes_the_name_of_a_prepared_directory_is_not_removed() {
        let Some(scene) = scene() else { return };
        let (bucket, place) = (scene.bucket(), scene.path().join("d"));
        let parent = bucket.directory("d").unwrap();
        theirs(&place.join("victim"));
        let file = file_info::at(&parent, "a").unwrap();
        let prepared =
            exchange::prepare(&bucket, (&parent, "a"), &file, None, (&parent.fd, PREPARED)).unwrap();
        fs::rename(place.join(PREPARED), place.join("elsewhere")).unwrap();
        fs::rename(place.join("victim"), place.join(PREPARED)).unwrap();
        fs::remove_file(place.join("a")).unwrap();
        assert!(prepared.swap(&bucket).is_err());
        assert!(is_theirs(&place.join(PREPARED)));
    }

    /// A user who can read the names in staging knows the names of notes, and can use them
    /// elsewhere, where they do not count.
    #[test]
    fn a_note_of_a_conversion_counts_where_it_was_written() {
        let Some(scene) = scene() else { return };
        scene.put("key", b"object").unwrap();
        let bucket = scene.bucket();
        let (top, staging) = (bucket.directory("").unwrap(), bucket.staging_directory().unwrap());
        let file = file_info::at(&top, "key").unwrap();
        let in_staging = PREPARED.strip_prefix(".slipway,").unwrap();
        drop(exchange::prepare(&bucket, (&top, "key"), &file, None, (&staging, in_staging)).unwrap());
        // A crash right after the exchange.
        let from = scene.path().join(".slipway/staging").join(in_staging);
        if renameat_with(CWD, &from, CWD, scene.path().join("key"), RenameFlags::EXCHANGE).is_err() {
            return eprintln!(
                "\n*** SKIPPED: no RENAME_EXCHANGE here, so notes of exchanges are NOT tested ***\n"
            );
        }
        fs::write(scene.path().join("d").join(PREPARED), "forged").unwrap();
        let shared = bucket.directory("d").unwrap();
        assert!(!exchange::finish_interrupted(&bucket, &shared.fd, PREPARED, false).unwrap());
        assert_eq!(scene.get("key").unwrap(), b"object");
        sweep(&scene);
        assert_eq!(scene.get("key").unwrap(), b"object");
    }

    #[test]
    fn a_file_becomes_a_directory_where_others_may_write() {
        for swapless in [false, true] {
            let Some(mut scene) = scene() else { return };
            if swapless {
                scene.store.assume_swapless();
            }
            scene.put("d/a/below", b"2").unwrap();
            assert_eq!(scene.get("d/a").unwrap(), b"1", "{swapless}");
            sweep(&scene);
            assert_eq!(scene.get("d/a").unwrap(), b"1", "{swapless}");
            let names = fs::read_dir(scene.path().join("d")).unwrap();
            let left = names.filter(|name| name.as_ref().unwrap().file_name() != RECORDS);
            assert_eq!(left.count(), 1, "{swapless}");
        }
    }
}
