use backend::{CompleteRequest, CompleteUpload, ObjectRef, UploadRef};
use iam::ConditionKey;
use policy::Value;
use s3_types::{Conditions, UploadId};
use s3_wire::headers::{ChecksumRequest, CompleteChecksum, complete_checksum, write_conditions};
use s3_wire::xml::{CompleteUploadRequest, CompleteUploadResult};
use s3_wire::{Result, limits};

use super::named::upload_id;
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::object::put::did_write;
use crate::ops::slow::{self, Finished};
use crate::ops::values;
use crate::outcome::Outcome;

/// CompleteMultipartUpload.
pub struct CompleteMultipartUpload {
    id: UploadId,
    conditions: Conditions,
    whole: CompleteChecksum,
    /// The digest of the document, as the client gave it.
    expected: ChecksumRequest,
}

impl<'a> Handler<'a> for CompleteMultipartUpload {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self {
            id: upload_id(call)?,
            conditions: write_conditions(call.headers)?,
            whole: complete_checksum(call.headers)?,
            // Checksum headers are about the object here, not about the document.
            expected: ChecksumRequest::parse_content_md5(call.headers)?,
        })
    }

    fn about(&self) -> About<'_> {
        About { version: None, conditions: Some(&self.conditions) }
    }

    fn value<'v>(&'v self, call: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        values::of_new_object(call, key)
    }

    async fn perform(self, mut call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let target = call.object()?;
        let bytes_max = limits::COMPLETE_BODY_BYTES_MAX;
        let request = call.read_document(self.expected, bytes_max, CompleteUploadRequest::parse).await?;
        let complete = CompleteUpload {
            parts: request.parts,
            conditions: self.conditions,
            checksum: self.whole.checksum,
            checksum_type: self.whole.checksum_type,
            size_bytes: self.whole.object_size_bytes,
        };
        let (bucket, key) = (target.bucket.clone(), target.key.clone());
        let (storage, location, versioning) = (storage.detach(), location(&call), call.versioning);
        let failed = call.failed_later();
        let work = async move {
            let upload = UploadRef { object: ObjectRef::current(&bucket, &key), id: &self.id };
            let request = CompleteRequest { upload, complete, check: None };
            let receipt = storage.authorized().complete_upload(request).await.map_err(failed)?;
            let result = CompleteUploadResult {
                location: &location,
                bucket: bucket.as_str(),
                key: key.as_str(),
                etag: &receipt.etag,
                checksum: receipt.checksum,
            };
            let (document, did) = (result.render(), did_write(receipt, versioning));
            let version = did.version.clone();
            Ok(Finished { document, did, version, source_version: None })
        };
        slow::answer(&call, work).await
    }
}

/// Returns the object's address, with the host name by which the client reached the gateway.
fn location(call: &Call<'_>) -> String {
    let scheme = if call.cx.peer.secure { "https" } else { "http" };
    let host = call.headers.get(http::header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("localhost");
    format!("{scheme}://{host}{}", call.head.uri.path())
}
