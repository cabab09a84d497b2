//! Bodies that become objects and parts.

use backend::{Backend, BackendError, ObjectWriter};
use s3_types::{ChecksumAlgorithm, Digester, Digests, ETag};
use s3_wire::headers::{ChecksumRequest, verify_checksum, verify_content_md5};
use s3_wire::{Result, S3Error};

use super::{DecodedBody, expected_value};

/// Which digests a body gets besides those that the client asks to be verified.
#[derive(Debug, Clone, Copy)]
pub struct DigestPlan {
    /// Whether the backend keeps any.
    pub wanted: bool,
    /// The checksum where the client chose none.
    pub default: ChecksumAlgorithm,
}

impl DigestPlan {
    /// What `backend` wants.
    pub fn of(backend: &dyn Backend) -> Self {
        let capabilities = backend.capabilities();
        Self { wanted: capabilities.digests, default: capabilities.default_checksum }
    }
}

/// Moves a body into a writer, and verifies all that was said about it. The bytes are not visible before the commit.
pub async fn receive(
    mut body: DecodedBody<'_>,
    writer: &mut dyn ObjectWriter,
    expected: ChecksumRequest,
    plan: DigestPlan,
    failed: impl Fn(BackendError) -> S3Error + Send,
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
