use std::ops::Range;

use backend::{BackendError, Copied, CopyPartRequest, ObjectRef, PartReceipt, UploadRef};
use iam::ConditionKey;
use policy::Value;
use s3_types::UploadId;
use s3_wire::headers::copy_source_range;
use s3_wire::xml::CopyPartResult;
use s3_wire::{ErrorCode, Result, S3Error};

use super::named::{part_number, upload_id, version_to_be};
use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::handler::Handler;
use crate::ops::object::copy::Source;
use crate::ops::slow::{self, Finished};
use crate::ops::values;
use crate::outcome::Outcome;

/// UploadPartCopy.
pub struct UploadPartCopy {
    id: UploadId,
    part_number: u32,
    source: Source,
    range: Option<Range<u64>>,
}

impl<'a> Handler<'a> for UploadPartCopy {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let part_number = part_number(call)?;
        let source = Source::parse(call)?;
        Ok(Self { id: upload_id(call)?, part_number, source, range: copy_source_range(call.headers)? })
    }

    fn value(&self, _: &Call<'a>, key: ConditionKey) -> Value<'_> {
        match key {
            ConditionKey::CopySource => Value::One(self.source.path().into()),
            _ => values::of_part(key),
        }
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let target = call.object()?;
        let (bucket, key) = (target.bucket.clone(), target.key.clone());
        let source = self.source.authorize(&call, None).await?;
        let (storage, versioning) = (storage.detach(), call.versioning);
        let work = async move {
            let target = ObjectRef::current(&bucket, &key);
            let request = CopyPartRequest {
                source: self.source.for_backend(),
                range: self.range.clone(),
                upload: UploadRef { object: target, id: &self.id },
                part_number: self.part_number,
            };
            match storage.authorized().copy_part(&source.authorized(), request).await {
                Ok(Copied { receipt, source_version }) => {
                    let PartReceipt { etag, checksum, last_modified, version } = receipt;
                    let document = CopyPartResult { etag: &etag, checksum, last_modified }.render();
                    let version = version_to_be(versioning, version);
                    Ok(Finished { document, did: Did::default(), version, source_version })
                }
                Err(BackendError::InvalidRange { size_bytes }) => Err(out_of_range(self.range, size_bytes)),
                Err(error) => Err(self.source.copy_error(error, target)),
            }
        };
        slow::answer(&call, work).await
    }
}

/// Returns the error for a range that begins or ends beyond the source's end: S3 has a different
/// error for each.
fn out_of_range(range: Option<Range<u64>>, size_bytes: u64) -> S3Error {
    if range.as_ref().is_some_and(|range| range.start >= size_bytes) {
        return S3Error::with_message(
            ErrorCode::InvalidRequest,
            "The specified copy range is invalid for the source object size",
        );
    }
    let text = range.map(|r| format!("bytes={}-{}", r.start, r.end.saturating_sub(1))).unwrap_or_default();
    let message = format!("Range specified is not valid for source object of size: {size_bytes}");
    S3Error::invalid_argument("x-amz-copy-source-range", text, message)
}
