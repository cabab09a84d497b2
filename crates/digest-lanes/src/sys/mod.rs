//! Digests blocks of several streams at once, each stream in a lane of vector registers.

#[cfg(target_arch = "aarch64")]
mod neon;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::algorithm::Algorithm;
use crate::block::Block;
use crate::kernel::Kernel;

impl Kernel {
    /// Adds the first `blocks` blocks of each input to its state. Each input must have at least
    /// that many blocks, and there must be no more states than lanes. Panics if the processor does
    /// not have the kernel's instructions.
    pub fn add<A: Algorithm>(self, states: &mut [&mut A::State<u32>], inputs: &[&[Block]], blocks: usize) {
        assert!(self.is_available(), "no {self:?}");
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the processor has the kernel's instructions.
            _ => unsafe { x86::add::<A>(self, states, inputs, blocks) },
            #[cfg(target_arch = "aarch64")]
            Self::Neonx8 => vector::add::<A, neon::Eight, _>(states, inputs, blocks),
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("no {self:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::add_scalar;
    use crate::block::BLOCK_BYTES;
    use crate::md5::Md5Steps;
    use crate::sha256::Sha256Steps;

    use super::*;

    /// Makes blocks of words that look random.
    fn noise(seed: u32, blocks: usize) -> Vec<Block> {
        let mut word = seed + 1;
        let mut byte = || {
            word = word.wrapping_mul(0x9e37_79b1) ^ word >> 15;
            word.to_le_bytes()[3]
        };
        (0..blocks).map(|_| [0; BLOCK_BYTES].map(|_| byte())).collect()
    }

    /// Returns the states after `blocks` blocks, from states and blocks that all differ.
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

    /// Checks that each way that this machine has gives the same states as the scalar one.
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
