//! The differences between MD5 and SHA-256. The rest of this crate is the same for both.

use std::array::from_fn;
use std::fmt::Debug;

use crate::block::Block;
use crate::kernel::{Kernel, Way};
use crate::word::Word;

/// A digest of MD4's family: it takes blocks of 64 bytes, one after another, and the length at the
/// end. (A digest that can process the blocks of one stream in parallel, such as BLAKE3, does not
/// belong in this crate.)
///
/// It is the type parameter of a [`Stream`](crate::Stream), such as [`Md5`](crate::Md5) or
/// [`Sha256`](crate::Sha256); there are no other implementations.
pub trait Algorithm: Clone + Debug + Send + Sync + 'static {
    /// The digest as an array of bytes.
    type Output: AsRef<[u8]> + Copy + Debug + Eq + Send + Sync;
    /// The words of the state, which each block changes. `W` is one word of one stream, or of
    /// several streams.
    #[doc(hidden)]
    type State<W: Word>: AsRef<[W]> + AsMut<[W]> + Copy + Debug + Send + Sync;

    /// The state before the first block.
    #[doc(hidden)]
    const START: Self::State<u32>;
    /// True if the digest reads words, and writes the length at the end, with the high byte first;
    /// false if the low byte is first.
    #[doc(hidden)]
    const BIG_ENDIAN: bool;

    /// Makes a state. `word` returns the word with each index.
    #[doc(hidden)]
    fn state<W: Word>(word: impl FnMut(usize) -> W) -> Self::State<W>;

    /// Returns the state after a block, computed from the state before it and the block's words.
    #[doc(hidden)]
    fn block<W: Word>(state: Self::State<W>, words: &[W; 16]) -> Self::State<W>;

    /// Adds blocks to one state, with the fastest code for a single state on this processor.
    #[doc(hidden)]
    fn add_alone(state: &mut Self::State<u32>, blocks: &[Block]);

    /// Calls [`Kernel::add`]. This is not a generic function, so that it is compiled with this
    /// crate, at this crate's level of optimization, and not with its caller, where vector
    /// instructions would not be inlined.
    #[doc(hidden)]
    fn add_together(kernel: Kernel, states: &mut [&mut Self::State<u32>], inputs: &[&[Block]], blocks: usize);

    /// Returns the kernels that can add blocks to several states at once, the fastest first.
    #[doc(hidden)]
    fn ways() -> &'static [Way];

    /// Returns the digest that the state after the last block stands for.
    #[doc(hidden)]
    fn output(state: &Self::State<u32>) -> Self::Output;
}

/// Adds blocks to one state, without vectors or special instructions.
pub(crate) fn add_scalar<A: Algorithm>(state: &mut A::State<u32>, blocks: &[Block]) {
    for block in blocks {
        let (bytes, _) = block.as_chunks();
        let word = |n: usize| {
            if A::BIG_ENDIAN { u32::from_be_bytes(bytes[n]) } else { u32::from_le_bytes(bytes[n]) }
        };
        *state = A::block(*state, &from_fn(word));
    }
}

/// Returns the bytes of a state's words.
pub(crate) fn bytes_of<A: Algorithm, const BYTES: usize>(state: &A::State<u32>) -> [u8; BYTES] {
    let mut output = [0; BYTES];
    for (bytes, word) in output.chunks_exact_mut(4).zip(state.as_ref()) {
        bytes.copy_from_slice(&if A::BIG_ENDIAN { word.to_be_bytes() } else { word.to_le_bytes() });
    }
    output
}
