use backend::{CreateUploadRequest, NewUpload};
use iam::{ConditionKey, request_tags};
use policy::Value;
use s3_types::ActionSet;
use s3_wire::headers::{object_metadata, object_tags, upload_checksum};
use s3_wire::xml::InitiateUploadResult;
use s3_wire::{ErrorCode, Result, S3Error};

use super::named::set_version_to_be;
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;
use crate::reply;

/// CreateMultipartUpload.
pub struct CreateMultipartUpload {
    upload: NewUpload,
}

impl<'a> Handler<'a> for CreateMultipartUpload {
    /// Reads the input. An anonymous requester is refused, since no policy can allow it this.
    fn parse(call: &Call<'a>) -> Result<Self> {
        if call.asker.requester.is_anonymous() {
            let message = "Anonymous users cannot initiate multipart uploads.  Please authenticate.";
            return Err(S3Error::with_message(ErrorCode::AccessDenied, message));
        }
        let (metadata, checksum) = (object_metadata(call.headers)?, upload_checksum(call.headers)?);
        let tags = object_tags(call.headers)?;
        let (lock, initiator) = (values::new_lock(call)?, call.new_initiator());
        Ok(Self { upload: NewUpload { metadata, tags, lock, checksum, initiator } })
    }

    fn needs(&self, call: &Call<'a>) -> ActionSet {
        let own = values::with_tags(&self.upload.tags, call.action().into());
        values::with_lock(&self.upload.lock, own)
    }

    fn value<'v>(&'v self, call: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        let redirect = self.upload.metadata.website_redirect_location.as_deref();
        match key {
            ConditionKey::WebsiteRedirectLocation => redirect.into(),
            _ if values::is_of_lock(key) => values::of_lock(&self.upload.lock, call.cx.now, key),
            _ => request_tags(self.upload.tags.as_slice(), key).or_else(|| values::of_new_upload(call, key)),
        }
    }

    async fn perform(self, mut call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?;
        call.ignore_body().await?;
        let checksum = self.upload.checksum;
        let request = CreateUploadRequest { object, upload: self.upload };
        let receipt = storage.create_upload(request).await.map_err(call.failed())?;
        let result = InitiateUploadResult {
            bucket: object.bucket.as_str(),
            key: object.key.as_str(),
            upload_id: receipt.id.as_str(),
        };
        let mut reply = reply::ok_xml(result.render());
        if let Some((algorithm, checksum_type)) = checksum {
            reply::set(reply.headers_mut(), "x-amz-checksum-algorithm", algorithm.name());
            reply::set(reply.headers_mut(), "x-amz-checksum-type", checksum_type.name());
        }
        set_version_to_be(&mut reply, &call, receipt.version);
        Ok(reply.into())
    }
}
