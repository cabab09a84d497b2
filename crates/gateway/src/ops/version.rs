use backend::Versioning;
use s3_types::VersionId;
use s3_wire::{Result, S3Error};

/// The id of the null version.
pub const NULL: &str = "null";

/// Returns the version that a parameter `versionId` names; `None` for the current one.
pub fn version_id(text: Option<&str>) -> Result<Option<VersionId>> {
    let Some(text) = text else { return Ok(None) };
    let message = match VersionId::new(text) {
        Ok(id) => return Ok(Some(id)),
        Err(_) if text.is_empty() => "Version id cannot be the empty string",
        Err(_) => "Invalid version id specified",
    };
    Err(S3Error::invalid_argument("versionId", text, message))
}

/// Returns the id that answers and logs show of a version: `null` for the null version, and none in
/// a bucket that never kept versions.
pub fn shown(version: Option<VersionId>, versioning: Versioning) -> Option<VersionId> {
    // A file that was moved there from another bucket may have one.
    if versioning.is_set() { Some(version.unwrap_or_else(VersionId::null)) } else { None }
}
