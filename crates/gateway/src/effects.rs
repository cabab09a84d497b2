//! What a request did.

use std::sync::{Arc, OnceLock};

use s3_types::VersionId;

/// What was done, or will have been when the answer has left: some answers begin before the work
/// has ended.
#[derive(Debug, Clone)]
pub enum Effects {
    /// This.
    Done(Did),
    /// What will be here once the work has succeeded. Work goes on for a client that left: of that,
    /// there may be nothing yet when the request is reported.
    Later(Arc<OnceLock<Did>>),
}

impl Effects {
    /// What is known to have been done by now.
    pub fn so_far(&self) -> Option<&Did> {
        match self {
            Self::Done(did) => Some(did),
            Self::Later(did) => did.get(),
        }
    }
}

impl Default for Effects {
    fn default() -> Self {
        Self::Done(Did::default())
    }
}

/// What an operation did to objects, as far as its request and its answer do not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Did {
    /// Bytes of the whole object that was read or written.
    pub object_bytes: Option<u64>,
    /// The version that was read, made or removed, where versions are kept.
    pub version: Option<VersionId>,
}
