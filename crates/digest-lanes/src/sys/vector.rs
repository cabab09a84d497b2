use std::array::from_fn;

use crate::algorithm::Algorithm;
use crate::block::Block;
use crate::word::Word;

/// One word of each of `LANES` streams, in vector registers.
pub(super) trait Vector<const LANES: usize>: Word {
    fn load(words: &[u32; LANES]) -> Self;

    fn store(self) -> [u32; LANES];

    /// Returns sixteen vectors, each with one word of every block, read in the processor's byte
    /// order.
    fn transpose(blocks: [&Block; LANES]) -> [Self; 16];
}

/// Does the work of [`Kernel::add`](crate::kernel::Kernel::add). It must be inlined into a function
/// that is compiled for the instructions of the vectors, so that they can be inlined, too.
#[inline(always)]
pub(super) fn add<A: Algorithm, V: Vector<LANES>, const LANES: usize>(
    states: &mut [&mut A::State<u32>],
    inputs: &[&[Block]],
    blocks: usize,
) {
    assert!(states.len() <= LANES && states.len() == inputs.len());
    // A lane without a stream reads the first stream's input. Its result is not used.
    let inputs: [&[Block]; LANES] = from_fn(|lane| &inputs.get(lane).unwrap_or(&inputs[0])[..blocks]);
    let mut lanes =
        A::state(|n| V::load(&from_fn(|lane| states.get(lane).map_or(0, |state| state.as_ref()[n]))));
    #[expect(clippy::needless_range_loop, reason = "the n-th block of every input")]
    for n in 0..blocks {
        let mut words = V::transpose(from_fn(|lane| &inputs[lane][n]));
        if cfg!(target_endian = "little") == A::BIG_ENDIAN {
            for word in &mut words {
                *word = word.swap_bytes();
            }
        }
        lanes = A::block(lanes, &words);
    }
    for (n, words) in lanes.as_ref().iter().enumerate() {
        for (state, word) in states.iter_mut().zip(words.store()) {
            state.as_mut()[n] = word;
        }
    }
}
