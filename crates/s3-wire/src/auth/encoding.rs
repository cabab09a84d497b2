//! Hex and the two percent-encodings of canonical requests.

use aws_lc_rs::digest;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// The characters that SigV4's `UriEncode` encodes: all but the unreserved characters of RFC 3986.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters of an object key that SigV4 encodes: those of [`QUERY`] without the slash.
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// A table that is true for the bytes that [`QUERY`] does not encode.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        plain[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    plain
};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// 32 bytes in lower-case hex: a SHA-256 or an HMAC of it.
pub(crate) type Hex = [u8; 64];

/// Encodes 32 bytes in hex.
pub(crate) fn hex(bytes: &[u8; 32]) -> Hex {
    let mut out = [0; 64];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    out
}

/// Returns hex digits as text.
pub(crate) fn hex_str(hex: &Hex) -> &str {
    str::from_utf8(hex).unwrap_or_default()
}

/// Returns the bytes of `text` in hex, as S3's errors show them: `41 57 53`.
pub(super) fn spaced_hex(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() * 3);
    for byte in text {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push(char::from(HEX[usize::from(byte >> 4)]));
        out.push(char::from(HEX[usize::from(byte & 15)]));
    }
    out
}

/// Computes the SHA-256 of `bytes`.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    array(&digest::digest(&digest::SHA256, bytes))
}

/// Returns the bytes of a digest, whose algorithm must be SHA-256.
pub(crate) fn array(digest: &digest::Digest) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}

/// Appends the encoded form of a query name or value.
pub(super) fn encode_query(text: &str, out: &mut String) {
    if text.bytes().all(|b| PLAIN[usize::from(b)]) {
        out.push_str(text);
    } else {
        out.extend(percent_encode(text.as_bytes(), QUERY));
    }
}

/// Decodes the path and encodes it again, as AWS does: clients that encode fewer or more characters
/// sign one form and send the other.
pub(super) fn normalised_path(raw_path: &str) -> String {
    let decoded: Vec<u8> = percent_decode_str(raw_path).collect();
    percent_encode(&decoded, PATH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_of_a_hash() {
        let bytes = sha256(b"");
        assert_eq!(hex_str(&hex(&bytes)), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(spaced_hex(b"AWS4"), "41 57 53 34");
    }

    #[test]
    fn plain_bytes_are_those_that_stay() {
        for byte in 0..128_u8 {
            let stays = percent_encode(&[byte], QUERY).eq([char::from(byte).to_string()]);
            assert_eq!(PLAIN[usize::from(byte)], stays, "{byte}");
        }
        assert!(!PLAIN[128..].contains(&true));
    }

    #[test]
    fn paths_take_awss_form() {
        assert_eq!(normalised_path("/a b/~x+y/%7e%2f(é)"), "/a%20b/~x%2By/~/%28%C3%A9%29");
        assert_eq!(normalised_path("/%zz%"), "/%25zz%25");
        let mut out = String::new();
        encode_query("a/b c~é=", &mut out);
        assert_eq!(out, "a%2Fb%20c~%C3%A9%3D");
    }
}
