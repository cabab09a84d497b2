//! What a page shows of the objects on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use backend::{ObjectSummary, Result};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use s3_types::ObjectKey;

use super::known::Shown;
use super::names;
use super::walk::{Found, Source};
use crate::bucket::{Bucket, Directory, join};
use crate::error::{Io, Op};
use crate::file_info::{self, FileInfo};
use crate::foreign::{self, Peer};
use crate::keymap::{DIRECTORY_DATA, SELF};
use crate::limits::{READ_CHANGES_MAX, SUMMARIES_EACH_MIN, SUMMARY_THREADS_MAX, SUMMARY_THREADS_OF_ALL};
use crate::place::{directory_record, leads_nowhere};
use crate::record;
use crate::resolve;
use crate::unchanged::State;

/// Threads that read attributes besides those of the listings.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Summaries of what was found, in that order, without what is gone meanwhile. Read by several threads at once where each file
/// is a wait for a network. On a local file system they were in each other's way: twice the time for inodes that come from the disk, and
/// no less for those in memory.
pub(crate) fn summaries(bucket: &Bucket<'_>, found: &[Found]) -> Result<Vec<ObjectSummary>> {
    let remote = !bucket.store.reads_inline();
    let threads = if remote { (found.len() / SUMMARIES_EACH_MIN).clamp(1, SUMMARY_THREADS_MAX) } else { 1 };
    let helpers = Helpers::take(threads - 1);
    let begun_ns = i128::from(file_info::now_ns());
    let several =
        |found: &[Found]| found.iter().filter_map(|one| summary(bucket, one, begun_ns).transpose()).collect();
    if helpers.0 == 0 {
        return several(found);
    }
    let each = found.len().div_ceil(helpers.0 + 1).max(1);
    let (own, others) = found.split_at(each.min(found.len()));
    thread::scope(|scope| {
        let others: Vec<_> = others.chunks(each).map(|some| scope.spawn(move || several(some))).collect();
        let mut all: Vec<ObjectSummary> = several(own)?;
        for other in others {
            let some: Result<Vec<_>> = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.append(&mut some?);
        }
        Ok(all)
    })
}

/// A share of the threads that all listings together may have.
struct Helpers(usize);

impl Helpers {
    fn take(wanted: usize) -> Self {
        let taken = HELPERS.fetch_add(wanted, Relaxed);
        let granted = SUMMARY_THREADS_OF_ALL.saturating_sub(taken).min(wanted);
        HELPERS.fetch_sub(wanted - granted, Relaxed);
        Self(granted)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        HELPERS.fetch_sub(self.0, Relaxed);
    }
}

/// `None` if the object is gone.
fn summary(bucket: &Bucket<'_>, found: &Found, begun_ns: i128) -> Result<Option<ObjectSummary>> {
    let Found { key, directory, source } = found;
    let mut tries = 0;
    let attributes = loop {
        match attributes(bucket, directory, key, source, begun_ns) {
            // FUSE says so also of a file that was replaced between two of its calls; EIO, of one that became a directory by another
            // mount.
            Err(Errno::NOENT | Errno::STALE | Errno::IO)
                if tries < READ_CHANGES_MAX && bucket.store.names_may_blink(directory) =>
            {
                tries += 1;
            }
            Err(errno) if leads_nowhere(errno) => break None,
            result => break result.op("read an object's attributes")?,
        }
    };
    let (Some(attributes), Ok(key)) = (attributes, ObjectKey::new(key.as_str())) else { return Ok(None) };
    let Shown { size_bytes, last_modified, etag, checksum } = attributes;
    Ok(Some(ObjectSummary { key, size_bytes, last_modified, etag, checksum }))
}

fn attributes(
    bucket: &Bucket<'_>,
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
    if let Some(shown) = by_name(bucket, directory, name, key, begun_ns) {
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
            Ok(info.is_file().then(|| foreign::attributes(&info, key).into()))
        }
        Err(errno) => Err(errno),
    }
}

/// Of a directory object. What else stands in the place of its bytes is as if there were none.
fn directory_attributes(bucket: &Bucket<'_>, directory: &Directory, key: &str) -> Io<Option<Shown>> {
    let shown = match open(bucket, directory, DIRECTORY_DATA) {
        Err(errno) if leads_nowhere(errno) => None,
        opened => attributes_of(bucket, &opened?, key)?,
    };
    match shown {
        None => Ok(directory_record(bucket, directory)?.directory_attributes().map(Shown::from)),
        shown => Ok(shown),
    }
}

/// Attributes of a regular file without opening it, half as many calls; `None` where that leaves a doubt.
fn by_name(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    key: &str,
    begun_ns: i128,
) -> Option<Shown> {
    let info = file_info::at(directory, name).ok().filter(FileInfo::is_file)?;
    let known = &bucket.store.known_records;
    if let Some(shown) = known.get(&info) {
        return Some(shown);
    }
    let record = record::read(bucket.store, directory, name).ok()?;
    if record.as_ref().is_some_and(|record| record.stamp == Some(info.stamp)) {
        let shown = Shown::from(record?.into_attributes(info.stamp)?);
        // Had another file got the name in between, and that were its record, this one's ctime would have changed by it: no one meets it in this
        // state again.
        known.keep(State::settled(bucket.store, begun_ns, &info), &info, &shown);
        return Some(shown);
    }
    if record.is_none() && Peer::for_etags(&bucket.store.options) != Peer::Ignored {
        return None;
    }
    // Without a stamp that ties them, both calls might have been about different files.
    let again = file_info::at(directory, name).ok()?;
    let same = (again.inode, again.changed_ns) == (info.inode, info.changed_ns);
    same.then(|| foreign::attributes(&info, key).into())
}

struct Opened {
    file: OwnedFd,
    /// Relative to the bucket, links resolved.
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

/// `None` for what is no file.
fn attributes_of(bucket: &Bucket<'_>, opened: &Opened, key: &str) -> Io<Option<Shown>> {
    let Opened { file, path, info } = opened;
    if !info.is_file() {
        return Ok(None);
    }
    let record = record::of(bucket.store, &bucket.fd, path, file)?;
    let peer = Peer::for_etags(&bucket.store.options);
    Ok(Some(foreign::attributes_of(file, record, info, key, peer).into()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::testing::Scene;

    /// As when a directory is swapped for a link between the walk and the look at its object.
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
        let found = |path: String| Found {
            key: "k".to_owned(),
            directory: Arc::clone(&directory),
            source: Source::File(path),
        };
        let found = [found(format!("a/{SELF}")), found(format!("{chain}/.slipway,.x"))];
        assert_eq!(summaries(&bucket, &found).unwrap(), []);
    }
}
