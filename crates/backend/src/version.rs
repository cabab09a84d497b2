use crate::error::{BackendError, Result};
use crate::object::{ObjectRef, VersionRef};

/// Checks the version for a storage that keeps only one version of an object, whose id is `null`:
/// [`BackendError::InvalidVersionId`] for any other id.
pub fn check_only_version(object: ObjectRef<'_>) -> Result<()> {
    match object.version {
        VersionRef::Id(id) if !id.is_null() => Err(BackendError::InvalidVersionId(id.clone())),
        VersionRef::Id(_) | VersionRef::Current => Ok(()),
    }
}
