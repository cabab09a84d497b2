use backend::UploadRef;
use http::StatusCode;
use s3_types::{Timestamp, UploadId};
use s3_wire::headers::if_match_initiated_time;
use s3_wire::{ErrorCode, Result, S3Error};

use super::named::upload_id;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::reply::{self, Reply};

/// AbortMultipartUpload.
pub struct AbortMultipartUpload {
    id: UploadId,
    /// When it must have been created, to the second.
    initiated: Option<Timestamp>,
}

impl<'a> Handler<'a> for AbortMultipartUpload {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { id: upload_id(call)?, initiated: if_match_initiated_time(call.headers)? })
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let upload = UploadRef { object: call.object()?, id: &self.id };
        let (backend, cx, failed) = (call.backend(), call.backend_context(), call.failed());
        if let Some(expected) = self.initiated {
            // It never changes, so that nothing can come between this and the end of the upload.
            let initiated = backend.head_upload(&cx, upload).await.map_err(failed)?.initiated;
            if initiated.as_second() != expected.as_second() {
                return Err(S3Error::new(ErrorCode::PreconditionFailed)
                    .detail("Condition", "x-amz-if-match-initiated-time"));
            }
        }
        backend.abort_upload(&cx, upload).await.map_err(failed)?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}
