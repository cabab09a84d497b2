//! What is asked of an import, and what it tells.

use std::path::{Path, PathBuf};

use backend::Result;

/// How to import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Where the other gateway kept its attributes, if not with the files.
    pub sidecar: Option<PathBuf>,
    /// Only tell what would be done. Files are read all the same, unless `trust_etags`.
    pub dry_run: bool,
    /// Leave the other gateway's attributes where they are.
    pub keep_attributes: bool,
    /// Take ETags and checksums over without reading the files.
    pub trust_etags: bool,
    /// Files at a time.
    pub jobs: usize,
}

/// What became of a file.
#[derive(Debug)]
pub enum Imported {
    /// It has a record now, or would have one but for `dry_run`.
    Done,
    /// It has a true record of ours.
    Known,
    /// The other gateway has nothing on it: it is a foreign file to both.
    Foreign,
    /// What the other gateway has on it is not, or may not be, of the bytes that are there; it
    /// stays foreign.
    Stale(&'static str),
    /// It was changed while it was read, and stays as it was.
    Changed,
    /// It stays as it was.
    Failed(String),
    /// Something that has no place here, and stays where it is.
    Left(String),
}

/// Tells what became of what is in a bucket.
pub(super) struct Teller<'a> {
    pub(super) report: &'a (dyn Fn(&Path, Imported) + Sync),
    /// The bucket's.
    pub(super) path: &'a Path,
}

impl Teller<'_> {
    /// Of what has this path in the bucket, which is "".
    pub(super) fn tell(&self, path: &str, done: Imported) {
        let place = if path.is_empty() { self.path.to_owned() } else { self.path.join(path) };
        (self.report)(&place, done);
    }

    /// The same, unless there is nothing to tell.
    pub(super) fn tell_any(&self, path: &str, done: Result<Option<Imported>>) {
        match done {
            Ok(Some(done)) => self.tell(path, done),
            Ok(None) => {}
            Err(error) => self.tell(path, Imported::Failed(error.to_string())),
        }
    }
}
