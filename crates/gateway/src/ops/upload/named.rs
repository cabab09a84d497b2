use s3_types::UploadId;
use s3_wire::{ErrorCode, Result, S3Error, headers};

use crate::call::Call;

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
