//! Request bodies that are XML documents: small, read whole.

use std::ops::Deref;
use std::sync::Arc;

use http::HeaderMap;
use s3_types::{ChecksumAlgorithm, Checksummer};
use s3_wire::headers::{ChecksumRequest, verify_checksum, verify_content_md5};
use s3_wire::payload::PayloadMode;
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::RequestBody;
use super::checksum::expected_value;
use crate::limits::{DOCUMENT_BYTES_MAX, SMALL_DOCUMENT_BYTES_MAX};

/// A document, whole.
pub struct Document {
    bytes: Vec<u8>,
    /// Large ones take turns.
    _turn: Option<OwnedSemaphorePermit>,
}

impl Deref for Document {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Document {
    /// Reads a document of at most `bytes_max`, and verifies its signature and the digests that `expected` says it has. One
    /// above [`SMALL_DOCUMENT_BYTES_MAX`] first waits for a place in `large`.
    pub async fn read(
        body: &mut RequestBody,
        mode: PayloadMode,
        headers: &HeaderMap,
        expected: ChecksumRequest,
        bytes_max: usize,
        large: &Arc<Semaphore>,
    ) -> Result<Self> {
        let too_large = || S3Error::new(ErrorCode::MaxMessageLengthExceeded);
        let mut decoded = body.decode(mode, headers)?;
        let length = usize::try_from(decoded.length()).map_err(|_| too_large())?;
        if length > bytes_max.min(DOCUMENT_BYTES_MAX) {
            return Err(too_large());
        }
        let turn =
            if length > SMALL_DOCUMENT_BYTES_MAX { large.clone().acquire_owned().await.ok() } else { None };
        let mut bytes = Vec::with_capacity(length);
        while let Some(piece) = decoded.next().await? {
            // The decoder sees to it that there are no more than it said.
            bytes.extend_from_slice(&piece);
        }
        let trailers = decoded.finish()?;
        if let Some(md5) = expected.content_md5 {
            let calculated = Checksummer::of(ChecksumAlgorithm::Md5, &bytes);
            verify_content_md5(md5, calculated.as_bytes().try_into().unwrap_or_default())?;
        }
        if let Some(value) = expected_value(&expected, &trailers)? {
            verify_checksum(&value, &Checksummer::of(value.algorithm(), &bytes))?;
        }
        Ok(Self { bytes, _turn: turn })
    }
}
