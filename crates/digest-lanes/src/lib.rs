//! MD5 (RFC 1321) of one stream, and of up to [`LANES`] streams at once.
//!
//! Each step of MD5 waits for the one before it, so that one stream leaves most of a core idle, however it is written. Streams
//! don't wait for each other: a vector register holds a word of each, and eight or sixteen take hardly longer than one.
//! What the processor can do is found out when it runs; one without vectors of use digests one stream after the other.

#![expect(clippy::inline_always, reason = "a vector that a call goes through memory for is none")]

mod block;
#[cfg(target_arch = "x86_64")]
mod sys;

use std::array::from_fn;

/// How many streams are of use to [`update_together`]; a multiple of what any processor takes at once.
pub const LANES: usize = 16;

const BLOCK_BYTES: usize = 64;

type State = [u32; 4];

/// An MD5 in progress.
#[derive(Debug, Clone)]
pub struct Md5 {
    state: State,
    /// The bytes of the block that has begun, and how many there are.
    begun: [u8; BLOCK_BYTES],
    begun_bytes: usize,
    length_bytes: u64,
}

impl Default for Md5 {
    fn default() -> Self {
        Self::new()
    }
}

impl Md5 {
    /// Starts with no bytes.
    pub const fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
        Self { state, begun: [0; BLOCK_BYTES], begun_bytes: 0, length_bytes: 0 }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let bytes = self.end_block(bytes);
        let whole = bytes.len() / BLOCK_BYTES * BLOCK_BYTES;
        self.add_blocks(&bytes[..whole]);
        self.begin_block(&bytes[whole..]);
    }

    /// The MD5 of all bytes added.
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length_bytes.wrapping_mul(8);
        // One bit, zeros up to the last eight bytes of a block, and there the length.
        let mut padding = [0; 2 * BLOCK_BYTES];
        padding[0] = 0x80;
        let left = BLOCK_BYTES - self.begun_bytes;
        let end = if left > 8 { left } else { left + BLOCK_BYTES };
        padding[end - 8..end].copy_from_slice(&bits.to_le_bytes());
        self.update(&padding[..end]);
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }

    /// The MD5 of `bytes`.
    pub fn of(bytes: &[u8]) -> [u8; 16] {
        let mut md5 = Self::new();
        md5.update(bytes);
        md5.finish()
    }

    /// Goes on with a block that has begun. Returns what is left of `bytes`: none, unless the block is whole.
    fn end_block<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let begun = self.begun_bytes;
        if begun == 0 {
            return bytes;
        }
        let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - begun));
        self.begun[begun..begun + now.len()].copy_from_slice(now);
        self.length_bytes += now.len() as u64;
        self.begun_bytes += now.len();
        if self.begun_bytes == BLOCK_BYTES {
            compress(&mut self.state, &self.begun);
            self.begun_bytes = 0;
        }
        rest
    }

    fn add_blocks(&mut self, blocks: &[u8]) {
        compress(&mut self.state, blocks);
        self.length_bytes += blocks.len() as u64;
    }

    /// Keeps the beginning of a block.
    fn begin_block(&mut self, bytes: &[u8]) {
        let begun = self.begun_bytes;
        self.begun[begun..begun + bytes.len()].copy_from_slice(bytes);
        self.begun_bytes += bytes.len();
        self.length_bytes += bytes.len() as u64;
    }
}

/// Bytes to be added to a stream.
#[derive(Debug)]
pub struct Update<'m, 'b> {
    /// The stream.
    pub md5: &'m mut Md5,
    /// Its next bytes. What is left of them when [`update_together`] is done.
    pub bytes: &'b [u8],
}

/// Adds bytes to several streams at once, until those of one are used up.
pub fn update_together(updates: &mut [Update<'_, '_>]) {
    for update in &mut *updates {
        update.bytes = update.md5.end_block(update.bytes);
    }
    let blocks = updates.iter().map(|update| update.bytes.len() / BLOCK_BYTES).min().unwrap_or(0);
    for updates in updates.chunks_mut(LANES) {
        add_blocks_together(updates, blocks);
    }
    for update in updates {
        if update.bytes.len() < BLOCK_BYTES {
            update.md5.begin_block(update.bytes);
            update.bytes = &[];
        }
    }
}

/// Adds so many blocks to each of at most [`LANES`] streams, which are all at the beginning of a block.
fn add_blocks_together(updates: &mut [Update<'_, '_>], blocks: usize) {
    let length = blocks * BLOCK_BYTES;
    #[cfg(target_arch = "x86_64")]
    if updates.len() > 1 && blocks > 0 {
        let inputs: [&[u8]; LANES] = from_fn(|lane| updates.get(lane).map_or(&[][..], |update| update.bytes));
        let inputs = &inputs[..updates.len()];
        let mut unused = [State::default(); LANES];
        let mut states = unused.each_mut();
        for (state, update) in states.iter_mut().zip(&mut *updates) {
            *state = &mut update.md5.state;
        }
        if sys::compress_each(sys::Level::get(), &mut states[..inputs.len()], inputs, blocks) {
            for update in updates {
                update.md5.length_bytes += length as u64;
                update.bytes = &update.bytes[length..];
            }
            return;
        }
    }
    for update in updates {
        let (now, rest) = update.bytes.split_at(length);
        update.md5.add_blocks(now);
        update.bytes = rest;
    }
}

/// Adds whole blocks.
fn compress(state: &mut State, blocks: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if sys::compress(sys::Level::get(), state, blocks) {
        return;
    }
    compress_scalar(state, blocks);
}

fn compress_scalar(state: &mut State, blocks: &[u8]) {
    for bytes in blocks.chunks_exact(BLOCK_BYTES) {
        let word = from_fn(|n| {
            u32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]])
        });
        *state = block::block(*state, &word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(digest: [u8; 16]) -> String {
        format!("{:032x}", u128::from_be_bytes(digest))
    }

    /// RFC 1321, appendix A.5.
    const ANSWERS: [(&str, &str); 7] = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"),
        ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"),
        ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        (
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "d174ab98d277d9f5a5611c2c9f419d9f",
        ),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a",
        ),
    ];

    #[test]
    fn known_answers() {
        for (text, expected) in ANSWERS {
            assert_eq!(hex(Md5::of(text.as_bytes())), expected);
        }
        let mut md5s = vec![Md5::new(); ANSWERS.len()];
        let mut left: Vec<_> = ANSWERS.iter().map(|(text, _)| text.as_bytes()).collect();
        while left.iter().any(|bytes| !bytes.is_empty()) {
            let mut updates: Vec<_> =
                md5s.iter_mut().zip(&left).map(|(md5, bytes)| Update { md5, bytes }).collect();
            updates.retain(|update| !update.bytes.is_empty());
            update_together(&mut updates);
            let mut rest = updates.iter().map(|update| update.bytes);
            left.iter_mut().filter(|bytes| !bytes.is_empty()).for_each(|bytes| *bytes = rest.next().unwrap());
        }
        let digests: Vec<_> = md5s.into_iter().map(|md5| hex(md5.finish())).collect();
        assert_eq!(digests, ANSWERS.map(|(_, expected)| expected));
    }

    /// Words that look random, of a length in whole blocks.
    fn noise(seed: u32, blocks: usize) -> Vec<u8> {
        let mut word = seed + 1;
        std::iter::repeat_with(|| {
            word = word.wrapping_mul(0x9e37_79b1) ^ word >> 15;
            word.to_le_bytes()
        })
        .take(blocks * 16)
        .flatten()
        .collect()
    }

    /// Each way that this machine has gives what the scalar one does.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn levels_agree() {
        use sys::Level;
        let levels: &[Level] = match Level::get() {
            Level::Avx512 => &[Level::Avx512, Level::Avx2, Level::Scalar],
            Level::Avx2 => &[Level::Avx2, Level::Scalar],
            Level::Scalar => &[Level::Scalar],
        };
        for level in levels {
            for count in 1..=17 {
                for blocks in [0, 1, 2, 7] {
                    let inputs: Vec<_> = (0..count).map(|n| noise(n * 100, blocks)).collect();
                    let start: Vec<State> = (0..count).map(|n| [n, !n, n << 9, n * 77]).collect();
                    let expected: Vec<_> = start
                        .iter()
                        .zip(&inputs)
                        .map(|(state, input)| {
                            let mut state = *state;
                            compress_scalar(&mut state, input);
                            state
                        })
                        .collect();
                    let mut alone = start[0];
                    assert_eq!(sys::compress(*level, &mut alone, &inputs[0]), *level == Level::Avx512);
                    assert!(alone == expected[0] || *level != Level::Avx512);
                    let mut states = start.clone();
                    let mut all: Vec<_> = states.iter_mut().collect();
                    let slices: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
                    assert_eq!(
                        sys::compress_each(*level, &mut all, &slices, blocks),
                        *level != Level::Scalar
                    );
                    assert!(states == expected || *level == Level::Scalar, "{level:?}, {count} streams");
                }
            }
        }
    }
}
