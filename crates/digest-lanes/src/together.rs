//! Adds bytes to several streams at once.

use crate::algorithm::Algorithm;
use crate::block::{BLOCK_BYTES, Block, LANES};
use crate::kernel::Kernel;
use crate::stream::Stream;

/// Bytes to add to a stream, which is an [`Md5`](crate::Md5) or a [`Sha256`](crate::Sha256).
#[derive(Debug)]
pub struct Update<'s, 'b, D> {
    /// The stream.
    pub stream: &'s mut D,
    /// The stream's next bytes. After [`update_together`] it has those bytes that were not added.
    pub bytes: &'b [u8],
}

/// Adds bytes to several streams, until the bytes of one stream are used up. Uses vectors if that
/// is faster than one stream after the other.
pub fn update_together<A: Algorithm>(updates: &mut [Update<'_, '_, Stream<A>>]) {
    for update in &mut *updates {
        update.bytes = update.stream.end_block(update.bytes);
    }
    let blocks = updates.iter().map(|update| update.bytes.len() / BLOCK_BYTES).min().unwrap_or(0);
    if blocks > 0 {
        let mut left = &mut *updates;
        while let Some(kernel) = kernel_for::<A>(left.len()) {
            let (now, later) = left.split_at_mut(kernel.lanes().min(left.len()));
            add_blocks_together(kernel, now, blocks);
            left = later;
        }
        for update in left {
            let (now, rest) = split_blocks(update.bytes, blocks);
            update.stream.add_blocks(now);
            update.bytes = rest;
        }
    }
    for update in updates {
        if update.bytes.len() < BLOCK_BYTES {
            update.stream.begin_block(update.bytes);
            update.bytes = &[];
        }
    }
}

/// Returns the best kernel if this many streams have bytes; `None` if one stream after the other is
/// faster. The kernel may have fewer lanes than there are streams.
fn kernel_for<A: Algorithm>(streams: usize) -> Option<Kernel> {
    let mut ways = A::ways().iter();
    ways.find(|way| streams >= way.fewest && way.kernel.is_available()).map(|way| way.kernel)
}

/// Adds `blocks` blocks to each stream. There must be no more streams than the kernel has lanes,
/// and each must be at the beginning of a block.
fn add_blocks_together<A: Algorithm>(
    kernel: Kernel,
    updates: &mut [Update<'_, '_, Stream<A>>],
    blocks: usize,
) {
    let mut inputs: [&[Block]; LANES] = [&[]; LANES];
    let mut unused = [A::START; LANES];
    let mut states: [&mut A::State<u32>; LANES] = unused.each_mut();
    let count = updates.len();
    for ((update, input), state) in updates.iter_mut().zip(&mut inputs).zip(&mut states) {
        let (now, rest) = split_blocks(update.bytes, blocks);
        (*input, update.bytes) = (now, rest);
        update.stream.length_bytes += now.as_flattened().len() as u64;
        *state = &mut update.stream.state;
    }
    A::add_together(kernel, &mut states[..count], &inputs[..count], blocks);
}

fn split_blocks(bytes: &[u8], blocks: usize) -> (&[Block], &[u8]) {
    let (now, rest) = bytes.split_at(blocks * BLOCK_BYTES);
    (now.as_chunks().0, rest)
}
