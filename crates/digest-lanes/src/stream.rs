//! One stream: the block whose bytes have not all come in, and the padding at the end.

use crate::algorithm::Algorithm;
use crate::block::{BLOCK_BYTES, Block};

/// A digest to which bytes are added piece by piece.
#[derive(Debug, Clone)]
pub struct Stream<A: Algorithm> {
    pub(crate) state: A::State<u32>,
    /// The current block, which is not complete, and the number of its bytes that have been added.
    begun: Block,
    begun_bytes: usize,
    pub(crate) length_bytes: u64,
}

impl<A: Algorithm> Default for Stream<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Algorithm> Stream<A> {
    /// Makes the digest of no bytes yet.
    pub const fn new() -> Self {
        Self { state: A::START, begun: [0; BLOCK_BYTES], begun_bytes: 0, length_bytes: 0 }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let bytes = self.end_block(bytes);
        let (blocks, rest) = bytes.as_chunks();
        self.add_blocks(blocks);
        self.begin_block(rest);
    }

    /// Returns the digest of all bytes added.
    pub fn finish(mut self) -> A::Output {
        let bits = self.length_bytes.wrapping_mul(8);
        // The padding is a one bit, zeros up to the last eight bytes of a block, and there the
        // length in bits.
        let mut padding = [0; 2 * BLOCK_BYTES];
        padding[0] = 0x80;
        let left = BLOCK_BYTES - self.begun_bytes;
        let end = if left > 8 { left } else { left + BLOCK_BYTES };
        let bits = if A::BIG_ENDIAN { bits.to_be_bytes() } else { bits.to_le_bytes() };
        padding[end - 8..end].copy_from_slice(&bits);
        self.update(&padding[..end]);
        A::output(&self.state)
    }

    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> A::Output {
        let mut stream = Self::new();
        stream.update(bytes);
        stream.finish()
    }

    /// Adds bytes to the current block. Returns the rest of `bytes`, which is empty if the block is
    /// not complete yet.
    pub(crate) fn end_block<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let begun = self.begun_bytes;
        if begun == 0 {
            return bytes;
        }
        let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - begun));
        self.begun[begun..begun + now.len()].copy_from_slice(now);
        self.length_bytes += now.len() as u64;
        self.begun_bytes += now.len();
        if self.begun_bytes == BLOCK_BYTES {
            A::add_alone(&mut self.state, &[self.begun]);
            self.begun_bytes = 0;
        }
        rest
    }

    pub(crate) fn add_blocks(&mut self, blocks: &[Block]) {
        A::add_alone(&mut self.state, blocks);
        self.length_bytes += blocks.as_flattened().len() as u64;
    }

    /// Keeps `bytes` as the beginning of the current block.
    pub(crate) fn begin_block(&mut self, bytes: &[u8]) {
        let begun = self.begun_bytes;
        self.begun[begun..begun + bytes.len()].copy_from_slice(bytes);
        self.begun_bytes += bytes.len();
        self.length_bytes += bytes.len() as u64;
    }
}
