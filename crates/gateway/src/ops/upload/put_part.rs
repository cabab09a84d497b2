use backend::{PutPartRequest, UploadAttributes, UploadRef};
use http::StatusCode;
use s3_types::{ChecksumType, UploadId};
use s3_wire::headers::{ChecksumRequest, Md5Of};
use s3_wire::{ErrorCode, Result, S3Error};

use super::named::{part_number, upload_id};
use crate::body::{DigestPlan, receive};
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::object::put::reply_headers;
use crate::reply::{self, Reply};

/// UploadPart.
pub struct UploadPart {
    id: UploadId,
    part_number: u32,
    checksum: ChecksumRequest,
}

impl<'a> Handler<'a> for UploadPart {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let part_number = part_number(call)?;
        Ok(Self { id: upload_id(call)?, part_number, checksum: ChecksumRequest::parse(call.headers)? })
    }

    async fn perform(self, mut call: Call<'a>) -> Result<Reply> {
        let object = call.object()?;
        let upload = UploadRef { object, id: &self.id };
        let (backend, cx) = (call.backend(), call.backend_context());
        let failed = call.failed();
        let attributes = backend.head_upload(&cx, upload).await.map_err(failed)?;
        check_algorithm(&self.checksum, &attributes)?;
        let plan = DigestPlan::new(call.backend().capabilities(), &call.gateway.digests);
        let default = attributes.checksum.map_or(plan.default, |(algorithm, _)| algorithm);
        let body = call.decode_body()?;
        let size_hint = Some(body.length());
        let request = PutPartRequest { upload, part_number: self.part_number, size_hint };
        let mut writer = backend.put_part(&cx, request).await.map_err(failed)?;
        let plan = DigestPlan { default, ..plan };
        let digests = receive(body, writer.as_mut(), self.checksum, Md5Of::Other, plan, failed).await?;
        let receipt = writer.commit(digests).await.map_err(failed)?;
        let mut reply = reply::empty(StatusCode::OK);
        // What nobody asked for is kept for the checksum of the whole, and not told.
        let asked = self.checksum.algorithm.is_some() || attributes.checksum.is_some();
        reply_headers(&mut reply, &receipt.etag, receipt.checksum.as_ref().filter(|_| asked));
        // A part has no type of its own.
        reply.headers_mut().remove("x-amz-checksum-type");
        Ok(reply)
    }
}

/// A part must have the checksum that its upload was created with; and a composite checksum needs
/// one from each part.
fn check_algorithm(given: &ChecksumRequest, upload: &UploadAttributes) -> Result<()> {
    let Some((algorithm, checksum_type)) = upload.checksum else { return Ok(()) };
    let given = match (given.algorithm, checksum_type) {
        (Some(given), _) if given == algorithm => return Ok(()),
        (None, ChecksumType::FullObject) => return Ok(()),
        (Some(given), _) => given.name().to_ascii_lowercase(),
        (None, ChecksumType::Composite) => "null".to_owned(),
    };
    let message = format!(
        "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {given}",
        algorithm.name().to_ascii_lowercase()
    );
    Err(S3Error::with_message(ErrorCode::InvalidRequest, message))
}
