//! Tests each kernel that this machine can run with the known answers of the standards.

use std::fmt::Write as _;

use crate::algorithm::add_scalar;
use crate::block::Block;
use crate::kernel::Kernel;
use crate::md5::Md5Steps;
use crate::sha256::Sha256Steps;
use crate::{Algorithm, LANES, Stream, Update, update_together};

/// The texts and digests of RFC 1321, appendix A.5.
const MD5: [(&str, &str); 7] = [
    ("", "d41d8cd98f00b204e9800998ecf8427e"),
    ("a", "0cc175b9c0f1b6a831c399e269772661"),
    ("abc", "900150983cd24fb0d6963f7d28e17f72"),
    ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
    ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
    (
        "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "57edf4a22be3c955ac49da2e2107b67a",
    ),
];

/// The texts and digests of NIST's examples for FIPS 180-4.
const SHA256: [(&str, &str); 4] = [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ),
    (
        "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
        "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
    ),
];

const MILLION_A: &str = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Returns the blocks of the text and its padding.
fn padded<A: Algorithm>(text: &str) -> Vec<Block> {
    let mut bytes = [text.as_bytes(), &[0x80]].concat();
    bytes.resize((bytes.len() + 8).next_multiple_of(64) - 8, 0);
    let bits = 8 * text.len() as u64;
    bytes.extend(if A::BIG_ENDIAN { bits.to_be_bytes() } else { bits.to_le_bytes() });
    bytes.as_chunks().0.to_vec()
}

/// Checks that each implementation that this machine can run gives `expected` as the digest of a
/// text.
fn check<A: Algorithm>(text: &str, expected: &str) {
    assert_eq!(hex(Stream::<A>::of(text.as_bytes())), expected);
    let blocks = padded::<A>(text);
    let mut state = A::START;
    add_scalar::<A>(&mut state, &blocks);
    assert_eq!(hex(A::output(&state)), expected, "scalar");
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        let mut states = vec![A::START; kernel.lanes()];
        let mut all: Vec<_> = states.iter_mut().collect();
        kernel.add::<A>(&mut all, &vec![blocks.as_slice(); kernel.lanes()], blocks.len());
        for state in states {
            assert_eq!(hex(A::output(&state)), expected, "{kernel:?}");
        }
    }
}

/// Computes the digests of all texts at the same time, each text [`LANES`] times, and compares them
/// with the answers.
fn check_together<A: Algorithm>(answers: &[(&str, &str)]) {
    let answers: Vec<_> = answers.iter().flat_map(|answer| [answer; LANES]).collect();
    let mut streams = vec![Stream::<A>::new(); answers.len()];
    let mut left: Vec<_> = answers.iter().map(|(text, _)| text.as_bytes()).collect();
    while left.iter().any(|bytes| !bytes.is_empty()) {
        let mut updates: Vec<_> =
            streams.iter_mut().zip(&left).map(|(stream, bytes)| Update { stream, bytes }).collect();
        updates.retain(|update| !update.bytes.is_empty());
        update_together(&mut updates);
        let mut rest = updates.iter().map(|update| update.bytes);
        left.iter_mut().filter(|bytes| !bytes.is_empty()).for_each(|bytes| *bytes = rest.next().unwrap());
    }
    for (stream, (text, expected)) in streams.into_iter().zip(answers) {
        assert_eq!(&hex(stream.finish()), expected, "{text}");
    }
}

#[test]
fn md5() {
    for (text, expected) in MD5 {
        check::<Md5Steps>(text, expected);
    }
    check_together::<Md5Steps>(&MD5);
}

#[test]
fn sha256() {
    let million = "a".repeat(1_000_000);
    let answers = [&SHA256[..], &[(&million, MILLION_A)]].concat();
    for (text, expected) in &answers {
        check::<Sha256Steps>(text, expected);
    }
    check_together::<Sha256Steps>(&answers);
}
