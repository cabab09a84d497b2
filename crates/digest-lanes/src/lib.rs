//! MD5 (RFC 1321) and SHA-256 (FIPS 180-4) of one stream, and of up to [`LANES`] streams at once.
//!
//! Each step of a digest waits for the step before it, so that one stream leaves most of a core
//! idle, however the code is written. Streams do not wait for each other: a vector register holds
//! one word of each stream, and eight or sixteen streams take hardly longer than one. The
//! processor's instructions are detected at run time. If its vector instructions bring no gain,
//! streams are digested one after the other.

#![expect(clippy::inline_always, reason = "a vector that a call goes through memory for is none")]

mod algorithm;
mod block;
mod kernel;
#[cfg(test)]
mod known_answers;
mod md5;
mod sha256;
mod stream;
mod sys;
mod together;
mod word;

pub use algorithm::Algorithm;
pub use block::LANES;
pub use md5::Md5Steps;
pub use sha256::Sha256Steps;
pub use stream::Stream;
pub use together::{Update, update_together};

/// An MD5 digest of a stream of bytes.
pub type Md5 = Stream<Md5Steps>;

/// A SHA-256 digest of a stream of bytes.
pub type Sha256 = Stream<Sha256Steps>;
