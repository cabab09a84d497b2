use backend::{ObjectWriter, WriteOptions, WriteReceipt};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use s3_types::limits::PART_BYTES_MAX;
use s3_types::{Checksum, ChecksumAlgorithm, Conditions, Digester, Digests, ETag, ObjectMetadata};
use s3_wire::headers::{
    ChecksumRequest, append_checksum, etag_value, object_metadata, refuse_unimplemented, verify_checksum,
    verify_content_md5, write_conditions,
};
use s3_wire::{ErrorCode, Result, S3Error};

use crate::body::{DecodedBody, expected_value};
use crate::ops::Operation;
use crate::pipeline::Call;
use crate::reply::{self, Reply};

/// PutObject.
pub struct PutObject {
    metadata: ObjectMetadata,
    conditions: Conditions,
    checksum: ChecksumRequest,
}

impl<'a> Operation<'a> for PutObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        refuse_unimplemented(call.headers)?;
        Ok(Self {
            metadata: object_metadata(call.headers)?,
            conditions: write_conditions(call.headers)?,
            checksum: ChecksumRequest::parse(call.headers)?,
        })
    }

    async fn perform(self, mut call: Call<'a>) -> Result<Reply> {
        let object = call.object()?;
        let (backend, cx) = (call.backend(), call.backend_context());
        let failed = call.failed();
        let body = decode(&mut call)?;
        let options = WriteOptions {
            metadata: self.metadata,
            conditions: self.conditions,
            size_hint: Some(body.length()),
        };
        let mut writer = backend.put_object(&cx, object, options).await.map_err(failed)?;
        let plan = DigestPlan { wanted: backend.wants_digests(), default: backend.default_checksum() };
        let digests = receive(body, writer.as_mut(), self.checksum, plan, failed).await?;
        let receipt = writer.commit(digests).await.map_err(failed)?;
        Ok(reply_to_write(&receipt))
    }
}

/// The body, which must say how long it is, and may not be larger than one request may bring.
pub fn decode<'c>(call: &'c mut Call<'_>) -> Result<DecodedBody<'c>> {
    // HTTP takes a request that says nothing for one without a body; S3 does not.
    if ![CONTENT_LENGTH, TRANSFER_ENCODING].iter().any(|name| call.headers.contains_key(name)) {
        return Err(ErrorCode::MissingContentLength.into());
    }
    let body = call.decode_body()?;
    let length = body.length();
    if length <= PART_BYTES_MAX {
        return Ok(body);
    }
    Err(S3Error::new(ErrorCode::EntityTooLarge)
        .detail("ProposedSize", length.to_string())
        .detail("MaxSizeAllowed", PART_BYTES_MAX.to_string()))
}

/// Which digests a body gets besides those that the client asks to be verified.
#[derive(Debug, Clone, Copy)]
pub struct DigestPlan {
    /// Whether the backend keeps any.
    pub wanted: bool,
    /// The checksum where the client chose none.
    pub default: ChecksumAlgorithm,
}

/// Moves a body into a writer, and verifies all that was said about it. The bytes are not visible before the commit.
pub async fn receive(
    mut body: DecodedBody<'_>,
    writer: &mut dyn ObjectWriter,
    expected: ChecksumRequest,
    plan: DigestPlan,
    failed: impl Fn(backend::BackendError) -> S3Error + Send,
) -> Result<Digests> {
    let asked = expected.algorithm.is_some() || expected.content_md5.is_some();
    let mut digester =
        (plan.wanted || asked).then(|| Digester::new(Some(expected.algorithm.unwrap_or(plan.default))));
    while let Some(piece) = body.next().await? {
        if let Some(digester) = &mut digester {
            digester.update(&piece);
        }
        writer.write(piece).await.map_err(&failed)?;
    }
    let trailers = body.finish()?;
    let Some(digester) = digester else {
        return Ok(Digests { etag: ETag::Md5([0; 16]), checksum: None });
    };
    let digests = digester.finish();
    if let (Some(md5), ETag::Md5(calculated)) = (expected.content_md5, &digests.etag) {
        verify_content_md5(md5, *calculated)?;
    }
    if let (Some(value), Some(calculated)) = (expected_value(&expected, &trailers)?, &digests.checksum) {
        verify_checksum(&value, &calculated.value)?;
    }
    Ok(digests)
}

fn reply_to_write(receipt: &WriteReceipt) -> Reply {
    let mut reply = reply::empty(StatusCode::OK);
    reply_headers(&mut reply, &receipt.etag, receipt.checksum.as_ref());
    reply
}

/// ETag and checksum of what was written.
pub fn reply_headers(reply: &mut Reply, etag: &ETag, checksum: Option<&Checksum>) {
    reply.headers_mut().insert(http::header::ETAG, etag_value(etag));
    if let Some(checksum) = checksum {
        append_checksum(reply.headers_mut(), checksum);
    }
}
