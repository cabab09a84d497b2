use backend::{BackendError, CompleteRequest, CompleteUpload, CompletedPart, ObjectRef, UploadRef};
use s3_types::{Checksum, ChecksumAlgorithm, ChecksumType, Conditions, UploadId};
use s3_wire::headers::{ChecksumRequest, CompleteChecksum, complete_checksum, write_conditions};
use s3_wire::xml::{CompleteUploadRequest, CompleteUploadResult};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use super::named::upload_id;
use crate::call::Call;
use crate::errors::wrong_checksum;
use crate::ops::handler::Handler;
use crate::ops::slow;
use crate::reply::Reply;

/// CompleteMultipartUpload.
pub struct CompleteMultipartUpload {
    id: UploadId,
    conditions: Conditions,
    whole: CompleteChecksum,
    /// The document's own digest.
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

    async fn perform(self, mut call: Call<'a>) -> Result<Reply> {
        let target = call.object()?;
        let bytes_max = limits::COMPLETE_BODY_BYTES_MAX;
        let request = call.read_document(self.expected, bytes_max, CompleteUploadRequest::parse).await?;
        let mut complete = CompleteUpload {
            parts: request
                .parts
                .into_iter()
                .map(|p| CompletedPart { part_number: p.part_number, etag: p.etag, checksum: p.checksum })
                .collect(),
            conditions: self.conditions,
            checksum: None,
            size_bytes: self.whole.object_size_bytes,
        };
        let (bucket, key) = (target.bucket.clone(), target.key.clone());
        let (backend, cx, location) = (call.gateway.backend.clone(), call.backend_context(), location(&call));
        let failed = call.failed_later();
        let work = async move {
            let upload = UploadRef { object: ObjectRef { bucket: &bucket, key: &key }, id: &self.id };
            match backend.head_upload(&cx, upload).await {
                Ok(attributes) => {
                    let default = backend.capabilities().default_checksum;
                    complete.checksum = whole_checksum(&self.whole, attributes.checksum, default)?;
                    check_parts(&complete.parts, attributes.checksum, &failed)?;
                }
                // One that was completed has left its answer for those who ask again.
                Err(BackendError::NoSuchUpload) if !complete.parts.is_empty() => {}
                Err(error) => return Err(failed(error)),
            }
            let receipt =
                backend.complete_upload(&cx, CompleteRequest { upload, complete }).await.map_err(failed)?;
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

/// What an upload was created with.
type Chosen = Option<(ChecksumAlgorithm, ChecksumType)>;

/// The checksum that the whole is to be compared with.
///
/// A value without a type has the type that its algorithm has by default. Where the upload chose no
/// algorithm S3 compares nothing; we do compare the one that the object gets anyway.
fn whole_checksum(
    asked: &CompleteChecksum,
    chosen: Chosen,
    default: ChecksumAlgorithm,
) -> Result<Option<Checksum>> {
    let mode = chosen.map(|(_, checksum_type)| checksum_type);
    if asked.checksum_type.is_some() && asked.checksum_type != mode {
        let message = format!(
            "The upload was created using the {} checksum mode. The complete request must use the same checksum mode.",
            mode.map_or("null", ChecksumType::name)
        );
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
    }
    let Some(given) = asked.checksum else { return Ok(None) };
    let Some((algorithm, checksum_type)) = chosen else {
        let comparable = given.value.algorithm() == default && given.parts.is_none();
        return Ok(comparable.then_some(given));
    };
    let named = asked.checksum_type.unwrap_or(algorithm.default_multipart_type());
    let counted = checksum_type == ChecksumType::FullObject && given.parts.is_some();
    if given.value.algorithm() != algorithm || named != checksum_type || counted {
        return Err(wrong_checksum(algorithm));
    }
    Ok(Some(Checksum { checksum_type, ..given }))
}

/// What S3 asks of the list of parts before it looks for them: none without a checksum where the
/// whole is made of the parts' checksums, none with one of another algorithm than the upload's, and
/// none with any where the upload chose none.
fn check_parts(
    parts: &[CompletedPart],
    chosen: Chosen,
    failed: impl Fn(BackendError) -> S3Error,
) -> Result<()> {
    if parts.is_empty() {
        return Err(S3Error::with_message(ErrorCode::InvalidRequest, "You must specify at least one part"));
    }
    for part in parts {
        let (number, given) = (part.part_number, part.checksum.map(|checksum| checksum.algorithm()));
        match (chosen, given) {
            (Some((algorithm, ChecksumType::Composite)), None) => {
                let message = format!(
                    "The upload was created using a {} checksum. The complete request must include the checksum for each \
                     part. It was missing for part {number} in the request.",
                    algorithm.name().to_ascii_lowercase()
                );
                return Err(S3Error::with_message(ErrorCode::InvalidRequest, message));
            }
            (Some((algorithm, _)), Some(given)) if given != algorithm => {
                let message = format!(
                    "The {} you specified for part {number} did not match what we received.",
                    given.name().to_ascii_lowercase()
                );
                return Err(S3Error::with_message(ErrorCode::BadDigest, message));
            }
            (None, Some(_)) => {
                return Err(failed(BackendError::InvalidPart {
                    part_number: number,
                    etag: part.etag.to_string(),
                }));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The object's address, as the client reached us.
fn location(call: &Call<'_>) -> String {
    let scheme = if call.cx.peer.secure { "https" } else { "http" };
    let host = call.headers.get(http::header::HOST).and_then(|h| h.to_str().ok()).unwrap_or("localhost");
    format!("{scheme}://{host}{}", call.head.uri.path())
}

#[cfg(test)]
mod tests {
    use s3_types::Checksummer;

    use super::*;

    const BODY: &[u8] = b"whole";

    fn value(algorithm: ChecksumAlgorithm, parts: Option<u32>) -> Checksum {
        let checksum_type = if parts.is_some() { ChecksumType::Composite } else { ChecksumType::FullObject };
        Checksum { value: Checksummer::of(algorithm, BODY), checksum_type, parts }
    }

    fn compared(
        given: Checksum,
        named: Option<ChecksumType>,
        chosen: Chosen,
    ) -> std::result::Result<Option<Checksum>, String> {
        let asked =
            CompleteChecksum { checksum: Some(given), checksum_type: named, ..CompleteChecksum::default() };
        whole_checksum(&asked, chosen, ChecksumAlgorithm::Crc64Nvme).map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_without_a_type_has_its_algorithms_own() {
        use ChecksumAlgorithm::{Crc32c, Crc64Nvme, Sha256};
        use ChecksumType::{Composite, FullObject};
        let wrong = |name: &str| {
            Err(format!("BadDigest: The {name} you specified did not match the calculated checksum."))
        };
        let whole = Some((Crc32c, FullObject));
        assert_eq!(compared(value(Crc32c, None), None, whole), wrong("crc32c"));
        assert_eq!(compared(value(Crc32c, Some(1)), None, whole), wrong("crc32c"));
        assert_eq!(compared(value(Crc64Nvme, None), None, whole), wrong("crc32c"));
        assert_eq!(compared(value(Sha256, None), Some(FullObject), whole), wrong("crc32c"));
        let right = value(Crc32c, None);
        assert_eq!(compared(right, Some(FullObject), whole), Ok(Some(right)));
        // The one algorithm whose default is the full object.
        let right = value(Crc64Nvme, None);
        assert_eq!(compared(right, None, Some((Crc64Nvme, FullObject))), Ok(Some(right)));
        let composite = Some((Sha256, Composite));
        for given in [value(Sha256, None), value(Sha256, Some(2))] {
            let expected = Checksum { checksum_type: Composite, ..given };
            for named in [None, Some(Composite)] {
                assert_eq!(compared(given, named, composite), Ok(Some(expected)));
            }
        }
    }

    #[test]
    fn an_upload_without_an_algorithm_has_no_type() {
        use ChecksumAlgorithm::{Crc32c, Crc64Nvme};
        let message = "InvalidRequest: The upload was created using the null checksum mode. The complete request must use the \
                       same checksum mode.";
        for named in [ChecksumType::FullObject, ChecksumType::Composite] {
            assert_eq!(compared(value(Crc64Nvme, None), Some(named), None), Err(message.to_owned()));
        }
        assert_eq!(compared(value(Crc32c, None), None, None), Ok(None));
        assert_eq!(compared(value(Crc32c, Some(2)), None, None), Ok(None));
        assert_eq!(compared(value(Crc64Nvme, None), None, None), Ok(Some(value(Crc64Nvme, None))));
    }
}
