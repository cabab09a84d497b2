//! Walks everything in a bucket, in any order, including what no key reaches.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use backend::{BackendError, Result};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

use super::progress::Progress;
use crate::error::{Op, leads_nowhere, storage_error};
use crate::fs::file_info;
use crate::fs::reading::known_type;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, Name, join};
use crate::limits::TOOL_QUEUE_LENGTH;
use crate::tree::bucket::{Bucket, Directory};

/// An entry that a walk finds.
#[derive(Debug)]
pub(crate) enum WalkEntry {
    /// A directory, before its entries.
    Directory(Directory),
    /// Anything but a directory that the walk enters.
    Entry { directory: Directory, name: String, kind: FileType },
    /// An entry whose name is not UTF-8, so that no key has it.
    NotText(PathBuf),
    /// A directory or entry that can't be read.
    Unreadable(String, BackendError),
}

/// A walk through a directory of a bucket and those below it. Symbolic links are not followed;
/// `.slipway` and other directories that no key leads into are not entered. Only one directory is
/// open at a time.
pub(crate) struct Tree<'b> {
    bucket: &'b Bucket<'b>,
    pending: Vec<String>,
    current: Option<(Directory, Dir)>,
}

impl<'b> Tree<'b> {
    /// A walk from the directory `start` of the bucket.
    pub fn new(bucket: &'b Bucket<'b>, start: &str) -> Self {
        Self { bucket, pending: vec![start.to_owned()], current: None }
    }

    fn open(&self, path: &str) -> crate::error::Io<(Directory, Dir)> {
        let fd = resolve::plain(&self.bucket.fd, path, DIRECTORY)?;
        let entries = Dir::read_from(&fd)?;
        Ok((Directory { fd: fd.into(), path: path.to_owned() }, entries))
    }
}

impl Iterator for Tree<'_> {
    type Item = WalkEntry;

    fn next(&mut self) -> Option<WalkEntry> {
        loop {
            let Some((directory, entries)) = &mut self.current else {
                let path = self.pending.pop()?;
                match self.open(&path) {
                    Ok((directory, entries)) => {
                        self.current = Some((directory.clone(), entries));
                        return Some(WalkEntry::Directory(directory));
                    }
                    Err(errno) if leads_nowhere(errno) => continue,
                    Err(errno) => {
                        return Some(WalkEntry::Unreadable(path, storage_error("open a directory", errno)));
                    }
                }
            };
            let entry = match entries.read() {
                Some(Ok(entry)) => entry,
                // What a directory says that was removed after it was opened: it was empty.
                None | Some(Err(Errno::NOENT)) => {
                    self.current = None;
                    continue;
                }
                Some(Err(errno)) => {
                    let path = directory.path.clone();
                    self.current = None;
                    return Some(WalkEntry::Unreadable(path, storage_error("read a directory", errno)));
                }
            };
            let Ok(name) = entry.file_name().to_str() else {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                return Some(WalkEntry::NotText(Path::new(&directory.path).join(name)));
            };
            if matches!(name, "." | "..") || (directory.path.is_empty() && name == keymap::OWN_DIRECTORY) {
                continue;
            }
            let kind = match known_type(&*directory, entry.file_name(), entry.file_type()) {
                Ok(Some(kind)) => kind,
                Ok(None) => continue,
                Err(errno) => {
                    let path = join(&directory.path, name);
                    return Some(WalkEntry::Unreadable(path, storage_error("look up a name", errno)));
                }
            };
            let (directory, name) = (directory.clone(), name.to_owned());
            if kind == FileType::Directory
                && matches!(
                    keymap::classify(name.as_bytes()),
                    Name::Component(_) | Name::Piece(_) | Name::LastPiece(_)
                )
            {
                self.pending.push(join(&directory.path, &name));
                continue;
            }
            return Some(WalkEntry::Entry { directory, name, kind });
        }
    }
}

/// Calls `work` with everything at and below `start`, from `jobs` threads.
pub(crate) fn for_each(
    bucket: &Bucket<'_>,
    start: &str,
    jobs: usize,
    progress: &Progress,
    work: &(dyn Fn(WalkEntry) + Sync),
) -> Result<()> {
    // A file is a walk of one.
    let (above, name) = keymap::split(start);
    if !start.is_empty() && matches!(resolve::plain(&bucket.fd, start, DIRECTORY), Err(Errno::NOTDIR)) {
        let directory = bucket.directory(above).op("open a directory")?;
        let kind = file_info::at(&directory, name).op("look up a name")?.kind;
        progress.add_entry();
        work(WalkEntry::Entry { directory, name: name.to_owned(), kind });
        return Ok(());
    }
    let (sender, receiver) = sync_channel(TOOL_QUEUE_LENGTH);
    let receiver = Arc::new(Mutex::new(receiver));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let receiver = Arc::clone(&receiver);
            scope.spawn(move || {
                loop {
                    let Ok(receiver) = receiver.lock() else { return };
                    let Ok(found) = receiver.recv() else { return };
                    drop(receiver);
                    progress.add_entry();
                    work(found);
                }
            });
        }
        // Once no thread is left, sending fails.
        drop(receiver);
        for found in Tree::new(bucket, start) {
            if sender.send(found).is_err() {
                break;
            }
        }
        drop(sender);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::layout::keymap::RECORDS;
    use crate::testing::Scene;

    #[test]
    fn finds_all_but_our_own_and_follows_no_link() {
        let scene = Scene::new();
        for key in ["a", "a/b", "d/e/", "x//y", &"long".repeat(100)] {
            scene.put(key, b"1").unwrap();
        }
        fs::create_dir_all(scene.path().join("person/.slipway/x")).unwrap();
        std::os::unix::fs::symlink("person", scene.path().join("link")).unwrap();
        let seen = Mutex::new(BTreeSet::new());
        let note = |found: WalkEntry| {
            let path = match found {
                WalkEntry::Directory(directory) => directory.path + "/",
                WalkEntry::Entry { directory, name, .. } => join(&directory.path, &name),
                WalkEntry::Unreadable(path, error) => panic!("{path}: {error}"),
                WalkEntry::NotText(path) => panic!("{}", path.display()),
            };
            // Where records are in files, each directory of objects has a folder of them.
            if !(path.ends_with(RECORDS) && scene.has_sidecars()) {
                assert!(seen.lock().unwrap().insert(path));
            }
        };
        let progress = Progress::default();
        for_each(&scene.bucket(), "", 3, &progress, &note).unwrap();
        let (head, tail) = ("long".repeat(60), "long".repeat(40));
        let chain = format!(".slipway,+{head}");
        let last = format!("{chain}/.slipway,.{tail}");
        let chain = format!("{chain}/");
        let expected = [
            "/",
            "a/",
            "a/.slipway,self",
            "a/b",
            "d/",
            "d/e/",
            "d/e/.slipway,dir",
            "x/",
            "x/.slipway,empty/",
            "x/.slipway,empty/y",
            "person/",
            "person/.slipway",
            "link",
            &chain,
            &last,
        ];
        assert_eq!(*seen.lock().unwrap(), expected.iter().map(ToString::to_string).collect());
        assert!(scene.has_sidecars() || progress.entries() == expected.len() as u64);
        seen.lock().unwrap().clear();
        for_each(&scene.bucket(), "a/b", 1, &progress, &note).unwrap();
        assert_eq!(seen.lock().unwrap().iter().collect::<Vec<_>>(), ["a/b"]);
    }
}
