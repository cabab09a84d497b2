//! The options and the results of an import.

use std::path::{Path, PathBuf};

use backend::Result;

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The directory in which the other gateway kept its attributes, if not with the files.
    pub sidecar: Option<PathBuf>,
    /// True if it is only reported what would be done. Files are read nevertheless, unless
    /// `trust_etags`.
    pub dry_run: bool,
    /// Leave the other gateway's attributes where they are.
    pub keep_attributes: bool,
    /// Take ETags and checksums over without reading the files.
    pub trust_etags: bool,
    /// The number of files to work on at a time.
    pub jobs: usize,
}

/// The result for a file.
#[derive(Debug)]
pub enum Imported {
    /// It has a record now, or would have one without `dry_run`.
    Done,
    /// It already has a record that describes it.
    Known,
    /// The other gateway has no metadata for it: it is a foreign file to both.
    Foreign,
    /// The other gateway's metadata do not belong to its present bytes, or may not; it stays
    /// foreign.
    Stale(&'static str),
    /// It was changed while it was read, and stays as it was.
    Changed,
    /// The import of it failed, and it stays as it was.
    Failed(String),
    /// Something for which a tree of Slipway has no place, and which stays where it is.
    Left(String),
}

/// Reports the results for the entries of a bucket.
pub(super) struct ImportReporter<'a> {
    pub(super) report: &'a (dyn Fn(&Path, Imported) + Sync),
    /// The path of the bucket.
    pub(super) path: &'a Path,
}

impl ImportReporter<'_> {
    /// Reports the result for the entry at `path` in the bucket; "" is the bucket itself.
    pub(super) fn report(&self, path: &str, done: Imported) {
        let place = if path.is_empty() { self.path.to_owned() } else { self.path.join(path) };
        (self.report)(&place, done);
    }

    /// [`ImportReporter::report`] for a result that may be an error, or `None`.
    pub(super) fn report_any(&self, path: &str, done: Result<Option<Imported>>) {
        match done {
            Ok(Some(done)) => self.report(path, done),
            Ok(None) => {}
            Err(error) => self.report(path, Imported::Failed(error.to_string())),
        }
    }
}
