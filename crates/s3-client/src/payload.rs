//! Frames the bodies of requests: in HTTP's chunks, in S3's chunks, or without chunks.

use std::collections::VecDeque;

use bytes::Bytes;
use s3_wire::auth::ChunkSigner;
use s3_wire::payload::ChunkEncoder;

use crate::limits::AWS_CHUNK_BYTES;
use crate::request::Trailer;

/// The number of bytes that a chunk's signature takes in the line before the chunk.
const CHUNK_SIGNATURE_BYTES: u64 = ";chunk-signature=".len() as u64 + 64;
/// The number of bytes that the signature takes in the trailers.
const TRAILER_SIGNATURE_BYTES: u64 = "x-amz-trailer-signature:\r\n".len() as u64 + 64;

/// The framing of a request's body.
#[derive(Debug, Clone)]
pub(crate) enum Framing {
    /// No framing: the head gives the length.
    Plain,
    /// HTTP's chunks (`Transfer-Encoding: chunked`).
    Chunked,
    /// S3's chunks (`aws-chunked`), signed or not.
    Aws { signer: Option<ChunkSigner>, has_trailer: bool },
}

/// The state of framing a body.
#[derive(Debug)]
pub(crate) enum Encoder {
    Plain,
    Chunked,
    /// S3's chunks. `chunk` has the bytes of the chunk that is not full yet.
    Aws {
        encoder: ChunkEncoder,
        chunk: Vec<u8>,
        has_trailer: bool,
    },
}

impl Encoder {
    pub fn new(framing: &Framing) -> Self {
        match framing {
            Framing::Plain => Self::Plain,
            Framing::Chunked => Self::Chunked,
            Framing::Aws { signer, has_trailer } => Self::Aws {
                encoder: ChunkEncoder::new(signer.clone()),
                chunk: Vec::new(),
                has_trailer: *has_trailer,
            },
        }
    }

    /// Frames `data`, and appends the bytes to send to `out`.
    pub fn push(&mut self, data: Bytes, out: &mut VecDeque<Bytes>) {
        if data.is_empty() {
            return;
        }
        match self {
            Self::Plain => out.push_back(data),
            Self::Chunked => {
                out.push_back(format!("{:x}\r\n", data.len()).into());
                out.push_back(data);
                out.push_back(Bytes::from_static(b"\r\n"));
            }
            Self::Aws { encoder, chunk, .. } => {
                let mut rest = &data[..];
                while !rest.is_empty() {
                    let (taken, left) = rest.split_at(rest.len().min(AWS_CHUNK_BYTES - chunk.len()));
                    chunk.extend_from_slice(taken);
                    rest = left;
                    if chunk.len() == AWS_CHUNK_BYTES {
                        push_chunk(encoder, chunk, out);
                    }
                }
            }
        }
    }

    /// Appends the end of the body to `out`.
    pub fn finish(self, trailers: &[(&str, &str)], out: &mut VecDeque<Bytes>) {
        match self {
            Self::Plain => {}
            Self::Chunked => out.push_back(Bytes::from_static(b"0\r\n\r\n")),
            Self::Aws { mut encoder, mut chunk, has_trailer } => {
                if !chunk.is_empty() {
                    push_chunk(&mut encoder, &mut chunk, out);
                }
                let mut end = Vec::new();
                encoder.finish(has_trailer.then_some(trailers), &mut end);
                out.push_back(end.into());
            }
        }
    }
}

fn push_chunk(encoder: &mut ChunkEncoder, chunk: &mut Vec<u8>, out: &mut VecDeque<Bytes>) {
    let mut framed = Vec::with_capacity(chunk.len() + 128);
    encoder.chunk(chunk, &mut framed);
    chunk.clear();
    out.push_back(framed.into());
}

/// Returns the length, in bytes, of a body of `length` bytes after it is put into S3's chunks.
pub(crate) fn aws_chunked_bytes(length: u64, is_signed: bool, trailer: Option<&Trailer>) -> u64 {
    let signature = if is_signed { CHUNK_SIGNATURE_BYTES } else { 0 };
    let chunk = |bytes: u64| {
        let digits = u64::from((u64::BITS - bytes.leading_zeros()).div_ceil(4).max(1));
        digits + signature + 2 + bytes + if bytes > 0 { 2 } else { 0 }
    };
    let full = AWS_CHUNK_BYTES as u64;
    let last = if length.is_multiple_of(full) { 0 } else { chunk(length % full) };
    let trailers = trailer.map_or(0, |trailer| {
        let line = (trailer.name.len() + 1 + trailer.value_bytes + 2) as u64;
        line + if is_signed { TRAILER_SIGNATURE_BYTES } else { 0 }
    });
    (length / full) * chunk(full) + last + chunk(0) + trailers + 2
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Method};
    use proptest::prelude::*;
    use s3_types::Timestamp;
    use s3_wire::auth::sign::{Signer, Unsigned};

    use super::*;

    fn signer() -> ChunkSigner {
        let signer = Signer { access_key: "a", secret_key: "b", security_token: None, region: "r" };
        let mut headers = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static("h"))]);
        let request =
            Unsigned { method: &Method::PUT, raw_path: "/b/k", raw_query: "", virtual_bucket: None };
        signer.sign_headers(&request, &mut headers, "x", Timestamp::UNIX_EPOCH).unwrap()
    }

    fn framed(framing: &Framing, pieces: &[Bytes], trailers: &[(&str, &str)]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::new(framing), VecDeque::new());
        for piece in pieces {
            encoder.push(piece.clone(), &mut out);
        }
        encoder.finish(trailers, &mut out);
        out.iter().flat_map(|piece| piece.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn the_length_is_known_beforehand(
            pieces in prop::collection::vec(0usize..100_000, 0..5),
            is_signed: bool,
            has_trailer: bool,
        ) {
            let trailer = Trailer { name: "x-amz-checksum-crc32", value_bytes: 8 };
            let length: usize = pieces.iter().sum();
            let pieces: Vec<Bytes> = pieces.iter().map(|length| vec![7; *length].into()).collect();
            let framing = Framing::Aws { signer: is_signed.then(signer), has_trailer };
            let framed = framed(&framing, &pieces, &[(trailer.name, "AAAAAA==")]);
            let said = aws_chunked_bytes(length as u64, is_signed, has_trailer.then_some(&trailer));
            prop_assert_eq!(framed.len() as u64, said);
        }
    }

    #[test]
    fn chunks_of_http() {
        let pieces = [Bytes::from_static(b"hello"), Bytes::new(), Bytes::from_static(b" you")];
        assert_eq!(framed(&Framing::Chunked, &pieces, &[]), b"5\r\nhello\r\n4\r\n you\r\n0\r\n\r\n");
        assert_eq!(framed(&Framing::Plain, &pieces, &[]), b"hello you");
    }
}
