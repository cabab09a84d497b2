//! Reads the attributes of objects that a page shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use backend::{ObjectSummary, Result};
use kernel_calls::acting::spawn_scoped;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::ObjectKey;

use super::known::{KnownRecords, Shown};
use super::names;
use super::walk::{FoundObject, Source};
use crate::base::seldom::Seldom;
use crate::base::step::step;
use crate::error::{Io, Op, is_of_one_file, leads_nowhere, retrying};
use crate::facts::foreign::{self, VersitygwUse};
use crate::facts::place::directory_record;
use crate::fs::file_info::{self, FileInfo, Stamp};
use crate::fs::resolve::{self, PLACE};
use crate::layout::keymap::{DIRECTORY_DATA, SELF, join};
use crate::limits::{
    LISTING_UNREAD_LOGGED, READ_CHANGES_MAX, SUMMARIES_EACH_MIN, SUMMARY_THREADS_MAX, SUMMARY_THREADS_OF_ALL,
    UNSURE_TRIES,
};
use crate::record::{ObjectRecord, Reading};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::unchanged::State;
use crate::write::key_lock;

/// The result of reading an object's attributes.
#[derive(Debug)]
pub(crate) enum ReadSummary {
    Object(ObjectSummary),
    /// The object seems to be gone; [`look_again`] decides. This happens only where names may be
    /// missing for a moment.
    Doubtful(DoubtfulObject),
}

/// An object that may still exist although it seemed to be gone.
#[derive(Debug)]
pub(crate) struct DoubtfulObject {
    pub key: String,
    /// The path of the directory. It is not open, since there may be more of these objects than
    /// directories can be open.
    directory: String,
    source: Source,
}

/// Returns summaries of the found objects in their order, without those that no longer exist.
/// Several threads read them if each file takes a wait for a network. On a local file system
/// threads would hinder each other: with several, it took twice the time for inodes on the disk,
/// and no less for those in memory.
pub(super) fn summaries(
    bucket: &Bucket<'_>,
    known: &KnownRecords,
    found: &[FoundObject],
) -> Result<Vec<ReadSummary>> {
    let remote = !bucket.store.reads_inline();
    let threads = if remote { (found.len() / SUMMARIES_EACH_MIN).clamp(1, SUMMARY_THREADS_MAX) } else { 1 };
    let helpers = Helpers::take(&bucket.store.options.quotas.helpers, threads - 1);
    let begun_ns = i128::from(file_info::files_now_ns());
    let several = |found: &[FoundObject]| {
        found.iter().filter_map(|one| summary(bucket, known, one, begun_ns).transpose()).collect()
    };
    if helpers.number == 0 {
        return several(found);
    }
    let each = found.len().div_ceil(helpers.number + 1).max(1);
    let (own, others) = found.split_at(each.min(found.len()));
    thread::scope(|scope| {
        // They look at the files as this thread does.
        let spawn = |some| spawn_scoped(scope, thread::Builder::new(), move || several(some));
        let others: Vec<_> = others.chunks(each).map(|some| (some, spawn(some))).collect();
        let mut all: Vec<ReadSummary> = several(own)?;
        for (some, other) in others {
            // Without a thread it is done here.
            let Ok(other) = other else {
                all.append(&mut several(some)?);
                continue;
            };
            let some: Result<Vec<_>> = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.append(&mut some?);
        }
        Ok(all)
    })
}

/// The additional threads that one listing has taken from those that all listings share.
struct Helpers<'q> {
    number: usize,
    of_all: &'q AtomicUsize,
}

impl<'q> Helpers<'q> {
    fn take(of_all: &'q AtomicUsize, wanted: usize) -> Self {
        let taken = of_all.fetch_add(wanted, Relaxed);
        let granted = SUMMARY_THREADS_OF_ALL.saturating_sub(taken).min(wanted);
        of_all.fetch_sub(wanted - granted, Relaxed);
        Self { number: granted, of_all }
    }
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.of_all.fetch_sub(self.number, Relaxed);
    }
}

/// Reads the summary of an object; `None` if the object is gone.
fn summary(
    bucket: &Bucket<'_>,
    known: &KnownRecords,
    found: &FoundObject,
    begun_ns: i128,
) -> Result<Option<ReadSummary>> {
    let FoundObject { key, directory, source } = found;
    let look = || attributes((bucket, known), directory, key, source, begun_ns);
    let mut attributes = look();
    // Elsewhere only what is known to be replaced while it was looked at.
    let doubtful = |attributes: &Io<Option<Shown>>| {
        matches!(attributes, Err(Errno::STALE))
            || (seems_gone(attributes) && bucket.store.volume_at(directory).names_may_vanish())
    };
    if doubtful(&attributes) {
        attributes = look();
        if doubtful(&attributes) {
            let directory = directory.path.clone();
            return Ok(Some(ReadSummary::Doubtful(DoubtfulObject {
                key: key.clone(),
                directory,
                source: source.clone(),
            })));
        }
    }
    Ok(summarized(bucket, found, attributes)?.map(ReadSummary::Object))
}

/// True if the object seems to be gone. FUSE returns ENOENT or ESTALE also for a file that was
/// replaced after its name was looked up. It does so until the call that replaced it returns, which
/// on a busy machine takes many ms. It also returns EIO for a file that became a directory through
/// another mount.
fn seems_gone(attributes: &Io<Option<Shown>>) -> bool {
    match attributes {
        Ok(attributes) => attributes.is_none(),
        Err(errno) => leads_nowhere(*errno) || matches!(*errno, Errno::STALE | Errno::IO),
    }
}

fn summarized(
    bucket: &Bucket<'_>,
    found: &FoundObject,
    attributes: Io<Option<Shown>>,
) -> Result<Option<ObjectSummary>> {
    let attributes = match attributes {
        Err(errno) if leads_nowhere(errno) => None,
        // One object that can't be read must not hide all others.
        Err(errno) if is_of_one_file(errno) => unread(bucket, found, errno),
        result => result.op("read an object's attributes")?,
    };
    let (Some(attributes), Ok(key)) = (attributes, ObjectKey::new(&*found.key)) else { return Ok(None) };
    let Shown { size_bytes, last_modified, etag, checksum } = attributes;
    Ok(Some(ObjectSummary { key, size_bytes, last_modified, etag, checksum, version: None }))
}

/// Returns the attributes of an object whose record can't be read, as if it had none; `None` if not
/// even its file can be read. Logs the object.
pub(super) fn unread(bucket: &Bucket<'_>, found: &FoundObject, errno: Errno) -> Option<Shown> {
    static LOGGED: Seldom = Seldom::new(LISTING_UNREAD_LOGGED);
    let FoundObject { key, directory, source } = found;
    let file = |path: &str| bucket.open(&join(&directory.path, path), PLACE).and_then(file_info::of);
    let info = match source {
        Source::File(path) => file(path).ok().filter(FileInfo::is_file),
        Source::Directory => file(DIRECTORY_DATA).ok().filter(FileInfo::is_file).or_else(|| {
            let info = file_info::of(directory).ok()?;
            Some(FileInfo { stamp: Stamp { size_bytes: 0, ..info.stamp }, ..info })
        }),
    };
    bucket.store.count_unread();
    if LOGGED.is_due() {
        let shown = info.is_some();
        let bucket = bucket.name_for_log();
        tracing::error!(bucket, key, directory = directory.path, error = %errno, shown, "an object's record cannot be read. shown=true: the listing has the object without what the record says \
            of it, as for a file that another program wrote; shown=false: the listing leaves the object out");
    }
    info.map(|info| foreign::attributes(&bucket.store.lasting(directory, &info), key).into())
}

/// Looks again for an object, under the key's lock. A writer that replaces the object or turns it
/// into a directory holds this lock until the name exists again. Returns `None` if the object is
/// gone. The caller must hold no lock.
pub(super) fn look_again(
    bucket: &Bucket<'_>,
    known: &KnownRecords,
    doubtful: &DoubtfulObject,
) -> Result<Option<ObjectSummary>> {
    let DoubtfulObject { key, directory, source } = doubtful;
    retrying(|| {
        let directory = match bucket.directory(directory) {
            Err(errno) if leads_nowhere(errno) => return Ok(None),
            result => Arc::new(result.attempt("open a directory")?),
        };
        let lock = match source {
            Source::Directory => key_lock::take_for_look(bucket, &format!("{}/", directory.path)),
            Source::File(name) => {
                let name = name.strip_suffix(SELF).and_then(|name| name.strip_suffix('/')).unwrap_or(name);
                key_lock::take_for_look(bucket, &join(&directory.path, name))
            }
        }?;
        let begun_ns = i128::from(file_info::files_now_ns());
        let read = || attributes((bucket, known), &directory, key, source, begun_ns);
        let mut attributes = read();
        if lock.is_some() {
            for _ in 0..READ_CHANGES_MAX {
                if !matches!(attributes, Err(Errno::STALE | Errno::IO)) {
                    break;
                }
                attributes = read();
            }
        } else {
            // Who may not write can only wait for a while for those who have the lock.
            for tries in 1..UNSURE_TRIES {
                if !seems_gone(&attributes) {
                    break;
                }
                step("a name is waited for").attempt("look at an object again")?;
                resolve::pause(tries);
                attributes = read();
            }
        }
        Ok(summarized(
            bucket,
            &FoundObject { key: key.clone(), directory, source: source.clone() },
            attributes,
        )?)
    })
}

fn attributes(
    (bucket, known): (&Bucket<'_>, &KnownRecords),
    directory: &Directory,
    key: &str,
    source: &Source,
    begun_ns: i128,
) -> Io<Option<Shown>> {
    let path = match source {
        Source::File(path) => path,
        Source::Directory => return directory_attributes(bucket, directory, key),
    };
    // By one name at a time: what was a directory when the walk came by may be a link by now.
    let parent;
    let (directory, name) = match path.rsplit_once('/') {
        None => (directory, path.as_str()),
        Some((above, name)) => {
            parent = names::child(bucket, directory, above)?;
            (&parent, name)
        }
    };
    if let Some(shown) = by_name((bucket, known), directory, name, key, begun_ns) {
        return Ok(Some(shown));
    }
    match open(bucket, directory, name) {
        // It became a directory meanwhile.
        Ok(Opened { file, path, info }) if info.is_directory() && name != SELF => {
            let directory = Directory { fd: Arc::new(file), path };
            attributes_of(bucket, &open(bucket, &directory, SELF)?, key)
        }
        Ok(opened) => attributes_of(bucket, &opened, key),
        // Its content is someone's own; that it is there shows.
        Err(Errno::ACCESS) => {
            let info = file_info::at(directory, name)?;
            Ok(info
                .is_file()
                .then(|| foreign::attributes(&bucket.store.lasting(directory, &info), key).into()))
        }
        Err(errno) => Err(errno),
    }
}

/// Returns the attributes of a directory object. If something other than a file has the name of its
/// data, the object has no data.
fn directory_attributes(bucket: &Bucket<'_>, directory: &Directory, key: &str) -> Io<Option<Shown>> {
    let shown = match open(bucket, directory, DIRECTORY_DATA) {
        Err(errno) if leads_nowhere(errno) => None,
        opened => attributes_of(bucket, &opened?, key)?,
    };
    match shown {
        None => {
            let record = directory_record(bucket, directory)?.known();
            Ok(record.and_then(|record| record.attributes()).map(Shown::from))
        }
        shown => Ok(shown),
    }
}

/// Reads the attributes of a regular file without opening it, which takes half as many calls;
/// `None` if they are not certain.
fn by_name(
    (bucket, known): (&Bucket<'_>, &KnownRecords),
    directory: &Directory,
    name: &str,
    key: &str,
    begun_ns: i128,
) -> Option<Shown> {
    let info = file_info::at(directory, name).ok().filter(FileInfo::is_file)?;
    if let Some(shown) = known.get(&info) {
        return Some(shown);
    }
    let record: Reading<ObjectRecord> = records::read(bucket.store, directory, name).ok()?;
    let tells_nothing = matches!(record, Reading::Nothing | Reading::Damaged);
    if tells_nothing && VersitygwUse::for_etags(&bucket.store.options) != VersitygwUse::Ignored {
        return None;
    }
    if let Some(record) = record.known().filter(|record| record.content.stamp == Some(info.stamp)) {
        let shown = Shown::from(record.into_attributes(info.stamp)?);
        // Had another file got the name in between, and that were its record, this one's ctime
        // would have changed by it: no one meets it in this state again.
        known.keep(State::settled(bucket.store, begun_ns, &info), &info, &shown);
        return Some(shown);
    }
    // Without a stamp that ties them, both calls might have been about different files.
    let again = file_info::at(directory, name).ok()?;
    let same = (again.inode, again.changed_ns) == (info.inode, info.changed_ns);
    same.then(|| foreign::attributes(&bucket.store.lasting(directory, &info), key).into())
}

struct Opened {
    file: OwnedFd,
    /// The path relative to the bucket, with links resolved.
    path: String,
    info: FileInfo,
}

fn open(bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Io<Opened> {
    let path = join(&directory.path, name);
    let (file, path) = match resolve::content(directory, name) {
        // A link at a name of our own is not followed.
        Err(Errno::LOOP) if !matches!(name, SELF | DIRECTORY_DATA) => bucket.content_at(&path)?,
        result => (result?, path),
    };
    let info = file_info::of(&file)?;
    Ok(Opened { file, path, info })
}

/// Returns the attributes of an open file; `None` if it is not a regular file.
fn attributes_of(bucket: &Bucket<'_>, opened: &Opened, key: &str) -> Io<Option<Shown>> {
    let Opened { file, path, info } = opened;
    if !info.is_file() {
        return Ok(None);
    }
    let record: Reading<ObjectRecord> = records::of(bucket.store, &bucket.fd, path, file)?;
    // What is not understood keeps no one from seeing that the file is there.
    let closed = record == Reading::Closed;
    let record = record.known();
    if record.as_ref().is_none_or(|record| record.content.stamp != Some(info.stamp))
        && !records::is_sure(bucket.store, &bucket.fd, path, info)
    {
        return Err(Errno::STALE);
    }
    let shown = bucket.store.lasting(file, info);
    if closed {
        return Ok(Some(foreign::attributes(&shown, key).into()));
    }
    let versitygw_use = VersitygwUse::for_etags(&bucket.store.options);
    Ok(Some(foreign::attributes_of(file, record, &shown, key, versitygw_use).into()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use backend::BackendError;

    use super::*;
    use crate::base::options::{Metadata, Options};
    use crate::base::step::at_each_step;
    use crate::testing::{Scene, fixture};
    use crate::tree::store::Store;

    /// Makes the summary of an object whose file is missing when its attributes are read.
    fn doubtful(scene: &Scene, name: &str) -> DoubtfulObject {
        let bucket = scene.bucket();
        let directory = Arc::new(bucket.directory("").unwrap());
        let found = FoundObject { key: name.to_owned(), directory, source: Source::File(name.to_owned()) };
        let mut seen = summaries(&bucket, &scene.caches.listing.known_records, &[found]).unwrap();
        let Some(ReadSummary::Doubtful(doubtful)) = seen.pop() else { panic!("not doubtful") };
        doubtful
    }

    /// On FUSE, the name of an object is missing until the call that replaces it returns.
    #[test]
    fn an_object_that_is_being_replaced_is_not_gone() {
        let mut scene = Scene::new();
        scene.store.assume_shared();
        for key in ["a", "b", "b"] {
            scene.put(key, b"1").unwrap();
        }
        let (name, aside) = (scene.path().join("a"), scene.path().join(".slipway/aside"));
        let lock = key_lock::take(&scene.bucket(), "a").unwrap();
        fs::rename(&name, &aside).unwrap();
        let doubtful_a = doubtful(&scene, "a");
        thread::scope(|scope| {
            let settled = scope.spawn(|| {
                look_again(&scene.bucket(), &scene.caches.listing.known_records, &doubtful_a).unwrap()
            });
            thread::sleep(Duration::from_millis(50));
            assert!(!settled.is_finished(), "it did not wait");
            fs::rename(&aside, &name).unwrap();
            drop(lock);
            assert_eq!(settled.join().unwrap().map(|object| object.size_bytes), Some(1));
        });

        fs::remove_file(scene.path().join("b")).unwrap();
        assert!(
            look_again(&scene.bucket(), &scene.caches.listing.known_records, &doubtful(&scene, "b"))
                .unwrap()
                .is_none()
        );
    }

    /// A reader that can have no lock waits a little for those who have it.
    #[test]
    fn who_only_reads_finds_an_object_that_is_being_replaced() {
        let mut scene = Scene::new();
        for _ in 0..2 {
            scene.put("a", b"1").unwrap();
        }
        let root = scene.path().parent().unwrap().to_owned();
        scene.store = Store::attach(&root, fixture::options()).unwrap();
        scene.store.assume_shared();
        let (name, aside) = (scene.path().join("a"), scene.path().join(".slipway/aside"));
        let hook = || {
            let (name, aside) = (name.clone(), aside.clone());
            move |step| {
                if step == "a name is waited for" && aside.exists() {
                    fs::rename(&aside, &name).unwrap();
                }
                Ok(())
            }
        };
        fs::rename(&name, &aside).unwrap();
        let doubtful = doubtful(&scene, "a");
        let known = &scene.caches.listing.known_records;
        let again = at_each_step(hook(), || look_again(&scene.bucket(), known, &doubtful));
        assert_eq!(again.unwrap().map(|object| object.size_bytes), Some(1));

        fs::rename(&name, &aside).unwrap();
        assert_eq!(at_each_step(hook(), || scene.get("a")).unwrap(), b"1");
        fs::remove_file(&name).unwrap();
        assert!(look_again(&scene.bucket(), known, &doubtful).unwrap().is_none());
        assert!(matches!(scene.get("a"), Err(BackendError::NoSuchKey)));
    }

    /// An open file that lost its name does not become foreign because its sidecar was removed, or
    /// now belongs to another file.
    #[test]
    fn an_open_object_that_lost_its_name_is_not_foreign() {
        let scene = Scene::with(Options { metadata: Some(Metadata::Sidecar), ..Options::default() });
        scene.put("a", b"1").unwrap();
        let bucket = scene.bucket();
        let directory = bucket.directory("").unwrap();
        let opened = open(&bucket, &directory, "a").unwrap();
        assert!(attributes_of(&bucket, &opened, "a").unwrap().is_some());
        crate::object::delete(&scene.store, &scene.target("a"), None).unwrap();
        assert!(matches!(attributes_of(&bucket, &opened, "a"), Err(Errno::STALE)));
        fs::write(scene.path().join("a"), b"2").unwrap();
        assert!(matches!(attributes_of(&bucket, &opened, "a"), Err(Errno::STALE)));
        let foreign = attributes_of(&bucket, &open(&bucket, &directory, "a").unwrap(), "a").unwrap();
        assert!(foreign.is_some_and(|attributes| foreign::is_foreign(&attributes.etag)));
    }

    /// On file systems where a name is never missing for a moment, an object without its name is
    /// gone, without further calls.
    #[test]
    fn where_names_stay_there_is_no_doubt() {
        let scene = Scene::new();
        if scene.store.volume_at(&scene.bucket().fd).names_may_vanish() {
            return eprintln!(
                "\n*** SKIPPED: names may be missing for a moment on this file system, so names that stay are NOT tested ***\n"
            );
        }
        let bucket = scene.bucket();
        let directory = Arc::new(bucket.directory("").unwrap());
        let found = FoundObject { key: "a".to_owned(), directory, source: Source::File("a".to_owned()) };
        assert!(summaries(&bucket, &scene.caches.listing.known_records, &[found]).unwrap().is_empty());
    }

    /// A directory may be exchanged for a link after the walk, before its object's attributes are
    /// read.
    #[test]
    fn what_a_link_in_place_of_a_directory_leads_to_is_not_shown() {
        let scene = Scene::new();
        let outside = scene.path().parent().unwrap().join("outside");
        let chain = ".slipway,+".to_owned() + &"x".repeat(240);
        for name in [SELF, ".slipway,.x"] {
            fs::create_dir_all(&outside).unwrap();
            fs::write(outside.join(name), "secret").unwrap();
        }
        for name in ["a", &chain] {
            symlink(&outside, scene.path().join(name)).unwrap();
        }
        let bucket = scene.bucket();
        let directory = Arc::new(bucket.directory("").unwrap());
        let found = |path: String| FoundObject {
            key: "k".to_owned(),
            directory: Arc::clone(&directory),
            source: Source::File(path),
        };
        let found = [found(format!("a/{SELF}")), found(format!("{chain}/.slipway,.x"))];
        assert!(summaries(&bucket, &scene.caches.listing.known_records, &found).unwrap().is_empty());
    }
}
