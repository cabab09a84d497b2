use s3_wire::{Result, S3Error};

/// Versions do not exist yet: only `null` names one (any object); another id is one that was never
/// given out.
pub fn check_version(version_id: Option<&str>) -> Result<()> {
    match version_id {
        None | Some("null") => Ok(()),
        Some("") => Err(S3Error::invalid_argument("versionId", "", "Version id cannot be the empty string")),
        Some(other) => Err(S3Error::invalid_argument("versionId", other, "Invalid version id specified")),
    }
}
