//! What a request did.

use std::sync::{Arc, OnceLock};

use s3_types::VersionId;

/// What a request did. Some answers begin before the work has ended, so that this is known only
/// later.
#[derive(Debug, Clone)]
pub enum Effects {
    /// The work has ended, and did this.
    Done(Did),
    /// Set once the work has succeeded. It may still be unset when the request is reported, since
    /// work goes on after its client has left.
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

/// What an operation did to objects, beyond what its request and its answer show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Did {
    /// Bytes of the whole object that was read or written.
    pub object_bytes: Option<u64>,
    /// The version that was read, made or removed, where versions are kept.
    pub version: Option<VersionId>,
}
