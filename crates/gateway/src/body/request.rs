//! The body of a request: raw, and decoded.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use s3_wire::auth::PayloadMode;
use s3_wire::payload::{BodyDecoder, Trailers};
use s3_wire::{ErrorCode, Result, S3Error};

use crate::limits::{BODY_BYTES_PER_SECOND_MIN, BODY_GRACE, DRAIN_BYTES_MAX, DRAIN_TIME_MAX};

/// A request's body as it comes from the connection.
pub struct RequestBody {
    incoming: Incoming,
    /// The value of `Content-Length`; `None` for chunked transfer.
    content_length: Option<u64>,
    awaits_continue: bool,
    ended: bool,
    stall_timeout: Duration,
    pace: Option<Pace>,
}

/// The progress of a body so far, for the check of its speed.
struct Pace {
    since: Instant,
    bytes: u64,
}

impl RequestBody {
    /// Makes the body of `incoming`. Nothing is read, and no `100 Continue` is sent, before the
    /// first piece is asked for.
    pub fn new(incoming: Incoming, headers: &HeaderMap, stall_timeout: Duration) -> Self {
        let awaits_continue = headers
            .get(http::header::EXPECT)
            .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        let content_length = incoming.size_hint().exact();
        let ended = incoming.is_end_stream();
        Self { incoming, content_length, awaits_continue, ended, stall_timeout, pace: None }
    }

    /// Returns the number of bytes read so far, including framing.
    pub fn bytes_read(&self) -> u64 {
        self.pace.as_ref().map_or(0, |pace| pace.bytes)
    }

    /// Returns the next piece as it was sent; `None` at the end.
    pub async fn next_raw(&mut self) -> Result<Option<Bytes>> {
        loop {
            if self.ended {
                return Ok(None);
            }
            self.awaits_continue = false;
            let frame = tokio::time::timeout(self.stall_timeout, self.incoming.frame()).await;
            match frame {
                Err(_) => return Err(S3Error::new(ErrorCode::RequestTimeout)),
                Ok(None) => self.ended = true,
                Ok(Some(Err(error))) => {
                    self.ended = true;
                    return Err(S3Error::new(ErrorCode::IncompleteBody).caused_by(error));
                }
                // HTTP/1.1 trailers carry nothing that S3 reads.
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.keep_pace(data.len())?;
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    fn keep_pace(&mut self, bytes: usize) -> Result<()> {
        let pace = self.pace.get_or_insert_with(|| Pace { since: Instant::now(), bytes: 0 });
        pace.bytes += bytes as u64;
        let paid = BODY_GRACE + Duration::from_secs(pace.bytes / BODY_BYTES_PER_SECOND_MIN);
        if pace.since.elapsed() > paid {
            return Err(S3Error::new(ErrorCode::RequestTimeout));
        }
        Ok(())
    }

    /// Reads and drops the rest of a body that is not wanted, until `stopped` completes. Returns
    /// true if the connection can continue.
    pub async fn drain(&mut self, stopped: impl Future<Output = ()>) -> bool {
        if self.awaits_continue {
            // The client has been told nothing yet and sends nothing. One that sends its body
            // anyway would confuse the next request; and of an empty body, for which hyper sends no
            // `100 Continue`, botocore mistakes the next response of the connection for another one
            // to this request.
            return false;
        }
        if self.ended {
            return true;
        }
        let draining = async {
            let mut left = DRAIN_BYTES_MAX;
            while let Ok(Some(piece)) = self.next_raw().await {
                left = left.checked_sub(piece.len())?;
            }
            Some(())
        };
        // The outcome is what `ended` says.
        tokio::select! {
            _ = tokio::time::timeout(DRAIN_TIME_MAX, draining) => {}
            () = stopped => {}
        }
        self.ended
    }

    /// Returns the decoded payload of the body, which [`DecodedBody::finish`] verifies.
    pub fn decode(&mut self, mode: PayloadMode, headers: &HeaderMap) -> Result<DecodedBody<'_>> {
        let decoder = BodyDecoder::new(mode, headers, self.content_length)?;
        Ok(DecodedBody { body: self, decoder, raw_bytes: 0 })
    }
}

/// The payload of a body, without its framing.
pub struct DecodedBody<'a> {
    body: &'a mut RequestBody,
    decoder: BodyDecoder,
    /// The number of bytes of the last piece from the connection.
    raw_bytes: usize,
}

impl DecodedBody<'_> {
    /// Returns the payload's length in bytes, as the client gave it.
    pub fn length(&self) -> u64 {
        self.decoder.decoded_length()
    }

    /// Returns the SHA-256 of the payload that the client signed, if any. It is not verified before
    /// [`DecodedBody::finish`].
    pub fn sha256(&self) -> Option<[u8; 32]> {
        self.decoder.sha256()
    }

    /// Returns the next piece; `None` at the end. Pieces are verified only by
    /// [`DecodedBody::finish`].
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(piece) = self.decoder.next_chunk()? {
                // A piece holds all that came with it, which may be framing without end.
                let is_little = piece.len() < self.raw_bytes / 2;
                return Ok(Some(if is_little { Bytes::copy_from_slice(&piece) } else { piece }));
            }
            match self.body.next_raw().await? {
                Some(raw) => {
                    self.raw_bytes = raw.len();
                    self.decoder.push(raw);
                }
                None => return Ok(None),
            }
        }
    }

    /// Leaves it to the caller to compute the SHA-256 that the client signed, and to pass it to
    /// [`DecodedBody::finish`]. Returns false if the client signed none.
    pub fn leave_sha256(&mut self) -> bool {
        self.decoder.leave_sha256()
    }

    /// Verifies the signature, the hash and the length, and returns the trailers. `sha256` is the
    /// SHA-256 of the payload, if the caller computes it ([`Self::leave_sha256`]).
    pub fn finish(self, sha256: Option<[u8; 32]>) -> Result<Trailers> {
        self.decoder.finish(sha256)
    }
}
