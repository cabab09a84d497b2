//! Names of the documents of buckets.

/// The directory of files with documents, in `DIR/.slipway`. Each file has the name of its bucket.
pub(crate) const DOCUMENTS: &str = "buckets";

/// The file in it whose lock writers hold. It is not the name of a bucket, nor are the following
/// names.
pub(crate) const LOCK: &str = ",lock";

/// The file that will replace another one. Only the holder of the lock has it.
pub(crate) const STAGED: &str = ",new";

/// The prefix of the name of a copy of documents that those of a new bucket replace; the bucket's
/// name follows. Only the holder of the lock has it.
pub(crate) const KEPT: &str = ",kept,";

/// A file whose removal changes the time of the directory. Only the holder of the lock has it.
pub(crate) const SPARE: &str = ",spare";
