//! The digests of a body that becomes an object or a part.

use std::sync::Arc;

use backend::Capabilities;
use bytes::{Bytes, BytesMut};
use digest_lanes::{Md5, Md5Steps, Sha256Steps};
use s3_types::{ChecksumAlgorithm, Checksums, Digests, ETagSource};
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::join;

use super::digest_service::{DigestService, DigestStream};
use super::request::DecodedBody;
use crate::limits::{DIGEST_INLINE_BYTES_MAX, DIGEST_SMALL_CHUNK_BYTES};

/// The services that digest larger bodies.
pub struct DigestServices {
    md5: Arc<DigestService<Md5Steps>>,
    sha256: Arc<DigestService<Sha256Steps>>,
}

impl DigestServices {
    /// Makes the services for all bodies of a gateway.
    pub fn new() -> Self {
        Self { md5: DigestService::new(), sha256: DigestService::new() }
    }
}

/// The digests that a body gets in addition to those that the client asks to be verified.
#[derive(Clone, Copy)]
pub struct DigestPlan<'a> {
    /// True if the backend keeps digests.
    pub wanted: bool,
    /// The source of the ETag.
    pub etag: ETagSource,
    /// The algorithm of the checksum if the client chose none.
    pub default: ChecksumAlgorithm,
    /// The services that digest larger bodies.
    pub services: &'a DigestServices,
}

impl<'a> DigestPlan<'a> {
    /// Makes the plan for the digests that the backend wants.
    pub fn new(wanted: Capabilities, services: &'a DigestServices) -> Self {
        Self { wanted: wanted.digests, etag: wanted.etag, default: wanted.default_checksum, services }
    }

    /// Begins to digest a body. If neither the backend nor the client wants a digest, only the
    /// SHA-256 that a client signed is needed. For a large body it is computed here, too, since
    /// lanes take less CPU for it than the decoder.
    pub(super) fn begin(self, body: &mut DecodedBody<'_>, expected: &ChecksumRequest) -> BodyDigests {
        let large = body.length() > DIGEST_INLINE_BYTES_MAX;
        let signed = body.sha256();
        let wanted = self.wanted || expected.algorithm.is_some() || expected.content_md5.is_some();
        let algorithm = wanted.then(|| expected.algorithm.unwrap_or(self.default));
        let checksums = algorithm.map(|of| Checksums::new(Some(of), self.etag, large || signed.is_some()));
        let needs_md5 =
            checksums.as_ref().is_some_and(Checksums::needs_md5) || expected.content_md5.is_some();
        let needs_sha256 = large && (body.leave_sha256() || algorithm == Some(ChecksumAlgorithm::Sha256));
        let slow = if large && (needs_md5 || needs_sha256) {
            Md5AndSha256::Elsewhere(Elsewhere {
                md5: needs_md5.then(|| self.services.md5.stream()),
                sha256: needs_sha256.then(|| self.services.sha256.stream()),
                small: BytesMut::new(),
            })
        } else {
            Md5AndSha256::Here(needs_md5.then(Md5::new))
        };
        BodyDigests { slow, signed, checksums }
    }
}

/// The digests of a body that is being received.
pub(super) struct BodyDigests {
    slow: Md5AndSha256,
    /// The SHA-256 that the client signed, if any.
    signed: Option<[u8; 32]>,
    /// The checksums and the MD5 for the backend; `None` if no digest is wanted.
    checksums: Option<Checksums>,
}

/// The digests that [`BodyDigests`] has computed.
pub(super) struct Computed {
    /// The digests to keep; `None` if neither the storage nor the client wants any.
    pub digests: Option<Digests>,
    /// The MD5; `None` if nothing needed it.
    pub md5: Option<[u8; 16]>,
    /// The SHA-256 of the payload; `None` if the decoder computes it.
    pub sha256: Option<[u8; 32]>,
}

/// Makes the error for a digest that is needed and was not computed.
fn lost() -> S3Error {
    S3Error::new(ErrorCode::InternalError)
        .caused_by("the thread that computes digests ended without a result")
}

impl Computed {
    /// Returns the MD5, for a caller that needs it.
    pub fn needed_md5(&self) -> Result<[u8; 16]> {
        self.md5.ok_or_else(lost)
    }
}

/// The code that computes the MD5 and SHA-256 of a body.
enum Md5AndSha256 {
    /// The MD5 is computed here, if it is wanted, and the SHA-256 by the decoder.
    Here(Option<Md5>),
    Elsewhere(Elsewhere),
}

impl BodyDigests {
    pub async fn update(&mut self, piece: &Bytes) {
        match &mut self.slow {
            Md5AndSha256::Here(None) => {}
            Md5AndSha256::Here(Some(md5)) => md5.update(piece),
            Md5AndSha256::Elsewhere(elsewhere) => elsewhere.update(piece).await,
        }
        if let Some(checksums) = &mut self.checksums {
            checksums.update(piece);
        }
    }

    pub async fn finish(self) -> Result<Computed> {
        let (md5, sha256) = match self.slow {
            Md5AndSha256::Here(md5) => (md5.map(Md5::finish), None),
            Md5AndSha256::Elsewhere(elsewhere) => elsewhere.finish().await.ok_or_else(lost)?,
        };
        // What was signed and is not what came is found out by whoever verifies it.
        let sha256_or_signed = sha256.or(self.signed);
        let digests =
            self.checksums.map(|checksums| checksums.finish(md5.unwrap_or_default(), sha256_or_signed));
        Ok(Computed { digests, md5, sha256 })
    }
}

struct Elsewhere {
    md5: Option<DigestStream<Md5Steps>>,
    sha256: Option<DigestStream<Sha256Steps>>,
    /// Small chunks, which are gathered: each may hold a large network buffer, and has a cost of
    /// its own.
    small: BytesMut,
}

impl Elsewhere {
    async fn update(&mut self, piece: &Bytes) {
        let is_small = piece.len() < DIGEST_SMALL_CHUNK_BYTES;
        if is_small {
            self.small.extend_from_slice(piece);
        }
        if !self.small.is_empty() && (!is_small || self.small.len() >= DIGEST_SMALL_CHUNK_BYTES) {
            let small = self.small.split().freeze();
            self.push(small).await;
        }
        if !is_small {
            self.push(piece.clone()).await;
        }
    }

    async fn push(&self, piece: Bytes) {
        if let Some(sha256) = &self.sha256 {
            sha256.push(piece.clone()).await;
        }
        if let Some(md5) = &self.md5 {
            md5.push(piece).await;
        }
    }

    /// Returns the MD5 and the SHA-256 that were computed; `None` if one was lost.
    async fn finish(mut self) -> Option<(Option<[u8; 16]>, Option<[u8; 32]>)> {
        let rest = self.small.split().freeze();
        let md5 = async {
            let Some(md5) = self.md5 else { return Some(None) };
            md5.finish(rest.clone()).await.map(Some)
        };
        let sha256 = async {
            let Some(sha256) = self.sha256 else { return Some(None) };
            sha256.finish(rest.clone()).await.map(Some)
        };
        let (md5, sha256) = join!(md5, sha256);
        Some((md5?, sha256?))
    }
}
