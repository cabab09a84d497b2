use backend::UploadRef;
use http::StatusCode;
use s3_types::UploadId;
use s3_wire::Result;

use super::upload_id;
use crate::ops::Operation;
use crate::pipeline::Call;
use crate::reply::{self, Reply};

/// AbortMultipartUpload.
pub struct AbortMultipartUpload {
    id: UploadId,
}

impl<'a> Operation<'a> for AbortMultipartUpload {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { id: upload_id(call)? })
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let object = call.object()?;
        call.backend()
            .abort_upload(&call.backend_context(), UploadRef { object, id: &self.id })
            .await
            .map_err(call.failed())?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}
