use super::chunk::ChunkSigner;

/// How a body is protected, and therefore framed.
#[derive(Debug)]
pub enum PayloadMode {
    /// Plain, and not signed.
    Unsigned,
    /// Plain, with this SHA-256.
    Sha256([u8; 32]),
    /// `aws-chunked`.
    Streaming {
        /// Checks the signatures of the chunks and of the trailers, if they have any.
        signer: Option<ChunkSigner>,
        /// Whether trailers follow the last chunk.
        trailer: bool,
    },
}
