//! Blocks of several streams at once, each stream in a lane of vector registers.

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::array::from_fn;

use crate::Block;
use crate::algorithm::Algorithm;
use crate::word::Word;

/// How many lanes, by what instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// One stream, in the lowest lane.
    Avx512x1,
    Avx512x8,
    Avx512x16,
    Avx2x8,
    Neonx8,
}

/// A kernel, and from how many streams it is better than what comes after it: the next way, or one
/// stream after the other.
#[derive(Debug)]
pub struct Way {
    pub kernel: Kernel,
    pub fewest: usize,
}

impl Kernel {
    #[cfg(test)]
    pub(crate) const ALL: [Self; 5] =
        [Self::Avx512x1, Self::Avx512x8, Self::Avx512x16, Self::Avx2x8, Self::Neonx8];

    /// How many streams it takes.
    pub fn lanes(self) -> usize {
        match self {
            Self::Avx512x1 => 1,
            Self::Avx512x8 | Self::Avx2x8 | Self::Neonx8 => 8,
            Self::Avx512x16 => 16,
        }
    }

    /// Whether this processor has what it needs.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512x1 | Self::Avx512x8 | Self::Avx512x16 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2x8 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "aarch64")]
            Self::Neonx8 => true,
            _ => false,
        }
    }

    /// Adds so many blocks, which each input must have, to each state; these are no more than there
    /// are lanes.
    pub fn add<A: Algorithm>(self, states: &mut [&mut A::State<u32>], inputs: &[&[Block]], blocks: usize) {
        assert!(self.is_available(), "no {self:?}");
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has what it needs.
            _ => unsafe { x86::add::<A>(self, states, inputs, blocks) },
            #[cfg(target_arch = "aarch64")]
            Self::Neonx8 => add::<A, neon::Eight, _>(states, inputs, blocks),
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("no {self:?}"),
        }
    }
}

/// A word of each of `LANES` streams.
trait Vector<const LANES: usize>: Word {
    fn load(words: &[u32; LANES]) -> Self;

    fn store(self) -> [u32; LANES];

    /// The blocks' words, in the order of bytes that the processor has.
    fn transpose(blocks: [&Block; LANES]) -> [Self; 16];
}

/// See [`Kernel::add`]. To be inlined where the vectors' instructions can be, too.
#[inline(always)]
fn add<A: Algorithm, V: Vector<LANES>, const LANES: usize>(
    states: &mut [&mut A::State<u32>],
    inputs: &[&[Block]],
    blocks: usize,
) {
    assert!(states.len() <= LANES && states.len() == inputs.len());
    // A lane without a stream reads the first one's input again, for nothing.
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

#[cfg(test)]
mod tests {
    use crate::BLOCK_BYTES;
    use crate::algorithm::add_scalar;
    use crate::md5::Md5Steps;
    use crate::sha256::Sha256Steps;

    use super::*;

    /// Words that look random, of a length in whole blocks.
    fn noise(seed: u32, blocks: usize) -> Vec<Block> {
        let mut word = seed + 1;
        let mut byte = || {
            word = word.wrapping_mul(0x9e37_79b1) ^ word >> 15;
            word.to_le_bytes()[3]
        };
        (0..blocks).map(|_| [0; BLOCK_BYTES].map(|_| byte())).collect()
    }

    /// States after so many blocks, from states and blocks that are unlike each other.
    fn run<A: Algorithm>(
        streams: u32,
        blocks: usize,
        add: impl Fn(&mut [&mut A::State<u32>], &[&[Block]]),
    ) -> Vec<A::State<u32>> {
        let inputs: Vec<_> = (0..streams).map(|n| noise(n * 100, blocks)).collect();
        let inputs: Vec<_> = inputs.iter().map(Vec::as_slice).collect();
        let start = |n: u32| A::state(|word| n.wrapping_mul(0x1234_5677) ^ 1 << (3 * word));
        let mut states: Vec<_> = (0..streams).map(start).collect();
        add(&mut states.iter_mut().collect::<Vec<_>>(), &inputs);
        states
    }

    /// Each way that this machine has gives what the scalar one does.
    fn agree<A: Algorithm>() {
        let kernels = Kernel::ALL.into_iter().filter(|kernel| kernel.is_available());
        for (kernel, blocks) in kernels.flat_map(|kernel| [0, 1, 2, 7].map(|blocks| (kernel, blocks))) {
            for streams in 1..=u32::try_from(kernel.lanes()).unwrap() {
                let expected = run::<A>(streams, blocks, |states, inputs| {
                    states.iter_mut().zip(inputs).for_each(|(state, input)| add_scalar::<A>(state, input));
                });
                let alone = run::<A>(streams, blocks, |states, inputs| {
                    states.iter_mut().zip(inputs).for_each(|(state, input)| A::add_alone(state, input));
                });
                let together =
                    run::<A>(streams, blocks, |states, inputs| kernel.add::<A>(states, inputs, blocks));
                for ((expected, alone), together) in expected.iter().zip(&alone).zip(&together) {
                    assert_eq!(alone.as_ref(), expected.as_ref());
                    assert_eq!(together.as_ref(), expected.as_ref(), "{kernel:?}, {streams} streams");
                }
            }
        }
    }

    #[test]
    fn md5_kernels_agree() {
        agree::<Md5Steps>();
    }

    #[test]
    fn sha256_kernels_agree() {
        agree::<Sha256Steps>();
    }
}
