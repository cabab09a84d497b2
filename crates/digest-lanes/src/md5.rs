//! MD5's steps (RFC 1321).

use std::array::from_fn;

use crate::algorithm::{Algorithm, add_scalar, bytes_of};
use crate::block::Block;
use crate::kernel::{Kernel, Way};
use crate::word::Word;

/// The algorithm MD5, for [`Md5`](crate::Md5).
#[derive(Debug, Clone)]
pub struct Md5Steps;

/// The kernels for several streams. On x86, two lanes are already faster than one stream after the
/// other. On aarch64 four lanes of NEON are, if the published latencies of its cores are right
/// (decision 0012).
const WAYS: &[Way] = &[
    Way { kernel: Kernel::Avx512x16, fewest: 9 },
    Way { kernel: Kernel::Avx512x8, fewest: 2 },
    Way { kernel: Kernel::Avx2x8, fewest: 2 },
    Way { kernel: Kernel::Neonx8, fewest: 4 },
];

impl Algorithm for Md5Steps {
    type Output = [u8; 16];
    type State<W: Word> = [W; 4];

    const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    const BIG_ENDIAN: bool = false;

    #[inline(always)]
    fn state<W: Word>(word: impl FnMut(usize) -> W) -> [W; 4] {
        from_fn(word)
    }

    #[inline(always)]
    fn block<W: Word>(state: [W; 4], words: &[W; 16]) -> [W; 4] {
        block(state, words)
    }

    fn add_alone(state: &mut [u32; 4], blocks: &[Block]) {
        // AVX-512 has a rotation and three-way logic, which make a step shorter than general
        // registers do.
        if Kernel::Avx512x1.is_available() {
            Kernel::Avx512x1.add::<Self>(&mut [state], &[blocks], blocks.len());
        } else {
            add_scalar::<Self>(state, blocks);
        }
    }

    #[inline(never)]
    fn add_together(kernel: Kernel, states: &mut [&mut [u32; 4]], inputs: &[&[Block]], blocks: usize) {
        kernel.add::<Self>(states, inputs, blocks);
    }

    fn ways() -> &'static [Way] {
        WAYS
    }

    fn output(state: &[u32; 4]) -> [u8; 16] {
        bytes_of::<Self, 16>(state)
    }
}

/// Computes the function F of three words, plus `sum`. The step before computes `x`, the last of
/// the three words to be known. So the code computes first what does not depend on `x`.
#[inline(always)]
fn f<W: Word>(sum: W, x: W, y: W, z: W) -> W {
    sum.add(W::choose(x, y, z))
}

/// Computes the function G, plus `sum`; see [`f`].
#[inline(always)]
fn g<W: Word>(sum: W, x: W, y: W, z: W) -> W {
    W::add_chosen(sum, z, x, y)
}

/// Computes the function H, plus `sum`; see [`f`].
#[inline(always)]
fn h<W: Word>(sum: W, x: W, y: W, z: W) -> W {
    sum.add(W::parity(x, y, z))
}

/// Computes the function I, plus `sum`; see [`f`].
#[inline(always)]
fn i<W: Word>(sum: W, x: W, y: W, z: W) -> W {
    sum.add(W::md5_i(x, y, z))
}

/// Performs the 64 steps of a block (section 3.4).
#[inline(always)]
#[rustfmt::skip] // One step per line.
fn block<W: Word>(state: [W; 4], word: &[W; 16]) -> [W; 4] {
    let [mut a, mut b, mut c, mut d] = state;
    macro_rules! step {
        ($mix:ident, $a:ident, $b:ident, $c:ident, $d:ident, $n:literal, $left:literal, $constant:literal) => {
            let sum = $a.add(word[$n]).add(W::splat($constant));
            $a = $mix(sum, $b, $c, $d).rotate::<$left, { 32 - $left }>().add($b);
        };
    }
    // Round 1
    step!(f, a, b, c, d, 0, 7, 0xd76a_a478);
    step!(f, d, a, b, c, 1, 12, 0xe8c7_b756);
    step!(f, c, d, a, b, 2, 17, 0x2420_70db);
    step!(f, b, c, d, a, 3, 22, 0xc1bd_ceee);
    step!(f, a, b, c, d, 4, 7, 0xf57c_0faf);
    step!(f, d, a, b, c, 5, 12, 0x4787_c62a);
    step!(f, c, d, a, b, 6, 17, 0xa830_4613);
    step!(f, b, c, d, a, 7, 22, 0xfd46_9501);
    step!(f, a, b, c, d, 8, 7, 0x6980_98d8);
    step!(f, d, a, b, c, 9, 12, 0x8b44_f7af);
    step!(f, c, d, a, b, 10, 17, 0xffff_5bb1);
    step!(f, b, c, d, a, 11, 22, 0x895c_d7be);
    step!(f, a, b, c, d, 12, 7, 0x6b90_1122);
    step!(f, d, a, b, c, 13, 12, 0xfd98_7193);
    step!(f, c, d, a, b, 14, 17, 0xa679_438e);
    step!(f, b, c, d, a, 15, 22, 0x49b4_0821);
    // Round 2
    step!(g, a, b, c, d, 1, 5, 0xf61e_2562);
    step!(g, d, a, b, c, 6, 9, 0xc040_b340);
    step!(g, c, d, a, b, 11, 14, 0x265e_5a51);
    step!(g, b, c, d, a, 0, 20, 0xe9b6_c7aa);
    step!(g, a, b, c, d, 5, 5, 0xd62f_105d);
    step!(g, d, a, b, c, 10, 9, 0x0244_1453);
    step!(g, c, d, a, b, 15, 14, 0xd8a1_e681);
    step!(g, b, c, d, a, 4, 20, 0xe7d3_fbc8);
    step!(g, a, b, c, d, 9, 5, 0x21e1_cde6);
    step!(g, d, a, b, c, 14, 9, 0xc337_07d6);
    step!(g, c, d, a, b, 3, 14, 0xf4d5_0d87);
    step!(g, b, c, d, a, 8, 20, 0x455a_14ed);
    step!(g, a, b, c, d, 13, 5, 0xa9e3_e905);
    step!(g, d, a, b, c, 2, 9, 0xfcef_a3f8);
    step!(g, c, d, a, b, 7, 14, 0x676f_02d9);
    step!(g, b, c, d, a, 12, 20, 0x8d2a_4c8a);
    // Round 3
    step!(h, a, b, c, d, 5, 4, 0xfffa_3942);
    step!(h, d, a, b, c, 8, 11, 0x8771_f681);
    step!(h, c, d, a, b, 11, 16, 0x6d9d_6122);
    step!(h, b, c, d, a, 14, 23, 0xfde5_380c);
    step!(h, a, b, c, d, 1, 4, 0xa4be_ea44);
    step!(h, d, a, b, c, 4, 11, 0x4bde_cfa9);
    step!(h, c, d, a, b, 7, 16, 0xf6bb_4b60);
    step!(h, b, c, d, a, 10, 23, 0xbebf_bc70);
    step!(h, a, b, c, d, 13, 4, 0x289b_7ec6);
    step!(h, d, a, b, c, 0, 11, 0xeaa1_27fa);
    step!(h, c, d, a, b, 3, 16, 0xd4ef_3085);
    step!(h, b, c, d, a, 6, 23, 0x0488_1d05);
    step!(h, a, b, c, d, 9, 4, 0xd9d4_d039);
    step!(h, d, a, b, c, 12, 11, 0xe6db_99e5);
    step!(h, c, d, a, b, 15, 16, 0x1fa2_7cf8);
    step!(h, b, c, d, a, 2, 23, 0xc4ac_5665);
    // Round 4
    step!(i, a, b, c, d, 0, 6, 0xf429_2244);
    step!(i, d, a, b, c, 7, 10, 0x432a_ff97);
    step!(i, c, d, a, b, 14, 15, 0xab94_23a7);
    step!(i, b, c, d, a, 5, 21, 0xfc93_a039);
    step!(i, a, b, c, d, 12, 6, 0x655b_59c3);
    step!(i, d, a, b, c, 3, 10, 0x8f0c_cc92);
    step!(i, c, d, a, b, 10, 15, 0xffef_f47d);
    step!(i, b, c, d, a, 1, 21, 0x8584_5dd1);
    step!(i, a, b, c, d, 8, 6, 0x6fa8_7e4f);
    step!(i, d, a, b, c, 15, 10, 0xfe2c_e6e0);
    step!(i, c, d, a, b, 6, 15, 0xa301_4314);
    step!(i, b, c, d, a, 13, 21, 0x4e08_11a1);
    step!(i, a, b, c, d, 4, 6, 0xf753_7e82);
    step!(i, d, a, b, c, 11, 10, 0xbd3a_f235);
    step!(i, c, d, a, b, 2, 15, 0x2ad7_d2bb);
    step!(i, b, c, d, a, 9, 21, 0xeb86_d391);
    [state[0].add(a), state[1].add(b), state[2].add(c), state[3].add(d)]
}
