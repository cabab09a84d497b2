//! Request bodies that are XML documents.

use std::io::{self, BufRead, Read};

use bytes::{Buf as _, Bytes, BytesMut};
use s3_types::{ChecksumAlgorithm, Checksummer};
use s3_wire::headers::{ChecksumRequest, Md5Of, verify_checksum, verify_content_md5};
use s3_wire::payload::Trailers;
use s3_wire::{ErrorCode, Result, S3Error};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::checksum::expected_value;
use super::request::DecodedBody;
use crate::limits::{DOCUMENT_HOP_BYTES, LARGE_DOCUMENT_TIME, LARGE_DOCUMENT_WAIT, SMALL_DOCUMENT_BYTES_MAX};

/// A parser of a document of this type.
pub type Parse<T> = fn(&mut dyn BufRead) -> Result<T>;

/// Reads a document of at most `bytes_max`, verifies its signature and the digests in `expected`,
/// and returns what `parse` makes of it.
///
/// A small document is read whole, and then parsed. A larger one waits for a permit of `large`, and
/// is parsed while it arrives, on a thread of its own; nothing is returned before everything has
/// been verified.
pub async fn read_document<T: Send + 'static>(
    mut body: DecodedBody<'_>,
    expected: ChecksumRequest,
    bytes_max: usize,
    large: &Semaphore,
    parse: Parse<T>,
) -> Result<T> {
    let too_large = || S3Error::new(ErrorCode::MaxMessageLengthExceeded);
    let length = usize::try_from(body.length()).map_err(|_| too_large())?;
    if length > bytes_max {
        return Err(too_large());
    }
    if length <= SMALL_DOCUMENT_BYTES_MAX {
        let mut verifier = Verifier::new(&expected);
        let mut bytes = Vec::with_capacity(length);
        // The decoder sees to it that there are no more than it said.
        while let Some(piece) = verifier.next(&mut body).await? {
            bytes.extend_from_slice(&piece);
        }
        verifier.verify(&expected, &body.finish(None)?)?;
        return parse(&mut bytes.as_slice());
    }
    // A slow client holds a thread, and not for long.
    let place = timeout(LARGE_DOCUMENT_WAIT, large.acquire()).await;
    let _place = place.map_err(|_| S3Error::new(ErrorCode::SlowDown))?;
    let parsed = timeout(LARGE_DOCUMENT_TIME, parse_while_it_comes(body, expected, parse)).await;
    parsed.unwrap_or_else(|_| Err(ErrorCode::RequestTimeout.into()))
}

async fn parse_while_it_comes<T: Send + 'static>(
    mut body: DecodedBody<'_>,
    expected: ChecksumRequest,
    parse: Parse<T>,
) -> Result<T> {
    let mut verifier = Verifier::new(&expected);
    let (pieces, source) = mpsc::channel(1);
    let parsing = spawn_blocking(move || parse(&mut Incoming { source, piece: Bytes::new() }));
    let mut gathered = BytesMut::new();
    loop {
        let piece = verifier.next(&mut body).await?;
        gathered.extend_from_slice(piece.as_deref().unwrap_or_default());
        // To wake the thread costs more than to parse a small piece.
        if gathered.len() >= DOCUMENT_HOP_BYTES || (piece.is_none() && !gathered.is_empty()) {
            // Where the parser has given up, its error waits until the rest has been verified.
            let _ = pieces.send(gathered.split().freeze()).await;
        }
        if piece.is_none() {
            break;
        }
    }
    verifier.verify(&expected, &body.finish(None)?)?;
    drop(pieces);
    parsing.await.unwrap_or_else(|panicked| Err(S3Error::new(ErrorCode::InternalError).caused_by(panicked)))
}

/// Computes the digests of a document while it arrives.
struct Verifier {
    md5: Option<Checksummer>,
    checksum: Option<Checksummer>,
}

impl Verifier {
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
            let calculated = calculated.finish().as_bytes().try_into().unwrap_or_default();
            verify_content_md5(md5, calculated, Md5Of::Other)?;
        }
        if let (Some(value), Some(calculated)) = (expected_value(expected, trailers)?, self.checksum) {
            verify_checksum(&value, &calculated.finish())?;
        }
        Ok(())
    }
}

/// A reader of an arriving document, for a thread that may block. It ends when its sender is
/// dropped.
struct Incoming {
    source: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl BufRead for Incoming {
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

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
