use backend::{PartWriter, PutPartRequest, UploadRef, Versioning};
use http::StatusCode;
use iam::ConditionKey;
use policy::Value;
use s3_types::UploadId;
use s3_wire::Result;
use s3_wire::headers::{ChecksumRequest, Md5Of};

use super::named::{part_number, set_version_to_be, upload_id};
use crate::access::Authorized;
use crate::body::{DigestPlan, receive};
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::object::put::{did_write, reply_headers};
use crate::ops::values;
use crate::outcome::Outcome;
use crate::reply;

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

    fn value(&self, _: &Call<'a>, key: ConditionKey) -> Value<'_> {
        values::of_part(key)
    }

    async fn perform(self, mut call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?;
        let upload = UploadRef { object, id: &self.id };
        let failed = call.failed();
        let plan = DigestPlan::new(call.gateway.storage.capabilities(), &call.gateway.digests);
        let body = call.decode_body()?;
        let size_hint = Some(body.length());
        let checksum = self.checksum.algorithm;
        let request = PutPartRequest { upload, part_number: self.part_number, size_hint, checksum };
        let PartWriter { mut writer, chosen, version } = storage.put_part(request).await.map_err(failed)?;
        let default = chosen.map_or(plan.default, |(algorithm, _)| algorithm);
        let plan = DigestPlan { default, ..plan };
        let digests = receive(body, writer.as_mut(), self.checksum, Md5Of::Other, plan, failed).await?;
        let receipt = storage.commit(writer, digests).await.map_err(failed)?;
        let mut reply = reply::empty(StatusCode::OK);
        // What nobody asked for is kept for the checksum of the whole, and not told.
        let asked = checksum.is_some() || chosen.is_some();
        reply_headers(&mut reply, &receipt.etag, receipt.checksum.as_ref().filter(|_| asked));
        // A part has no type of its own.
        reply.headers_mut().remove("x-amz-checksum-type");
        set_version_to_be(&mut reply, &call, version);
        // A part has no version of its own.
        Ok(Outcome::done(reply, did_write(receipt, Versioning::Unset)))
    }
}
