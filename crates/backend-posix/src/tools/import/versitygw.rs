//! Makes records from versitygw's attributes.
//!
//! The attributes do not say which bytes they belong to. So each file is read: its bytes are those
//! that were uploaded if their MD5 is the ETag, if the MD5s of the parts make up the ETag, or if
//! the checksum of the whole is the stored one.

use std::path::Path;

use backend::Result;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode};
use s3_types::{BucketName, Digester, ETagSource};

use super::proof;
use super::report::{ImportOptions, ImportReporter, Imported};
use crate::base::options::{DEFAULT_CHECKSUM, Durability};
use crate::error::{Op, retrying};
use crate::facts::versitygw::{self, Attributes, Source};
use crate::fs::file_info;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::keymap::{self, DIRECTORY_DATA, Name, SELF, join};
use crate::record::{self, Attached, DirectoryRecord, ObjectRecord, Raw};
use crate::records;
use crate::tools::candidate::Candidate;
use crate::tools::opening::{for_each_bucket, open};
use crate::tools::progress::Progress;
use crate::tools::tree::{self, WalkEntry};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;
use crate::write::key_lock;

/// The sentence about a file that stands for a delete marker.
const DELETE_MARKER: &str = "not imported: a delete marker; its key is deleted to versitygw, but the file is served as an \
    empty object: remove it, unless its older versions are still needed there";

/// versitygw's own directory at the top of a bucket.
const TEMPORARY: &str = ".sgwtmp";

/// Makes records for the tree at `root` from versitygw's attributes. Calls `report` for each
/// object, from several threads.
pub fn import_versitygw(
    root: &Path,
    options: &ImportOptions,
    progress: &Progress,
    report: &(dyn Fn(&Path, Imported) + Sync),
) -> Result<(), String> {
    // The record must be on disk before what it was made from is removed.
    let store = open(root, options.dry_run, Durability::Full)?;
    let sidecar = match &options.sidecar {
        Some(path) => {
            let opened = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
            Some(opened.map_err(|e| format!("{}: {e}", path.display()))?)
        }
        None => None,
    };
    let work = |name: &BucketName, path: &Path| {
        Import {
            options,
            progress,
            reporter: ImportReporter { report, path },
            name,
            sidecar: sidecar.as_ref(),
        }
        .run(&store)
    };
    for_each_bucket(&store, root, work, |path, error| report(path, Imported::Failed(error.to_string())))
}

struct Import<'a> {
    options: &'a ImportOptions,
    progress: &'a Progress,
    reporter: ImportReporter<'a>,
    name: &'a BucketName,
    sidecar: Option<&'a OwnedFd>,
}

impl Import<'_> {
    fn run(&self, store: &Store) -> Result<()> {
        let bucket = store.bucket(self.name)?;
        tree::for_each(&bucket, "", self.options.jobs, self.progress, &|found| {
            let (path, result) = match found {
                WalkEntry::NotText(_) => return,
                WalkEntry::Unreadable(path, error) => (path, Err(error)),
                WalkEntry::Directory(directory) if directory.path.is_empty() => {
                    (String::new(), self.bucket_attributes(&directory).map(|()| None))
                }
                WalkEntry::Directory(directory) => {
                    (directory.path.clone(), self.directory(&bucket, &directory))
                }
                WalkEntry::Entry { directory, name, kind } => {
                    let path = join(&directory.path, &name);
                    let is_object = kind == FileType::RegularFile && keymap::key_of_file(&path).is_some();
                    if !is_object || is_temporary(&path) {
                        return;
                    }
                    (path, self.file(&bucket, &directory, &name))
                }
            };
            self.reporter.report_any(&path, result);
        })
    }

    /// The attributes of a file or directory; `None` if it has none, or if versitygw could not have
    /// made it.
    fn source<'f>(&self, file: &'f OwnedFd, path: &str) -> Result<Option<Source<'f>>> {
        let Some(sidecar) = self.sidecar else { return Ok(Some(Source::File(file.as_fd()))) };
        let (_, name) = keymap::split(path);
        // In a sidecar, it would be that of another key.
        if matches!(name, SELF | DIRECTORY_DATA)
            || !matches!(keymap::classify(name.as_bytes()), Name::Component(_))
        {
            return Ok(None);
        }
        Source::sidecar(sidecar, &join(self.name.as_str(), path)).op("open a sidecar")
    }

    fn bucket_attributes(&self, directory: &Directory) -> Result<()> {
        let source = match self.sidecar {
            Some(sidecar) => Source::sidecar(sidecar, self.name.as_str()).op("open a sidecar")?,
            None => Some(Source::File(directory.fd.as_fd())),
        };
        if let Some(source) = source {
            self.report_left("", &source.names().op("read attributes")?, true);
        }
        Ok(())
    }

    fn report_left(&self, path: &str, names: &[String], tags: bool) {
        let mut left = versitygw::not_carried(names);
        if !tags {
            left.push("tags, which are none that S3 allows");
        }
        if !left.is_empty() {
            self.reporter.report(path, Imported::Left(format!("not imported: {}", left.join(", "))));
        }
    }

    /// Imports a file; `None` if it is gone.
    fn file(&self, bucket: &Bucket<'_>, directory: &Directory, name: &str) -> Result<Option<Imported>> {
        let path = join(&directory.path, name);
        let Some(mut file) = Candidate::open(bucket, directory, name)? else { return Ok(None) };
        let standing = proof::standing(&mut file, self.name, &path)?;
        if standing.as_ref().is_some_and(|known| !matches!(known, Imported::Known)) {
            return Ok(standing);
        }
        // Borrows its own descriptor, since the candidate looks at its file again below.
        let own = file
            .file
            .try_clone()
            .map_err(|e| backend::BackendError::Io { operation: "open a file", source: e })?;
        let Some(source) = self.source(&own, &path)? else { return Ok(Some(Imported::Foreign)) };
        let names = source.names().op("read attributes")?;
        let theirs = Attributes::read(&source).op("read attributes")?;
        if standing.is_some() {
            if let (Some(theirs), Some(record)) = (theirs, file.raw_record()?.record()) {
                let whole = records::complete(bucket, &record).op("read a record")?.known();
                let same = |whole: ObjectRecord| {
                    let (content, tags) = (&whole.content, &whole.attached.tags);
                    theirs.are_in(content.etag.as_ref(), &content.metadata, content.parts.as_deref(), tags)
                };
                self.remove_rest(&own, whole.is_some_and(same), (&names, theirs.tags.is_some()))?;
            }
            return Ok(standing);
        }
        let Some(theirs) = theirs else { return Ok(Some(Imported::Foreign)) };
        if versitygw::is_delete_marker(&names) {
            return Ok(Some(Imported::Left(DELETE_MARKER.to_owned())));
        }
        let has_tags = theirs.tags.is_some();
        let record = match proof::record(&mut file, theirs, self.options.trust_etags, self.progress)? {
            Ok(record) => record,
            Err(why) => return Ok(Some(Imported::Stale(why))),
        };
        self.report_left(&path, &names, has_tags);
        if self.options.dry_run {
            return Ok(Some(Imported::Done));
        }
        if !file.adopt(|old| proof::imported(&record, old))? {
            return Ok(Some(Imported::Changed));
        }
        self.remove_attributes(&own, (&names, has_tags))?;
        Ok(Some(Imported::Done))
    }

    fn remove_attributes(&self, file: &OwnedFd, (names, tags): (&[String], bool)) -> Result<()> {
        if !self.options.keep_attributes && self.sidecar.is_none() {
            for name in versitygw::carried(names, tags) {
                versitygw::remove(file, name).op("remove an attribute")?;
            }
        }
        Ok(())
    }

    /// Removes the attributes that an interrupted import left. Attributes that differ from the
    /// record were written later, and stay.
    fn remove_rest(&self, file: &OwnedFd, is_in_record: bool, names: (&[String], bool)) -> Result<()> {
        if !self.options.dry_run && is_in_record {
            self.remove_attributes(file, names)?;
        }
        Ok(())
    }

    fn directory(&self, bucket: &Bucket<'_>, directory: &Directory) -> Result<Option<Imported>> {
        let path = directory.path.as_str();
        if is_temporary(path) {
            let left = "versitygw's uploads in progress are not imported, and their files are served as objects: \
                remove this directory once they are not needed";
            return Ok((path == TEMPORARY).then(|| Imported::Left(left.to_owned())));
        }
        // A descriptor that attributes can be read of and removed from.
        let own = resolve::plain(directory, "", DIRECTORY).op("open a directory")?;
        let Some(source) = self.source(&own, path)? else { return Ok(None) };
        let names = source.names().op("read attributes")?;
        let Some(theirs) = Attributes::read(&source).op("read attributes")? else { return Ok(None) };
        let has_tags = theirs.tags.is_some();
        let time_ns = i64::try_from(file_info::stat(&own)?.stamp.modified_ns).ok();
        let digests = Digester::new(Some(DEFAULT_CHECKSUM), ETagSource::Md5).finish();
        if !record::fits(&theirs.metadata) {
            return Ok(Some(Imported::Stale(proof::TOO_MUCH)));
        }
        let known = retrying(|| {
            let lock = (!self.options.dry_run).then(|| key_lock::take_directory(bucket, path)).transpose()?;
            let raw: Raw<DirectoryRecord> =
                records::raw_of_directory(bucket.store, &own).attempt("read a record")?;
            if matches!(raw, Raw::Newer(_)) {
                return Ok(Some(Imported::Failed(proof::NEWER.to_owned())));
            }
            let old = raw.record();
            if let Some(record) = old.as_ref().filter(|record| record.object) {
                let whole = records::complete(bucket, record).op("read a record")?.known();
                let same = |whole: DirectoryRecord| {
                    theirs.are_in(whole.etag.as_ref(), &whole.metadata, None, &whole.attached.tags)
                };
                self.remove_rest(&own, whole.is_some_and(same), (&names, has_tags))?;
                return Ok(Some(Imported::Known));
            }
            if lock.is_none() {
                return Ok(None);
            }
            let made = old.is_some_and(|record| record.made);
            let metadata = theirs.metadata.clone();
            let attached = Attached::requested(theirs.tags.clone().unwrap_or_default());
            let record = DirectoryRecord::of_object(made, time_ns, digests.clone(), metadata, attached);
            records::put_of_directory(bucket, directory, &record).map(|()| None)
        })?;
        if known.is_some() {
            return Ok(known);
        }
        self.report_left(path, &names, has_tags);
        if !self.options.dry_run {
            self.remove_attributes(&own, (&names, has_tags))?;
        }
        Ok(Some(Imported::Done))
    }
}

fn is_temporary(path: &str) -> bool {
    path.strip_prefix(TEMPORARY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
