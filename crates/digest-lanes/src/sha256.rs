//! SHA-256's rounds (FIPS 180-4).

use std::array::from_fn;

use crate::algorithm::{Algorithm, bytes_of};
use crate::block::Block;
use crate::kernel::{Kernel, Way};
use crate::word::Word;

/// The algorithm SHA-256, for [`Sha256`](crate::Sha256).
#[derive(Debug, Clone)]
pub struct Sha256Steps;

/// The kernels for several streams on processors without instructions for SHA-256. The smallest
/// numbers of streams were measured (decision 0012).
const WAYS: &[Way] = &[
    Way { kernel: Kernel::Avx512x16, fewest: 9 },
    Way { kernel: Kernel::Avx512x8, fewest: 2 },
    Way { kernel: Kernel::Avx2x8, fewest: 3 },
];

/// The kernels for processors with instructions for SHA-256. With these instructions, five streams
/// one after another take as long as eight lanes do. AVX2 is never faster than these instructions.
const WAYS_BESIDE_INSTRUCTIONS: &[Way] =
    &[Way { kernel: Kernel::Avx512x16, fewest: 11 }, Way { kernel: Kernel::Avx512x8, fewest: 6 }];

impl Algorithm for Sha256Steps {
    type Output = [u8; 32];
    type State<W: Word> = [W; 8];

    #[rustfmt::skip] // Four per line.
    const START: [u32; 8] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
        0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ];
    const BIG_ENDIAN: bool = true;

    #[inline(always)]
    fn state<W: Word>(word: impl FnMut(usize) -> W) -> [W; 8] {
        from_fn(word)
    }

    #[inline(always)]
    fn block<W: Word>(state: [W; 8], words: &[W; 16]) -> [W; 8] {
        block(state, words)
    }

    fn add_alone(state: &mut [u32; 8], blocks: &[Block]) {
        sha2::block_api::compress256(state, blocks);
    }

    #[inline(never)]
    fn add_together(kernel: Kernel, states: &mut [&mut [u32; 8]], inputs: &[&[Block]], blocks: usize) {
        kernel.add::<Self>(states, inputs, blocks);
    }

    fn ways() -> &'static [Way] {
        if has_instructions() { WAYS_BESIDE_INSTRUCTIONS } else { WAYS }
    }

    fn output(state: &[u32; 8]) -> [u8; 32] {
        bytes_of::<Self, 32>(state)
    }
}

/// True if the processor has instructions for SHA-256, which the crate `sha2` then uses.
fn has_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("sha") && is_x86_feature_detected!("sse4.1");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The constants of the rounds (section 4.2.2).
#[rustfmt::skip] // Eight per line.
const CONSTANTS: [[u32; 16]; 4] = [
    [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    ],
    [
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    ],
    [
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    ],
    [
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ],
];

/// Performs the 64 rounds of a block (section 6.2.2).
#[inline(always)]
#[expect(clippy::many_single_char_names, reason = "the standard's")]
#[rustfmt::skip] // One round per line.
fn block<W: Word>(state: [W; 8], words: &[W; 16]) -> [W; 8] {
    // The words of the message schedule, of which sixteen are kept at a time.
    let mut word = *words;
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    macro_rules! round {
        ($constants:ident, $a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident, $g:ident, $h:ident, $n:literal) => {
            let sum = $h.add(W::splat($constants[$n])).add(word[$n]);
            let sum = sum.add(W::choose($e, $f, $g)).add(large_sigma_1($e));
            $d = $d.add(sum);
            $h = sum.add(W::majority($a, $b, $c)).add(large_sigma_0($a));
        };
    }
    macro_rules! round_and_word {
        ($constants:ident, $a:ident, $b:ident, $c:ident, $d:ident, $e:ident, $f:ident, $g:ident, $h:ident, $n:literal) => {
            round!($constants, $a, $b, $c, $d, $e, $f, $g, $h, $n);
            let sum = word[$n].add(small_sigma_0(word[($n + 1) % 16])).add(word[($n + 9) % 16]);
            word[$n] = sum.add(small_sigma_1(word[($n + 14) % 16]));
        };
    }
    macro_rules! sixteen {
        ($round:ident, $constants:ident) => {
            $round!($constants, a, b, c, d, e, f, g, h, 0);
            $round!($constants, h, a, b, c, d, e, f, g, 1);
            $round!($constants, g, h, a, b, c, d, e, f, 2);
            $round!($constants, f, g, h, a, b, c, d, e, 3);
            $round!($constants, e, f, g, h, a, b, c, d, 4);
            $round!($constants, d, e, f, g, h, a, b, c, 5);
            $round!($constants, c, d, e, f, g, h, a, b, 6);
            $round!($constants, b, c, d, e, f, g, h, a, 7);
            $round!($constants, a, b, c, d, e, f, g, h, 8);
            $round!($constants, h, a, b, c, d, e, f, g, 9);
            $round!($constants, g, h, a, b, c, d, e, f, 10);
            $round!($constants, f, g, h, a, b, c, d, e, 11);
            $round!($constants, e, f, g, h, a, b, c, d, 12);
            $round!($constants, d, e, f, g, h, a, b, c, 13);
            $round!($constants, c, d, e, f, g, h, a, b, 14);
            $round!($constants, b, c, d, e, f, g, h, a, 15);
        };
    }
    let [first @ .., last] = &CONSTANTS;
    for constants in first {
        sixteen!(round_and_word, constants);
    }
    sixteen!(round, last);
    let end = [a, b, c, d, e, f, g, h];
    from_fn(|n| state[n].add(end[n]))
}

#[inline(always)]
fn large_sigma_0<W: Word>(x: W) -> W {
    W::parity(x.rotate::<30, 2>(), x.rotate::<19, 13>(), x.rotate::<10, 22>())
}

#[inline(always)]
fn large_sigma_1<W: Word>(x: W) -> W {
    W::parity(x.rotate::<26, 6>(), x.rotate::<21, 11>(), x.rotate::<7, 25>())
}

#[inline(always)]
fn small_sigma_0<W: Word>(x: W) -> W {
    W::parity(x.rotate::<25, 7>(), x.rotate::<14, 18>(), x.shift::<3>())
}

#[inline(always)]
fn small_sigma_1<W: Word>(x: W) -> W {
    W::parity(x.rotate::<15, 17>(), x.rotate::<13, 19>(), x.shift::<10>())
}
