use std::fmt::Debug;
use std::sync::Arc;

use s3_types::{NeededFacts, ObjectFacts};

/// The error for a requester that may not do what it asks for. It becomes
/// [`crate::BackendError::NotAllowed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAllowed;

/// A decision about a request that depends on facts of an object, which only the storage can read.
///
/// The storage calls it before it evaluates conditions, ranges and parts, since errors about these
/// reveal ETag, size and dates. If it does not allow the request, the request fails, and leaves
/// nothing behind.
pub trait ObjectCheck: Debug + Send + Sync {
    /// Returns the facts that the decision needs.
    fn needs(&self) -> NeededFacts;
    /// Decides with the facts of the version that the request acts on. They are `None` for a write
    /// or a delete if the object does not exist.
    fn check(&self, object: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed>;
}

/// The check of a request, if it has one.
pub type Check<'a> = Option<&'a Arc<dyn ObjectCheck>>;
