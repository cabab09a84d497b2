//! The effects of requests on objects.

use std::sync::{Arc, OnceLock};

use s3_types::VersionId;

/// The effects of a request. Some answers begin before the work has ended, so that the effects are
/// known only later.
#[derive(Debug, Clone)]
pub enum Effects {
    /// The work has ended, with these effects.
    Done(Did),
    /// The effects, which are set once the work has succeeded. They may still be missing when the
    /// request is reported, since work continues after its client has left.
    Later(Arc<OnceLock<Did>>),
}

impl Effects {
    /// Returns the effects that are known so far.
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

/// The effects of an operation on objects that neither its request nor its answer shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Did {
    /// The number of bytes of the whole object that was read or written.
    pub object_bytes: Option<u64>,
    /// The version that was read, made or removed, if versions are kept.
    pub version: Option<VersionId>,
}
