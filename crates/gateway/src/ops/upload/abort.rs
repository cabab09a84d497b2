use backend::{AbortRequest, UploadRef};
use http::StatusCode;
use s3_types::{Timestamp, UploadId};
use s3_wire::Result;
use s3_wire::headers::if_match_initiated_time;

use super::named::{set_version_to_be, upload_id};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// AbortMultipartUpload.
pub struct AbortMultipartUpload {
    id: UploadId,
    /// The time at which the upload must have been created, to the second; `None` for any time.
    initiated: Option<Timestamp>,
}

impl<'a> Handler<'a> for AbortMultipartUpload {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { id: upload_id(call)?, initiated: if_match_initiated_time(call.headers)? })
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let upload = UploadRef { object: call.object()?, id: &self.id };
        let failed = call.failed();
        let request = AbortRequest { upload, if_initiated: self.initiated };
        let receipt = storage.abort_upload(request).await.map_err(failed)?;
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        set_version_to_be(&mut reply, &call, receipt.version);
        Ok(reply.into())
    }
}
