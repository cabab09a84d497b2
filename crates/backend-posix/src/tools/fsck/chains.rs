//! Checks the old versions of keys (decision 0059).

use backend::Result;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::check::{Check, ProblemKind, Repair};
use super::companions::{self, Named};
use super::objects::{self, is_lost, without_companion};
use super::own::{foreign, open, stranger};
use crate::error::{Fail, Op, leads_nowhere, retrying};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::is_empty;
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, KeyPath, OWN_DIRECTORY, join};
use crate::layout::staged::is_scattered;
use crate::layout::versions::{Entry, VERSIONS, VERSIONS_PATH, entry_of, place_of_chain};
use crate::maintenance::chains::{self, Removed};
use crate::record::{ObjectRecord, Raw};
use crate::records::{self, Present};
use crate::tools::tree::{self, WalkEntry};
use crate::tree::bucket::Directory;
use crate::tree::trust::Purpose;
use crate::write::key_lock;

const LEFTOVER: &str = "left by an interrupted write of its key, and not a version; a repair removes it if the key \
    still has the version that the write was to replace";
const UNSURE: &str = "its record has a later order than its name, so that it is not a version: probably left by an \
    interrupted write, but its key no longer has the version that the write was to replace. If no one misses it, \
    remove it";
const STAGED: &str = "a delete marker that an interrupted write left unfinished; a repair removes it";
const EMPTY: &str = "a directory of old versions without any; a repair removes it, and the directories above it that are then empty";
const MARKER: &str = "the delete marker has the name of the newest version, but its key has a file, which is newer; a \
    repair gives it its name among the old versions, as the next write does";
const NO_MARKER: &str = "it has the name of the newest delete marker of its key, but its record does not say so, and no \
    one takes it for a version: remove it if it is empty; otherwise move it away";
const DAMAGED: &str = "the record of an old version is damaged, so that it is served as a foreign file; a repair removes \
    the record";
const DAMAGED_EMPTY: &str = "its record is damaged, and it is empty: it is a delete marker, or a version without bytes, \
    and is served as the latter. If it was a delete marker, remove it";
const MISSING: &str = "the overflow file with the rest of its record is missing: its metadata, tags and parts are lost; \
    a repair keeps the remaining record, whose ETag and checksum are valid";

pub(super) fn check(check: &Check<'_>, named: &Named) -> Result<()> {
    if open(check, VERSIONS)?.is_none() {
        return Ok(());
    }
    tree::for_each(check.bucket, VERSIONS_PATH, check.options.jobs, check.progress, &|found| {
        let (path, result) = match found {
            WalkEntry::Unreadable(path, error) => (path, Err(error)),
            WalkEntry::NotText(path) => {
                companions::note_hidden(check.bucket, named, &path);
                return foreign(check, &path.to_string_lossy());
            }
            WalkEntry::Directory(directory) => (directory.path.clone(), check_directory(check, &directory)),
            WalkEntry::Entry { directory, name, kind } => {
                (join(&directory.path, &name), check_entry(check, named, &directory, &name, kind))
            }
        };
        if let Err(error) = result {
            check.unreadable(&path, &error);
        }
    })
}

/// Returns the path of a chain relative to `.slipway`, as functions of chains take it.
fn own_path(path: &str) -> &str {
    path.strip_prefix(OWN_DIRECTORY).and_then(|path| path.strip_prefix('/')).unwrap_or(path)
}

fn check_directory(check: &Check<'_>, directory: &Directory) -> Result<()> {
    let path = directory.path.as_str();
    if path == VERSIONS_PATH {
        return Ok(());
    }
    match check.bucket.vouch(&directory.fd, path, Purpose::Work) {
        Err(Errno::PERM) => {
            stranger(check, path);
            return Ok(());
        }
        vouched => vouched.op("look at a directory")?,
    }
    let (above, name) = keymap::split(path);
    let above = resolve::plain(&check.bucket.fd, above, DIRECTORY).op("open a directory")?;
    // Opened anew, to be read from its start.
    let opened = match resolve::plain(&above, name, DIRECTORY) {
        Err(errno) if leads_nowhere(errno) => return Ok(()),
        opened => opened.op("open a directory")?,
    };
    if is_older(&above, name, check.options.age) && is_empty(opened).op("read a directory")? {
        let mut repair = || Ok(chains::remove_if_empty(check.bucket, own_path(path), check.options.age));
        check.problem(ProblemKind::EmptyDirectory, path, EMPTY, Some(&mut repair));
    }
    Ok(())
}

fn check_entry(
    check: &Check<'_>,
    named: &Named,
    directory: &Directory,
    name: &str,
    kind: FileType,
) -> Result<()> {
    let path = join(&directory.path, name);
    if keymap::is_lingering(name) {
        return Ok(());
    }
    let own = own_path(&directory.path);
    if is_scattered(name) && kind == FileType::RegularFile {
        if is_older(directory, name, check.options.age) {
            let mut repair = || chains::remove_staged(check.bucket, own, name);
            check.problem(ProblemKind::VersionLeftover, &path, STAGED, Some(&mut repair));
        }
        return Ok(());
    }
    let found = entry_of(name).filter(|_| kind == FileType::RegularFile);
    let found = found.and_then(|(of_directory, entry)| Some((entry, place_of_chain(own, of_directory)?)));
    let Some((entry, place)) = found else {
        foreign(check, &path);
        return Ok(());
    };
    let file = OldFile { check, directory, name, path: &path, entry, place };
    file.check(named)
}

/// A file in a chain that has the name of a version.
struct OldFile<'c> {
    check: &'c Check<'c>,
    directory: &'c Directory,
    name: &'c str,
    path: &'c str,
    entry: Entry,
    place: KeyPath,
}

impl OldFile<'_> {
    fn check(&self, named: &Named) -> Result<()> {
        let Self { check, path, .. } = self;
        let Some((info, raw)) = self.read()? else { return Ok(()) };
        let record = match raw {
            Raw::Known(_, record) => Some(*record),
            Raw::Absent => None,
            Raw::Newer(bytes) => {
                named.doubt();
                check.problem(ProblemKind::RecordNewer, path, &objects::newer(check, &bytes), None);
                return Ok(());
            }
            Raw::Damaged(_) => {
                self.damaged(&info);
                return Ok(());
            }
        };
        if let Some(id) = record.as_ref().and_then(|record| record.overflow) {
            named.add(id);
        }
        let version = record.as_ref().and_then(|record| record.version);
        let is_marker = version.is_some_and(|version| version.is_marker);
        match (self.entry, version) {
            (Entry::Deleted, _) if !is_marker => self.problem_if_old(ProblemKind::Misplaced, NO_MARKER, None),
            (Entry::Deleted, _) => {
                check.usage.add_version(true, &info);
                self.check_marker()?;
            }
            (Entry::Version { order, .. }, Some(version)) if version.order > order => self.leftover(),
            (Entry::Version { .. }, _) => {
                check.usage.add_version(is_marker, &info);
                record.map_or(Ok(()), |record| self.check_companion(&record, &info))?;
            }
        }
        Ok(())
    }

    /// Reads the record of the file, and its attributes; `None` if it is gone.
    fn read(&self) -> Result<Option<(FileInfo, Raw<ObjectRecord>)>> {
        let file = match resolve::content(self.directory, self.name) {
            Err(errno) if leads_nowhere(errno) => return Ok(None),
            opened => opened.op("open an old version")?,
        };
        let info = file_info::stat(&file)?;
        let raw = records::raw_of(self.check.bucket.store, self.directory, self.name, &file);
        Ok(Some((info, raw.op("read the record of an old version")?)))
    }

    fn problem_if_old(&self, kind: ProblemKind, explanation: &str, repair: Option<Repair<'_>>) {
        if is_older(self.directory, self.name, self.check.options.age) {
            self.check.problem(kind, self.path, explanation, repair);
        }
    }

    fn leftover(&self) {
        let own = own_path(&self.directory.path);
        if matches!(chains::is_sure(self.check.bucket, own, self.name), Ok(false)) {
            return self.problem_if_old(ProblemKind::VersionLeftover, UNSURE, None);
        }
        let mut repair = || match chains::remove_leftover(self.check.bucket, own, self.name)? {
            Removed::Done => Ok(true),
            Removed::NotOne => Ok(false),
            Removed::Unsure => Err(super::check::stays(UNSURE)),
        };
        self.problem_if_old(ProblemKind::VersionLeftover, LEFTOVER, Some(&mut repair));
    }

    fn check_marker(&self) -> Result<()> {
        if chains::has_file(self.check.bucket, &self.place)? {
            let mut repair = || chains::settle_marker(self.check.bucket, &self.place);
            self.problem_if_old(ProblemKind::MarkerUnsettled, MARKER, Some(&mut repair));
        }
        Ok(())
    }

    fn damaged(&self, info: &FileInfo) {
        if matches!(self.entry, Entry::Deleted) {
            return self.check.problem(ProblemKind::RecordDamaged, self.path, NO_MARKER, None);
        }
        if info.stamp.size_bytes == 0 {
            return self.check.problem(ProblemKind::RecordDamaged, self.path, DAMAGED_EMPTY, None);
        }
        self.check.usage.add_version(false, info);
        let mut repair = || {
            self.under_lock(|raw| {
                let damaged = matches!(raw, Raw::Damaged(_));
                if damaged {
                    let file = resolve::content(self.directory, self.name).attempt("open an old version")?;
                    records::remove(self.check.bucket.store, self.directory, self.name, &file)
                        .attempt("remove a record")?;
                }
                Ok(damaged)
            })
        };
        self.check.problem(ProblemKind::RecordDamaged, self.path, DAMAGED, Some(&mut repair));
    }

    fn check_companion(&self, record: &ObjectRecord, info: &FileInfo) -> Result<()> {
        if record.overflow.is_none()
            || record.content.stamp != Some(info.stamp)
            || !is_lost(self.check, record)?
        {
            return Ok(());
        }
        // The companion goes after its version; so if that is still there, the companion is lost.
        match self.read()? {
            Some((_, Raw::Known(_, now))) if now.overflow == record.overflow => {}
            _ => return Ok(()),
        }
        let rest = without_companion(record.clone(), &self.place.key);
        let mut repair = || self.adopt(record, &rest);
        self.check.problem(ProblemKind::CompanionMissing, self.path, MISSING, Some(&mut repair));
        Ok(())
    }

    /// Gives the file another record, if it has the old one still.
    fn adopt(&self, old: &ObjectRecord, new: &ObjectRecord) -> Result<bool> {
        let Self { check, directory, name, .. } = self;
        retrying(|| {
            let lock = key_lock::take_of_key(check.bucket, &self.place)?;
            let file = match resolve::content(directory, name) {
                Err(errno) if leads_nowhere(errno) => return Ok(false),
                opened => opened.attempt("open an old version")?,
            };
            let raw: Raw<ObjectRecord> =
                records::raw_of(check.bucket.store, directory, name, &file).attempt("read a record")?;
            if !matches!(raw, Raw::Known(_, now) if now.overflow == old.overflow) {
                return Ok(false);
            }
            let (bucket, replaces_damaged) = (check.bucket, &|| Ok(false));
            let present = Present { bucket, directory, name, file: &file, replaces_damaged };
            records::update(&lock, &present, |_| new.clone())
        })
    }

    /// Does `work` with the record of the file, under the lock of its key; false if it is gone.
    fn under_lock(&self, mut work: impl FnMut(&Raw<ObjectRecord>) -> Result<bool, Fail>) -> Result<bool> {
        retrying(|| {
            let _lock = key_lock::take_of_key(self.check.bucket, &self.place)?;
            match self.read()? {
                None => Ok(false),
                Some((_, raw)) => work(&raw),
            }
        })
    }
}

#[cfg(test)]
mod tests;
