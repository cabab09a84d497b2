use backend::Versioning;
use s3_types::{UploadId, VersionId};
use s3_wire::{ErrorCode, Result, S3Error, headers};

use crate::call::Call;
use crate::reply::{self, Reply};

/// Returns the id of the upload in the query. A text that does not have the form of an id is
/// `NoSuchUpload`.
pub fn upload_id(call: &Call<'_>) -> Result<UploadId> {
    let id = call.query.get("uploadId").unwrap_or_default();
    UploadId::new(id).map_err(|_| S3Error::new(ErrorCode::NoSuchUpload).detail("UploadId", id))
}

/// Returns the number of the part in the query.
pub fn part_number(call: &Call<'_>) -> Result<u32> {
    headers::part_number(call.query)?.ok_or_else(|| ErrorCode::InvalidRequest.into())
}

/// Returns the id that the object's version will have, if the answer is to name it: where the
/// bucket keeps versions now.
pub fn version_to_be(versioning: Versioning, version: Option<VersionId>) -> Option<VersionId> {
    version.filter(|_| versioning == Versioning::Enabled)
}

/// Names that version in an answer.
pub fn set_version_to_be(reply: &mut Reply, call: &Call<'_>, version: Option<VersionId>) {
    reply::set_version(reply.headers_mut(), version_to_be(call.versioning, version).as_ref());
}
