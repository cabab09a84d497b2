use crate::error::{BackendError, Result};
use crate::object::{ObjectRef, VersionRef};

/// For a storage that keeps one version of an object, which is also the one of the id `null`:
/// [`BackendError::InvalidVersionId`] if another one is asked for.
pub fn check_only_version(object: ObjectRef<'_>) -> Result<()> {
    match object.version {
        VersionRef::Id(id) if !id.is_null() => Err(BackendError::InvalidVersionId(id.clone())),
        VersionRef::Id(_) | VersionRef::Current => Ok(()),
    }
}
