use super::chunk::ChunkSigner;

/// The protection of a body, which also decides its framing.
#[derive(Debug)]
pub enum PayloadMode {
    /// A plain body, not signed.
    Unsigned,
    /// A plain body with this SHA-256.
    Sha256([u8; 32]),
    /// An `aws-chunked` body.
    Streaming {
        /// The signer that checks the chunks and the trailers; `None` if they are not signed.
        signer: Option<ChunkSigner>,
        /// True if trailers follow the last chunk.
        trailer: bool,
    },
}
