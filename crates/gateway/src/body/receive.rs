//! Bodies that become objects and parts.

use backend::{BackendError, ObjectWriter};
use s3_types::Digests;
use s3_wire::headers::{ChecksumRequest, Md5Of, verify_checksum, verify_content_md5};
use s3_wire::{Result, S3Error};

use super::checksum::expected_value;
use super::digests::DigestPlan;
use super::request::DecodedBody;

/// Copies a body to a writer, and verifies everything that the client said about it. The bytes are
/// not visible before the commit. `of` is the object or part that the body becomes, for errors.
pub async fn receive(
    mut body: DecodedBody<'_>,
    writer: &mut dyn ObjectWriter,
    expected: ChecksumRequest,
    of: Md5Of,
    plan: DigestPlan<'_>,
    failed: impl Fn(BackendError) -> S3Error + Send,
) -> Result<Digests> {
    let mut digests = plan.begin(&mut body, &expected);
    while let Some(piece) = body.next().await? {
        digests.update(&piece).await;
        writer.write(piece).await.map_err(&failed)?;
    }
    let computed = digests.finish().await?;
    let trailers = body.finish(computed.sha256)?;
    if let Some(md5) = expected.content_md5 {
        verify_content_md5(md5, computed.needed_md5()?, of)?;
    }
    let calculated = computed.digests.as_ref().and_then(|digests| digests.checksum);
    if let (Some(value), Some(calculated)) = (expected_value(&expected, &trailers)?, calculated) {
        verify_checksum(&value, &calculated.value)?;
    }
    Ok(computed.digests.unwrap_or_else(Digests::none))
}
