//! Writes aws-chunked bodies, as a client does.

use super::trailers::canonical;
use crate::auth::ChunkSigner;
use crate::auth::encoding::{hex_str, sha256};

/// Frames a payload, for tests and clients; the counterpart of [`BodyDecoder`](super::BodyDecoder).
#[derive(Debug)]
pub struct ChunkEncoder {
    signer: Option<ChunkSigner>,
}

impl ChunkEncoder {
    /// Starts a body. With a signer, each chunk and the trailers are signed.
    pub fn new(signer: Option<ChunkSigner>) -> Self {
        Self { signer }
    }

    /// Appends a chunk. `data` must not be empty: an empty chunk would end the body.
    pub fn chunk(&mut self, data: &[u8], out: &mut Vec<u8>) {
        self.header(data, out);
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }

    /// Ends the body. `trailers` is `None` for a body whose mode has none.
    pub fn finish(mut self, trailers: Option<&[(&str, &str)]>, out: &mut Vec<u8>) {
        self.header(b"", out);
        if let Some(trailers) = trailers {
            for (name, value) in trailers {
                line(name, value, out);
            }
            if let Some(signer) = &mut self.signer {
                let signature = signer.sign_trailers(canonical(trailers.iter().copied()).as_bytes());
                line("x-amz-trailer-signature", hex_str(&signature), out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    fn header(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{:x}", data.len()).as_bytes());
        if let Some(signer) = &mut self.signer {
            out.extend_from_slice(b";chunk-signature=");
            out.extend_from_slice(&signer.sign_chunk(&sha256(data)));
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn line(name: &str, value: &str, out: &mut Vec<u8>) {
    for piece in [name, ":", value, "\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}
