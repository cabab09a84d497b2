//! Request bodies that are XML documents.

use std::io::{self, BufRead, Read};

use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use s3_types::{ChecksumAlgorithm, Checksummer};
use s3_wire::headers::{ChecksumRequest, verify_checksum, verify_content_md5};
use s3_wire::payload::{PayloadMode, Trailers};
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;

use super::checksum::expected_value;
use super::{DecodedBody, RequestBody};
use crate::limits::{DOCUMENT_BYTES_MAX, SMALL_DOCUMENT_BYTES_MAX};

/// How a document is understood.
pub type Parse<T> = fn(&mut dyn BufRead) -> Result<T>;

/// Reads a document of at most `bytes_max`, verifies its signature and the digests that `expected` says it has, and gives
/// what `parse` makes of it.
///
/// A small one is read whole, and then parsed. A larger one waits for a place in `large`, and is parsed while it comes, on a
/// thread of its own; nothing of what was parsed is handed out before all has been verified.
pub async fn read_document<T: Send + 'static>(
    body: &mut RequestBody,
    (mode, headers): (PayloadMode, &HeaderMap),
    expected: ChecksumRequest,
    bytes_max: usize,
    large: &Semaphore,
    parse: Parse<T>,
) -> Result<T> {
    let too_large = || S3Error::new(ErrorCode::MaxMessageLengthExceeded);
    let mut decoded = body.decode(mode, headers)?;
    let length = usize::try_from(decoded.length()).map_err(|_| too_large())?;
    if length > bytes_max.min(DOCUMENT_BYTES_MAX) {
        return Err(too_large());
    }
    let mut digests = Digests::new(&expected);
    if length <= SMALL_DOCUMENT_BYTES_MAX {
        let mut bytes = Vec::with_capacity(length);
        // The decoder sees to it that there are no more than it said.
        while let Some(piece) = digests.next(&mut decoded).await? {
            bytes.extend_from_slice(&piece);
        }
        digests.verify(&expected, &decoded.finish()?)?;
        return parse(&mut bytes.as_slice());
    }
    let _place = large.acquire().await;
    let (pieces, source) = mpsc::channel(1);
    let parsing = spawn_blocking(move || parse(&mut Pieces { source, piece: Bytes::new() }));
    while let Some(piece) = digests.next(&mut decoded).await? {
        // Where the parser has given up, its error waits until the rest has been verified.
        let _ = pieces.send(piece).await;
    }
    digests.verify(&expected, &decoded.finish()?)?;
    drop(pieces);
    parsing.await.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}

/// What is calculated of a document while it comes.
struct Digests {
    md5: Option<Checksummer>,
    checksum: Option<Checksummer>,
}

impl Digests {
    fn new(expected: &ChecksumRequest) -> Self {
        let md5 = expected.content_md5.map(|_| ChecksumAlgorithm::Md5);
        let checksum = expected.trailer.or(expected.value.map(|value| value.algorithm()));
        Self { md5: md5.map(Checksummer::new), checksum: checksum.map(Checksummer::new) }
    }

    async fn next(&mut self, body: &mut DecodedBody<'_>) -> Result<Option<Bytes>> {
        let piece = body.next().await?;
        for digest in [&mut self.md5, &mut self.checksum].into_iter().flatten() {
            digest.update(piece.as_deref().unwrap_or_default());
        }
        Ok(piece)
    }

    fn verify(self, expected: &ChecksumRequest, trailers: &Trailers) -> Result<()> {
        if let (Some(md5), Some(calculated)) = (expected.content_md5, self.md5) {
            verify_content_md5(md5, calculated.finish().as_bytes().try_into().unwrap_or_default())?;
        }
        if let (Some(value), Some(calculated)) = (expected_value(expected, trailers)?, self.checksum) {
            verify_checksum(&value, &calculated.finish())?;
        }
        Ok(())
    }
}

/// A document as it comes, for a thread that may wait for it. Ends where the sender is dropped.
struct Pieces {
    source: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl BufRead for Pieces {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.is_empty() {
            match self.source.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => break,
            }
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, amount: usize) {
        self.piece.advance(amount.min(self.piece.len()));
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
