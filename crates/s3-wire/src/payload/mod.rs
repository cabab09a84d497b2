//! The body of a request as it is on the connection, and the payload inside.
//!
//! A body is plain, or it is `aws-chunked`: `size;chunk-signature=…␍␊data␍␊ …
//! 0;chunk-signature=…␍␊trailers␍␊`. [`BodyDecoder`] hands the payload out in slices of what came
//! in and verifies hash, length, chunk signatures and trailers on the way. It keeps no more than
//! one unfinished line.

mod chunked;
mod encode;
mod incomplete;
mod input;
mod line;
mod trailers;

#[cfg(test)]
mod tests;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;
use bytes::Bytes;
use http::HeaderMap;
use http::header::TRANSFER_ENCODING;

pub use encode::ChunkEncoder;
pub use trailers::Trailers;

use crate::auth::PayloadMode;
use crate::auth::encoding::{array, hex, hex_str};
use crate::error::{ErrorCode, Result, S3Error};
use crate::headers::{has, names_framing};
use chunked::Chunked;
use incomplete::incomplete;
use input::Input;

/// Takes the framing off a body.
///
/// Give it what arrives with [`push`](Self::push), take out what [`next_chunk`](Self::next_chunk)
/// has until it has no more, and so on to the end of the body, then call [`finish`](Self::finish).
/// What it handed out is only to be trusted when that has succeeded.
pub struct BodyDecoder {
    input: Input,
    framing: Framing,
}

enum Framing {
    Plain(Plain),
    Chunked(Box<Chunked>),
}

impl BodyDecoder {
    /// Starts a body. `content_length` is what HTTP says; a request that says nothing has no body
    /// (`Some(0)`).
    ///
    /// `MissingContentLength` (411) where the payload's length is not given: by `Content-Length`
    /// for a plain body, by `x-amz-decoded-content-length` for a chunked one. `IncompleteBody`
    /// where both are given for a plain body, and differ. `InvalidArgument` for `Content-Encoding:
    /// aws-chunked` of a plain body that is not under the signature, as S3 has it: a framing would
    /// be stored.
    pub fn new(mode: PayloadMode, headers: &HeaderMap, content_length: Option<u64>) -> Result<Self> {
        let framing = match mode {
            PayloadMode::Unsigned if names_framing(headers) => return Err(framed_unsigned()),
            PayloadMode::Unsigned => Framing::Plain(Plain::new(None, headers, content_length)?),
            PayloadMode::Sha256(hash) => Framing::Plain(Plain::new(Some(hash), headers, content_length)?),
            PayloadMode::Streaming { signer, trailer } => {
                Framing::Chunked(Box::new(Chunked::new(signer, trailer, headers)?))
            }
        };
        Ok(Self { input: Input::default(), framing })
    }

    /// The payload's length in bytes, as the client gave it.
    pub fn decoded_length(&self) -> u64 {
        match &self.framing {
            Framing::Plain(plain) => plain.length,
            Framing::Chunked(chunked) => chunked.decoded_length(),
        }
    }

    /// The SHA-256 of the payload, where the client signed it: good if [`finish`](Self::finish)
    /// succeeds.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match &self.framing {
            Framing::Plain(plain) => plain.sha256.as_ref().map(|signed| signed.expected),
            Framing::Chunked(_) => None,
        }
    }

    /// Leaves the SHA-256 that the client signed to the caller, who computes it of what is handed
    /// out and gives it to [`finish`](Self::finish). False if the client signed none, or the body
    /// has begun.
    pub fn leave_sha256(&mut self) -> bool {
        match &mut self.framing {
            Framing::Plain(plain) => plain.leave_sha256(),
            Framing::Chunked(_) => false,
        }
    }

    /// Adds bytes from the connection.
    pub fn push(&mut self, input: Bytes) {
        self.input.push(input);
    }

    /// The next piece of payload, never empty; `None` if more input is needed.
    ///
    /// Fails as soon as something is wrong: a chunk's signature when its last byte has come. After
    /// an error the decoder is of no more use.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        match &mut self.framing {
            Framing::Plain(plain) => plain.next_chunk(&mut self.input),
            Framing::Chunked(chunked) => chunked.next_chunk(&mut self.input),
        }
    }

    /// Ends the body: verifies that it is whole and right, and returns its trailers. `sha256` is
    /// that of the payload, where it was [left](Self::leave_sha256) to the caller.
    pub fn finish(mut self, sha256: Option<[u8; 32]>) -> Result<Trailers> {
        // What is left is framing, or more than the caller wanted to know.
        if let Some(piece) = self.next_chunk()? {
            return Err(S3Error::new(ErrorCode::InternalError).caused_by(format!(
                "{} bytes of the request's payload were decoded but not read",
                piece.len()
            )));
        }
        match self.framing {
            Framing::Plain(plain) => plain.finish(sha256),
            Framing::Chunked(chunked) => chunked.finish(),
        }
    }
}

fn framed_unsigned() -> S3Error {
    // S3's sentence.
    let message =
        "aws-chunked encoding is not supported when x-amz-content-sha256 UNSIGNED-PAYLOAD is supplied";
    S3Error::argument_named("Content-Encoding", message)
}

/// A body that is its own payload.
struct Plain {
    length: u64,
    provided: u64,
    sha256: Option<Signed>,
}

/// The SHA-256 that a client signed.
struct Signed {
    expected: [u8; 32],
    /// None if the caller computes it.
    here: Option<digest::Context>,
}

impl Plain {
    fn new(
        expected_sha256: Option<[u8; 32]>,
        headers: &HeaderMap,
        content_length: Option<u64>,
    ) -> Result<Self> {
        let length = match content_length {
            Some(length) => length,
            // S3 takes HTTP's own chunks only around aws-chunked.
            None if headers.contains_key(TRANSFER_ENCODING) => {
                return Err(S3Error::header_not_implemented("Transfer-Encoding"));
            }
            None => return Err(ErrorCode::MissingContentLength.into()),
        };
        // This body is stored as it comes. A payload of another length is inside a framing, which
        // would be stored with it.
        if has(headers, chunked::DECODED_LENGTH) {
            let decoded = chunked::decoded_length(headers)?;
            if decoded != length {
                return Err(incomplete(decoded, length));
            }
        }
        let sha256 = expected_sha256.map(|expected| {
            let here = Some(digest::Context::new(&digest::SHA256));
            Signed { expected, here }
        });
        Ok(Self { length, provided: 0, sha256 })
    }

    fn leave_sha256(&mut self) -> bool {
        let signed = self.sha256.as_mut().filter(|_| self.provided == 0);
        signed.is_some_and(|signed| signed.here.take().is_some())
    }

    fn next_chunk(&mut self, input: &mut Input) -> Result<Option<Bytes>> {
        let piece = input.take(u64::MAX);
        if piece.is_empty() {
            return Ok(None);
        }
        self.provided += piece.len() as u64;
        if self.provided > self.length {
            return Err(incomplete(self.length, self.provided));
        }
        if let Some(Signed { here: Some(context), .. }) = &mut self.sha256 {
            context.update(&piece);
        }
        Ok(Some(piece))
    }

    fn finish(self, sha256: Option<[u8; 32]>) -> Result<Trailers> {
        if self.provided != self.length {
            return Err(incomplete(self.length, self.provided));
        }
        let Some(Signed { expected, here }) = self.sha256 else { return Ok(Trailers::default()) };
        let calculated = match here {
            Some(context) => array(&context.finish()),
            None => sha256.ok_or_else(|| {
                S3Error::new(ErrorCode::InternalError)
                    .caused_by("the SHA-256 of the request's body was not computed")
            })?,
        };
        if verify_slices_are_equal(&calculated, &expected).is_err() {
            return Err(S3Error::new(ErrorCode::XAmzContentSHA256Mismatch)
                .detail("ClientComputedContentSHA256", hex_str(&hex(&expected)))
                .detail("S3ComputedContentSHA256", hex_str(&hex(&calculated))));
        }
        Ok(Trailers::default())
    }
}
