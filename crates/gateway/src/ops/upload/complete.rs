use backend::{CompleteUpload, CompletedPart, ObjectRef, UploadAttributes, UploadRef};
use s3_types::{ChecksumType, Conditions, UploadId};
use s3_wire::headers::{ChecksumRequest, CompleteChecksum, complete_checksum, write_conditions};
use s3_wire::xml::{CompleteUploadRequest, CompleteUploadResult};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use super::upload_id;
use crate::ops::{Operation, slow};
use crate::pipeline::Call;
use crate::reply::Reply;

/// CompleteMultipartUpload.
pub struct CompleteMultipartUpload {
    id: UploadId,
    conditions: Conditions,
    whole: CompleteChecksum,
}

impl<'a> Operation<'a> for CompleteMultipartUpload {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self {
            id: upload_id(call)?,
            conditions: write_conditions(call.headers)?,
            whole: complete_checksum(call.headers)?,
        })
    }

    async fn perform(self, mut call: Call<'a>) -> Result<Reply> {
        let target = call.object()?;
        // Checksum headers are about the object here, not about this document.
        let expected = ChecksumRequest::parse_content_md5(call.headers)?;
        let bytes_max = limits::COMPLETE_BODY_BYTES_MAX;
        let request = call.read_document(expected, bytes_max, CompleteUploadRequest::parse).await?;
        let complete = CompleteUpload {
            parts: request
                .parts
                .into_iter()
                .map(|p| CompletedPart { part_number: p.part_number, etag: p.etag, checksum: p.checksum })
                .collect(),
            conditions: self.conditions,
            checksum: self.whole.checksum,
            size_bytes: self.whole.object_size_bytes,
        };
        let (bucket, key) = (target.bucket.clone(), target.key.clone());
        let (backend, cx, location) = (call.gateway.backend.clone(), call.backend_context(), location(&call));
        let failed = call.failed_later();
        let work = async move {
            let upload = UploadRef { object: ObjectRef { bucket: &bucket, key: &key }, id: &self.id };
            let attributes = backend.head_upload(&cx, upload).await;
            if let Ok(UploadAttributes { checksum: Some((_, kept)), .. }) = attributes {
                check_type(self.whole.checksum_type, kept)?;
            }
            let receipt = backend.complete_upload(&cx, upload, complete).await.map_err(failed)?;
            let result = CompleteUploadResult {
                location: &location,
                bucket: bucket.as_str(),
                key: key.as_str(),
                etag: &receipt.etag,
                checksum: receipt.checksum,
            };
            Ok(result.render())
        };
        slow::answer(&call, work).await
    }
}

fn check_type(asked: Option<ChecksumType>, kept: ChecksumType) -> Result<()> {
    if asked.is_none_or(|asked| asked == kept) {
        return Ok(());
    }
    let message = format!(
        "The upload was created using the {} checksum mode. The complete request must use the same checksum mode.",
        kept.name()
    );
    Err(S3Error::with_message(ErrorCode::InvalidRequest, message))
}

/// The object's address, as the client reached us.
fn location(call: &Call<'_>) -> String {
    let scheme = if call.cx.peer.tls { "https" } else { "http" };
    let host = call.headers.get(http::header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("localhost");
    format!("{scheme}://{host}{}", call.head.uri.path())
}
