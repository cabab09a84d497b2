//! The decoder of aws-chunked framing.

use aws_lc_rs::digest;
use bytes::Bytes;
use http::HeaderMap;

use super::incomplete::{incomplete, malformed};
use super::input::Input;
use super::line::{LineReader, TooLong};
use super::trailers::{self, TrailerSection, Trailers};
use crate::auth::ChunkSigner;
use crate::auth::encoding::{Hex, array};
use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::{CHUNK_BYTES_MIN, CHUNK_HEADER_BYTES_MAX};

pub(super) const DECODED_LENGTH: &str = "x-amz-decoded-content-length";

/// The part of a body that is read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The header line of a chunk.
    Header,
    /// The rest of a chunk's data: this many bytes.
    Data { remaining: u64 },
    /// The line end after a chunk's data.
    DataEnd,
    /// Trailers, or the empty line in place of them.
    Trailers,
    /// Nothing: the body has ended.
    Done,
}

/// The signer of a body's chunks, and the signature and digest of the chunk that is being read.
struct Signed {
    signer: ChunkSigner,
    signature: Hex,
    sha256: digest::Context,
}

/// The decoder of one body.
pub(super) struct Chunked {
    state: State,
    line: LineReader,
    signed: Option<Signed>,
    trailers: Option<TrailerSection>,
    decoded_length: u64,
    provided: u64,
    chunk_number: u64,
    /// The size of the previous chunk, in bytes.
    last_size: Option<u64>,
}

impl Chunked {
    pub(super) fn new(signer: Option<ChunkSigner>, trailer: bool, headers: &HeaderMap) -> Result<Self> {
        let decoded_length = decoded_length(headers)?;
        let trailers = if trailer {
            Some(TrailerSection::new(headers, signer.is_some())?)
        } else {
            trailers::refuse_declared(headers)?;
            None
        };
        let sha256 = || digest::Context::new(&digest::SHA256);
        Ok(Self {
            state: State::Header,
            line: LineReader::default(),
            signed: signer.map(|signer| Signed { signer, signature: [0; 64], sha256: sha256() }),
            trailers,
            decoded_length,
            provided: 0,
            chunk_number: 0,
            last_size: None,
        })
    }

    pub(super) fn decoded_length(&self) -> u64 {
        self.decoded_length
    }

    pub(super) fn next_chunk(&mut self, input: &mut Input) -> Result<Option<Bytes>> {
        loop {
            match self.state {
                State::Header => match self.line.next(input, CHUNK_HEADER_BYTES_MAX) {
                    Ok(Some(line)) => self.begin_chunk(&line)?,
                    Ok(None) => return Ok(None),
                    Err(TooLong) => return Err(malformed()),
                },
                State::Data { remaining } => {
                    let piece = input.take(remaining);
                    if piece.is_empty() {
                        return Ok(None);
                    }
                    self.take_data(&piece, remaining)?;
                    return Ok(Some(piece));
                }
                State::DataEnd => match self.line.next(input, 2) {
                    Ok(Some(line)) if *line == *b"\r\n" => self.state = State::Header,
                    Ok(None) => return Ok(None),
                    Ok(Some(_)) | Err(TooLong) => return Err(malformed()),
                },
                State::Trailers => {
                    let room = self.trailers.as_ref().map_or(2, TrailerSection::room);
                    match self.line.next(input, room) {
                        Ok(Some(line)) => self.take_trailer(&line)?,
                        Ok(None) => return Ok(None),
                        Err(TooLong) if self.trailers.is_some() => return Err(trailers::malformed()),
                        Err(TooLong) => return Err(malformed()),
                    }
                }
                State::Done if input.peek().is_empty() => return Ok(None),
                State::Done => return Err(malformed()),
            }
        }
    }

    /// Reads `400;chunk-signature=…␍␊`. Other extensions have no meaning here.
    fn begin_chunk(&mut self, line: &[u8]) -> Result<()> {
        let line =
            line.strip_suffix(b"\r\n").and_then(|line| str::from_utf8(line).ok()).ok_or_else(malformed)?;
        let (size, extensions) = line.split_once(';').unwrap_or((line, ""));
        let size = parse_size(size.trim()).ok_or_else(malformed)?;
        self.chunk_number += 1;
        if let Some(signed) = &mut self.signed {
            let mut extensions = extensions.split(';').map(str::trim);
            let signature = extensions.find_map(|extension| extension.strip_prefix("chunk-signature="));
            signed.signature = signature.and_then(|s| s.as_bytes().try_into().ok()).ok_or_else(malformed)?;
        }
        if let Some(bad) = self.last_size.filter(|last| *last < CHUNK_BYTES_MIN && size > 0) {
            return Err(S3Error::new(ErrorCode::InvalidChunkSizeError)
                .detail("Chunk", self.chunk_number.to_string())
                .detail("BadChunkSize", bad.to_string()));
        }
        self.last_size = Some(size);
        let sent = self.provided.saturating_add(size);
        if sent > self.decoded_length {
            return Err(malformed());
        }
        if size == 0 && sent < self.decoded_length {
            return Err(incomplete(self.decoded_length, sent));
        }
        if size > 0 {
            self.state = State::Data { remaining: size };
            return Ok(());
        }
        self.end_chunk()?;
        self.state = State::Trailers;
        Ok(())
    }

    fn take_data(&mut self, piece: &[u8], remaining: u64) -> Result<()> {
        let length = piece.len() as u64;
        self.provided += length;
        if let Some(signed) = &mut self.signed {
            signed.sha256.update(piece);
        }
        if length < remaining {
            self.state = State::Data { remaining: remaining - length };
            return Ok(());
        }
        self.end_chunk()?;
        self.state = State::DataEnd;
        Ok(())
    }

    fn end_chunk(&mut self) -> Result<()> {
        let Some(Signed { signer, signature, sha256 }) = &mut self.signed else { return Ok(()) };
        let data = std::mem::replace(sha256, digest::Context::new(&digest::SHA256));
        signer.verify_chunk(&array(&data.finish()), signature.as_slice())
    }

    fn take_trailer(&mut self, line: &[u8]) -> Result<()> {
        let last = match &mut self.trailers {
            Some(trailers) => trailers.line(line)?,
            None if line == b"\r\n" => true,
            None => return Err(malformed()),
        };
        if last {
            self.state = State::Done;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Trailers> {
        if self.state != State::Done {
            return Err(malformed());
        }
        let Some(trailers) = self.trailers else { return Ok(Trailers::default()) };
        if let (Some(signed), Some((canonical, signature))) = (&mut self.signed, trailers.signed_form()?) {
            signed.signer.verify_trailers(canonical.as_bytes(), signature.as_bytes())?;
        }
        trailers.finish()
    }
}

/// Reads `x-amz-decoded-content-length`, in bytes: `MissingContentLength` if it is missing or not a
/// number, `InvalidArgument` if it is negative.
pub(super) fn decoded_length(headers: &HeaderMap) -> Result<u64> {
    let text = headers.get(DECODED_LENGTH).and_then(|value| value.to_str().ok()).map(str::trim);
    let length = text.and_then(|text| text.parse::<i64>().ok()).ok_or(ErrorCode::MissingContentLength)?;
    u64::try_from(length).map_err(|_| {
        S3Error::invalid_argument(DECODED_LENGTH, length.to_string(), ErrorCode::InvalidArgument.message())
    })
}

/// Reads hex digits without a sign; `None` also for a number that does not fit 64 bits.
fn parse_size(text: &str) -> Option<u64> {
    let is_hex = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}
