//! The chain of signatures over the chunks and trailers of an aws-chunked body (S3 API reference,
//! "Signature calculations for the Authorization header: transferring payload in multiple chunks",
//! and "... trailing headers").

use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;

use super::encoding::{Hex, hex, hex_str, sha256};
use super::key::SigningKey;
use super::refusal::mismatch;
use crate::error::Result;
use crate::time::IsoBasic;

const CHUNK: &str = "AWS4-HMAC-SHA256-PAYLOAD";
const TRAILER: &str = "AWS4-HMAC-SHA256-TRAILER";
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The signer of one body's chunks, which makes their signatures or checks them, in order. Each
/// signature covers the one before it; the first covers the request's own.
#[derive(Debug, Clone)]
pub struct ChunkSigner {
    key: Arc<SigningKey>,
    time: IsoBasic,
    previous: Hex,
}

impl ChunkSigner {
    pub(super) fn new(key: Arc<SigningKey>, time: IsoBasic, seed: Hex) -> Self {
        Self { key, time, previous: seed }
    }

    /// Returns the signature, in hex, of the next chunk. `data_sha256` is the SHA-256 of its data.
    pub fn sign_chunk(&mut self, data_sha256: &[u8; 32]) -> [u8; 64] {
        let hash = hex(data_sha256);
        self.previous = self.sign(&self.chunk_to_sign(&hash));
        self.previous
    }

    /// Returns the signature, in hex, of the trailers. `canonical` is their canonical form:
    /// `name:value\n` for each.
    pub fn sign_trailers(&mut self, canonical: &[u8]) -> [u8; 64] {
        let hash = hex(&sha256(canonical));
        self.previous = self.sign(&self.trailers_to_sign(&hash));
        self.previous
    }

    /// Checks a chunk's signature, on which the next chunk's then depends: `SignatureDoesNotMatch`
    /// if it is wrong.
    pub(crate) fn verify_chunk(&mut self, data_sha256: &[u8; 32], signature: &[u8]) -> Result<()> {
        let before = self.previous;
        if verify_slices_are_equal(&self.sign_chunk(data_sha256), signature).is_ok() {
            return Ok(());
        }
        self.previous = before;
        let hash = hex(data_sha256);
        Err(self.mismatch(&self.chunk_to_sign(&hash), signature))
    }

    /// Checks the signature of the trailers: `SignatureDoesNotMatch` if it is wrong.
    pub(crate) fn verify_trailers(&mut self, canonical: &[u8], signature: &[u8]) -> Result<()> {
        let before = self.previous;
        if verify_slices_are_equal(&self.sign_trailers(canonical), signature).is_ok() {
            return Ok(());
        }
        self.previous = before;
        let hash = hex(&sha256(canonical));
        Err(self.mismatch(&self.trailers_to_sign(&hash), signature))
    }

    /// Returns the lines of the string to sign for a chunk. `hash` is the SHA-256 of its data.
    fn chunk_to_sign<'a>(&'a self, hash: &'a Hex) -> [&'a str; 6] {
        let scope = self.key.credential().scope();
        [CHUNK, self.time.as_str(), scope, hex_str(&self.previous), EMPTY_SHA256, hex_str(hash)]
    }

    fn trailers_to_sign<'a>(&'a self, hash: &'a Hex) -> [&'a str; 5] {
        [TRAILER, self.time.as_str(), self.key.credential().scope(), hex_str(&self.previous), hex_str(hash)]
    }

    fn sign<const LINES: usize>(&self, lines: &[&str; LINES]) -> Hex {
        self.key.sign(&[lines.join("\n").as_bytes()])
    }

    fn mismatch<const LINES: usize>(&self, lines: &[&str; LINES], signature: &[u8]) -> crate::error::S3Error {
        let provided = String::from_utf8_lossy(signature);
        mismatch(self.key.credential().access_key(), lines.join("\n").as_bytes(), &provided)
    }
}
