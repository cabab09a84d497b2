//! Names of documents, of buckets and of identities.

/// The directory of files with documents, in `DIR/.slipway`. Each file has the name of its bucket.
pub(crate) const DOCUMENTS: &str = "buckets";

/// The directory of documents of identities, in `DIR/.slipway`.
pub(crate) const IDENTITIES: &str = "iam";

/// The suffix of the name of a file with a document of identities.
pub(crate) const SUFFIX: &str = ".json";

/// The file in either directory whose lock writers hold. It is not the name of a bucket or a
/// document, nor are the following names.
pub(crate) const LOCK: &str = ",lock";

/// The name of a file that will replace another one. Only the holder of the lock makes it.
pub(crate) const STAGED: &str = ",new";

/// The prefix of the name of a copy of documents that a new bucket's documents replace; the
/// bucket's name follows. Only the holder of the lock makes it.
pub(crate) const KEPT: &str = ",kept,";

/// The name of a file whose removal changes the time of the directory. Only the holder of the lock
/// makes it.
pub(crate) const SPARE: &str = ",spare";
