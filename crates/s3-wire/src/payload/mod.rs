//! The body of a request as it arrives on the connection, and the payload in it.
//!
//! A body is plain, or it is `aws-chunked`:
//! `size;chunk-signature=…␍␊data␍␊ … 0;chunk-signature=…␍␊trailers␍␊`. [`BodyDecoder`] returns the
//! payload in slices of its input, and verifies hash, length, chunk signatures and trailers.
//! Besides input that it has not decoded, it keeps at most one unfinished line.

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
/// Give it the bytes that arrive with [`push`](Self::push), and each time take out the payload with
/// [`next_chunk`](Self::next_chunk) until that returns `None`. At the end of the body, call
/// [`finish`](Self::finish). The payload must not be trusted until that has succeeded.
pub struct BodyDecoder {
    input: Input,
    framing: Framing,
}

enum Framing {
    Plain(Plain),
    Chunked(Box<Chunked>),
}

impl BodyDecoder {
    /// Starts a body. `content_length` is the body's length in bytes: `Some(0)` for a request
    /// without a body, `None` if HTTP does not give it.
    ///
    /// The length of the payload must be given: by HTTP for a plain body, by
    /// `x-amz-decoded-content-length` for a chunked one. If it is not, the error is
    /// `MissingContentLength` (411), or `NotImplemented` for a plain body with `Transfer-Encoding`.
    /// If both lengths are given for a plain body and differ, it is `IncompleteBody`. A plain body
    /// with `Content-Encoding: aws-chunked` that is not signed is `InvalidArgument`, as in S3: the
    /// framing would be stored.
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

    /// Returns the payload's length in bytes, as the client gave it.
    pub fn decoded_length(&self) -> u64 {
        match &self.framing {
            Framing::Plain(plain) => plain.length,
            Framing::Chunked(chunked) => chunked.decoded_length(),
        }
    }

    /// Returns the SHA-256 of the payload, if the client signed it. It is verified when
    /// [`finish`](Self::finish) succeeds.
    pub fn sha256(&self) -> Option<[u8; 32]> {
        match &self.framing {
            Framing::Plain(plain) => plain.sha256.as_ref().map(|signed| signed.expected),
            Framing::Chunked(_) => None,
        }
    }

    /// Leaves the SHA-256 that the client signed to the caller, who computes it from the payload
    /// and gives it to [`finish`](Self::finish). Returns false if the client signed none, or the
    /// body has begun.
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

    /// Returns the next piece of payload, never empty; `None` if more input is needed.
    ///
    /// Fails as soon as there is an error; a wrong signature of a chunk is found with the chunk's
    /// last byte. The decoder must not be used after an error.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        match &mut self.framing {
            Framing::Plain(plain) => plain.next_chunk(&mut self.input),
            Framing::Chunked(chunked) => chunked.next_chunk(&mut self.input),
        }
    }

    /// Ends the body: verifies that it is complete and correct, and returns its trailers. `sha256`
    /// is the SHA-256 of the payload, if it was [left](Self::leave_sha256) to the caller.
    pub fn finish(mut self, sha256: Option<[u8; 32]>) -> Result<Trailers> {
        // The rest of the input is framing, or payload that the caller has not read.
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
    // The sentence is S3's.
    let message =
        "aws-chunked encoding is not supported when x-amz-content-sha256 UNSIGNED-PAYLOAD is supplied";
    S3Error::argument_named("Content-Encoding", message)
}

/// A body without framing, all of which is payload.
struct Plain {
    length: u64,
    provided: u64,
    sha256: Option<Signed>,
}

/// The SHA-256 that a client signed, and the digest to compare it with.
struct Signed {
    expected: [u8; 32],
    /// The digest so far; `None` if the caller computes it.
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
            // S3 accepts HTTP's own chunked coding only around aws-chunked.
            None if headers.contains_key(TRANSFER_ENCODING) => {
                return Err(S3Error::header_not_implemented("Transfer-Encoding"));
            }
            None => return Err(ErrorCode::MissingContentLength.into()),
        };
        // This body is stored as it arrives. A different length of the payload shows that there is
        // framing, which would be stored with it.
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
