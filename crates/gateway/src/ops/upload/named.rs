use s3_types::UploadId;
use s3_wire::{ErrorCode, Result, S3Error, headers};

use crate::call::Call;

/// The upload that the query names. A text that is not like an id was never the id of an upload.
pub fn upload_id(call: &Call<'_>) -> Result<UploadId> {
    let id = call.query.get("uploadId").unwrap_or_default();
    UploadId::new(id).map_err(|_| S3Error::new(ErrorCode::NoSuchUpload).detail("UploadId", id))
}

/// The part that the query names.
pub fn part_number(call: &Call<'_>) -> Result<u32> {
    headers::part_number(call.query)?.ok_or_else(|| ErrorCode::InvalidRequest.into())
}
