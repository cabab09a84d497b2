//! Vector registers of aarch64, whose processors all have NEON: eight streams, in two registers.
//! Each instruction on one register waits for the one before it, so that two registers take no
//! longer than one.
//!
//! The unsafe code consists of loads and stores of blocks and arrays, each as long as the data that
//! is loaded or stored, and of calls of NEON's instructions.

#[allow(clippy::wildcard_imports, reason = "the instructions are the language of this file")]
use std::arch::aarch64::*;
use std::array::from_fn;

use super::vector::Vector;
use crate::block::Block;
use crate::word::Word;

/// One word of each of eight streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eight([uint32x4_t; 2]);

impl Eight {
    /// Makes a value of two registers: `half` returns each of them.
    #[inline(always)]
    fn each(half: impl FnMut(usize) -> uint32x4_t) -> Self {
        Self(from_fn(half))
    }
}

// SAFETY (all): the processor has NEON.
impl Word for Eight {
    #[inline(always)]
    fn splat(constant: u32) -> Self {
        Self([unsafe { vdupq_n_u32(constant) }; 2])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::each(|n| unsafe { vaddq_u32(self.0[n], other.0[n]) })
    }

    #[inline(always)]
    fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        Self::each(|n| unsafe { vsriq_n_u32::<RIGHT>(vshlq_n_u32::<LEFT>(self.0[n]), self.0[n]) })
    }

    #[inline(always)]
    fn shift<const RIGHT: i32>(self) -> Self {
        Self::each(|n| unsafe { vshrq_n_u32::<RIGHT>(self.0[n]) })
    }

    #[inline(always)]
    fn choose(by: Self, x: Self, y: Self) -> Self {
        Self::each(|n| unsafe { vbslq_u32(by.0[n], x.0[n], y.0[n]) })
    }

    #[inline(always)]
    fn majority(x: Self, y: Self, z: Self) -> Self {
        // A bit in which `x` and `y` differ is that of `z`; otherwise it is that of `y`.
        Self::each(|n| unsafe { vbslq_u32(veorq_u32(x.0[n], y.0[n]), z.0[n], y.0[n]) })
    }

    #[inline(always)]
    fn parity(x: Self, y: Self, z: Self) -> Self {
        Self::each(|n| unsafe { veorq_u32(veorq_u32(y.0[n], z.0[n]), x.0[n]) })
    }

    #[inline(always)]
    fn md5_i(x: Self, y: Self, z: Self) -> Self {
        Self::each(|n| unsafe { veorq_u32(vornq_u32(x.0[n], z.0[n]), y.0[n]) })
    }
}

// SAFETY (all): each half of eight words is four words, and each quarter of a block is four words.
impl Vector<8> for Eight {
    #[inline(always)]
    fn load(words: &[u32; 8]) -> Self {
        Self::each(|half| unsafe { vld1q_u32(words.as_ptr().add(4 * half)) })
    }

    #[inline(always)]
    fn store(self) -> [u32; 8] {
        let mut words = [0; 8];
        for (half, vector) in self.0.into_iter().enumerate() {
            unsafe { vst1q_u32(words.as_mut_ptr().add(4 * half), vector) };
        }
        words
    }

    #[inline(always)]
    fn transpose(blocks: [&Block; 8]) -> [Self; 16] {
        let mut out = [Self::splat(0); 16];
        for half in 0..2 {
            for quarter in 0..4 {
                let row = |n: usize| unsafe {
                    vreinterpretq_u32_u8(vld1q_u8(blocks[4 * half + n].as_ptr().add(16 * quarter)))
                };
                let words = transpose_4([row(0), row(1), row(2), row(3)]);
                for (out, word) in out[4 * quarter..].iter_mut().zip(words) {
                    out.0[half] = word;
                }
            }
        }
        out
    }
}

/// Transposes a matrix of four rows of four words.
#[inline(always)]
fn transpose_4([a, b, c, d]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
    // SAFETY: the processor has NEON.
    unsafe {
        // The even words of two rows, alternating, and the odd ones.
        let even = [vtrn1q_u32(a, b), vtrn1q_u32(c, d)];
        let odd = [vtrn2q_u32(a, b), vtrn2q_u32(c, d)];
        let low = |[x, y]: [uint32x4_t; 2]| vtrn1q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y));
        let high = |[x, y]: [uint32x4_t; 2]| vtrn2q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y));
        [low(even), low(odd), high(even), high(odd)].map(|words| vreinterpretq_u32_u64(words))
    }
}
