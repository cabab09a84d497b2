//! Bodies that become objects and parts.

use std::sync::Arc;

use backend::{BackendError, ObjectWriter};
use bytes::Bytes;
use digest_lanes::Md5;
use s3_types::{ChecksumAlgorithm, Checksums, Digests, ETag, ETagSource};
use s3_wire::headers::{ChecksumRequest, verify_checksum, verify_content_md5};
use s3_wire::{ErrorCode, Result, S3Error};

use super::md5::{Md5Service, Md5Stream};
use super::{DecodedBody, expected_value};
use crate::gateway::Gateway;
use crate::limits::MD5_INLINE_BYTES_MAX;

/// Which digests a body gets besides those that the client asks to be verified.
#[derive(Clone, Copy)]
pub struct DigestPlan<'a> {
    /// Whether the backend keeps any.
    pub wanted: bool,
    /// What the ETag is made of.
    pub etag: ETagSource,
    /// The checksum where the client chose none.
    pub default: ChecksumAlgorithm,
    /// Who computes the MD5 of those that are not small.
    pub md5: &'a Arc<Md5Service>,
}

impl<'a> DigestPlan<'a> {
    /// What the backend wants.
    pub fn of(gateway: &'a Gateway) -> Self {
        let capabilities = gateway.backend.capabilities();
        Self {
            wanted: capabilities.digests,
            etag: capabilities.etag,
            default: capabilities.default_checksum,
            md5: &gateway.md5,
        }
    }

    /// Begins to digest a body.
    fn begin(self, body: &DecodedBody<'_>, expected: &ChecksumRequest) -> BodyDigests {
        let algorithm = expected.algorithm.unwrap_or(self.default);
        let checksums = Checksums::new(Some(algorithm), self.etag, body.sha256());
        let md5 = if !checksums.needs_md5() && expected.content_md5.is_none() {
            BodyMd5::None
        } else if body.length() <= MD5_INLINE_BYTES_MAX {
            BodyMd5::Here(Md5::new())
        } else {
            BodyMd5::Elsewhere(self.md5.stream())
        };
        BodyDigests { md5, checksums }
    }
}

/// The digests of a body that is being received.
struct BodyDigests {
    md5: BodyMd5,
    checksums: Checksums,
}

enum BodyMd5 {
    None,
    Here(Md5),
    Elsewhere(Md5Stream),
}

impl BodyDigests {
    async fn update(&mut self, piece: &Bytes) {
        match &mut self.md5 {
            BodyMd5::None => {}
            BodyMd5::Here(md5) => md5.update(piece),
            BodyMd5::Elsewhere(stream) => stream.update(piece.clone()).await,
        }
        self.checksums.update(piece);
    }

    /// All of them, and the MD5, which means nothing if it was not needed.
    async fn finish(self) -> Result<(Digests, [u8; 16])> {
        let lost = || S3Error::new(ErrorCode::InternalError).caused_by("an MD5 was lost");
        let md5 = match self.md5 {
            BodyMd5::None => [0; 16],
            BodyMd5::Here(md5) => md5.finish(),
            BodyMd5::Elsewhere(stream) => stream.finish().await.ok_or_else(lost)?,
        };
        Ok((self.checksums.finish(md5), md5))
    }
}

/// Moves a body into a writer, and verifies all that was said about it. The bytes are not visible before the commit.
pub async fn receive(
    mut body: DecodedBody<'_>,
    writer: &mut dyn ObjectWriter,
    expected: ChecksumRequest,
    plan: DigestPlan<'_>,
    failed: impl Fn(BackendError) -> S3Error + Send,
) -> Result<Digests> {
    let asked = expected.algorithm.is_some() || expected.content_md5.is_some();
    let mut digests = (plan.wanted || asked).then(|| plan.begin(&body, &expected));
    while let Some(piece) = body.next().await? {
        if let Some(digests) = &mut digests {
            digests.update(&piece).await;
        }
        writer.write(piece).await.map_err(&failed)?;
    }
    let trailers = body.finish()?;
    let Some(digests) = digests else {
        return Ok(Digests { etag: ETag::Md5([0; 16]), checksum: None });
    };
    let (digests, calculated) = digests.finish().await?;
    if let Some(md5) = expected.content_md5 {
        verify_content_md5(md5, calculated)?;
    }
    if let (Some(value), Some(calculated)) = (expected_value(&expected, &trailers)?, &digests.checksum) {
        verify_checksum(&value, &calculated.value)?;
    }
    Ok(digests)
}
