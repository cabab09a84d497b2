//! Names of the documents of buckets.

/// The directory of files with documents, in `DIR/.slipway`. Each file has the name of its bucket.
pub(crate) const DOCUMENTS: &str = "buckets";

/// The file in it whose lock writers hold. Not the name of a bucket, as the next one.
pub(crate) const LOCK: &str = ",lock";

/// The file that will replace another one. Only the holder of the lock has it.
pub(crate) const STAGED: &str = ",new";

/// The start of the name of a copy of documents that a new bucket's replace; that of the bucket
/// follows. Only the holder of the lock has it.
pub(crate) const KEPT: &str = ",kept,";

/// A file whose removal changes the time of the directory. Only the holder of the lock has it.
pub(crate) const SPARE: &str = ",spare";
