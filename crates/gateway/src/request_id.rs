//! Ids by which an answer and its log lines can be matched.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base64::Engine as _;
use http::HeaderValue;

/// The id of a request: 16 characters of `0-9 A-F`, like S3's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        // Made of ASCII digits below.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the id as ASCII.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the eight bytes that the digits stand for.
    pub fn decoded(self) -> [u8; 8] {
        u64::from_str_radix(self.as_str(), 16).unwrap_or_default().to_be_bytes()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A source of ids that do not repeat within a process, and hardly ever between gateways.
#[derive(Debug)]
pub struct RequestIds {
    seed: u64,
    count: AtomicU64,
}

impl RequestIds {
    /// Starts with a random seed.
    pub fn new() -> Self {
        Self { seed: RandomState::new().hash_one("request ids"), count: AtomicU64::new(0) }
    }

    /// Returns the next id.
    pub fn next(&self) -> RequestId {
        let n = mixed(self.seed, self.count.fetch_add(1, Relaxed));
        let mut text = [0; 16];
        for (pair, byte) in text.chunks_exact_mut(2).zip(n.to_be_bytes()) {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        RequestId(text)
    }
}

/// Returns the number at an index of the sequence that `seed` begins. No two indexes have the same
/// number, since an odd multiplier and xor-shifts are one-to-one on 64 bits (splitmix64).
pub fn mixed(seed: u64, place: u64) -> u64 {
    let mut n = seed.wrapping_add(place.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

impl Default for RequestIds {
    fn default() -> Self {
        Self::new()
    }
}

/// The value of `x-amz-id-2`, which names the gateway that answered.
#[derive(Debug, Clone)]
pub struct HostId {
    text: String,
    header: HeaderValue,
}

impl HostId {
    /// Makes a random id, which a process keeps.
    pub fn random() -> Self {
        let state = RandomState::new();
        let bytes: Vec<u8> = (0..6).flat_map(|i: u8| state.hash_one(i).to_be_bytes()).collect();
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let header = HeaderValue::try_from(&text).unwrap_or_else(|_| HeaderValue::from_static("slipway"));
        Self { text, header }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the id as a header value.
    pub fn header(&self) -> HeaderValue {
        self.header.clone()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An id to test with.
    pub const ID: RequestId = RequestId(*b"0123456789ABCDEF");

    #[test]
    fn ids_do_not_repeat() {
        let ids = RequestIds::new();
        let mut seen: Vec<_> = (0..10_000).map(|_| ids.next().0).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
        assert!(seen[0].iter().all(u8::is_ascii_hexdigit));
        assert_eq!(ID.decoded(), [1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF]);
    }
}
