//! Vector registers of x86-64: eight streams with AVX2, eight or sixteen with AVX-512. One stream
//! also uses AVX-512, whose rotation and three-way logic make a step of MD5 shorter than general
//! registers do.
//!
//! The unsafe code consists of loads and stores of blocks and arrays, each as long as the data that
//! is loaded or stored, and of calls of instructions. These calls are only in functions that are
//! compiled for the instructions, which run only on processors that have them.

#[allow(clippy::wildcard_imports, reason = "the instructions are the language of this file")]
use std::arch::x86_64::*;

use super::vector::Vector;
use crate::algorithm::Algorithm;
use crate::block::Block;
use crate::kernel::Kernel;
use crate::word::Word;

/// Adds `blocks` blocks of each input to its state.
///
/// # Safety
/// The processor must have the kernel's instructions.
pub(super) unsafe fn add<A: Algorithm>(
    kernel: Kernel,
    states: &mut [&mut A::State<u32>],
    inputs: &[&[Block]],
    blocks: usize,
) {
    // SAFETY: the caller vouches for the processor.
    unsafe {
        match kernel {
            Kernel::Avx2x8 => avx2_8::<A>(states, inputs, blocks),
            Kernel::Avx512x1 => avx512_1::<A>(states, inputs, blocks),
            Kernel::Avx512x8 => avx512_8::<A>(states, inputs, blocks),
            Kernel::Avx512x16 => avx512_16::<A>(states, inputs, blocks),
            Kernel::Neonx8 => unreachable!("not on this processor"),
        }
    }
}

/// Compiles [`super::vector::add`] for processors with these features.
macro_rules! kernel {
    ($features:literal, $name:ident, $word:ident) => {
        #[target_feature(enable = $features)]
        fn $name<A: Algorithm>(states: &mut [&mut A::State<u32>], inputs: &[&[Block]], blocks: usize) {
            super::vector::add::<A, $word, _>(states, inputs, blocks);
        }
    };
}

kernel!("avx2", avx2_8, Eight);
kernel!("avx512f,avx512vl", avx512_1, One);
kernel!("avx512f,avx512vl", avx512_8, Eight512);
kernel!("avx512f,avx512vl", avx512_16, Sixteen);

/// One word of one stream, in the lowest lane.
#[derive(Debug, Clone, Copy)]
struct One(__m128i);
/// One word of each of eight streams, with AVX2.
#[derive(Debug, Clone, Copy)]
struct Eight(__m256i);
/// One word of each of eight streams, with AVX-512.
#[derive(Debug, Clone, Copy)]
struct Eight512(__m256i);
/// One word of each of sixteen streams, with AVX-512.
#[derive(Debug, Clone, Copy)]
struct Sixteen(__m512i);

/// Implements `Word` with AVX-512. Each function of three words is one instruction, whose constant
/// is the truth table of the function.
macro_rules! three_way_word {
    ($word:ident, $splat:ident, $add:ident, $rotate:ident, $shift:ident, $ternary:ident) => {
        // SAFETY (all): such words are made only in functions that are compiled for AVX-512.
        impl Word for $word {
            #[inline(always)]
            fn splat(constant: u32) -> Self {
                Self(unsafe { $splat(constant.cast_signed()) })
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
                Self(unsafe { $rotate::<LEFT>(self.0) })
            }

            #[inline(always)]
            fn shift<const RIGHT: i32>(self) -> Self {
                Self(unsafe { $shift(self.0, $splat(RIGHT)) })
            }

            #[inline(always)]
            fn choose(by: Self, x: Self, y: Self) -> Self {
                Self(unsafe { $ternary::<0xca>(by.0, x.0, y.0) })
            }

            #[inline(always)]
            fn majority(x: Self, y: Self, z: Self) -> Self {
                Self(unsafe { $ternary::<0xe8>(x.0, y.0, z.0) })
            }

            #[inline(always)]
            fn parity(x: Self, y: Self, z: Self) -> Self {
                Self(unsafe { $ternary::<0x96>(x.0, y.0, z.0) })
            }

            #[inline(always)]
            fn md5_i(x: Self, y: Self, z: Self) -> Self {
                Self(unsafe { $ternary::<0x39>(x.0, y.0, z.0) })
            }
        }
    };
}

three_way_word!(One, _mm_set1_epi32, _mm_add_epi32, _mm_rol_epi32, _mm_srlv_epi32, _mm_ternarylogic_epi32);
three_way_word!(
    Eight512,
    _mm256_set1_epi32,
    _mm256_add_epi32,
    _mm256_rol_epi32,
    _mm256_srlv_epi32,
    _mm256_ternarylogic_epi32
);
three_way_word!(
    Sixteen,
    _mm512_set1_epi32,
    _mm512_add_epi32,
    _mm512_rol_epi32,
    _mm512_srlv_epi32,
    _mm512_ternarylogic_epi32
);

// SAFETY (all): such words are made only in functions that are compiled for AVX2.
impl Word for Eight {
    #[inline(always)]
    fn splat(constant: u32) -> Self {
        Self(unsafe { _mm256_set1_epi32(constant.cast_signed()) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { _mm256_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        unsafe {
            let (left, right) = (_mm256_slli_epi32::<LEFT>(self.0), _mm256_srli_epi32::<RIGHT>(self.0));
            Self(_mm256_or_si256(left, right))
        }
    }

    #[inline(always)]
    fn shift<const RIGHT: i32>(self) -> Self {
        Self(unsafe { _mm256_srli_epi32::<RIGHT>(self.0) })
    }

    #[inline(always)]
    fn choose(by: Self, x: Self, y: Self) -> Self {
        Self(unsafe { _mm256_xor_si256(_mm256_and_si256(by.0, _mm256_xor_si256(x.0, y.0)), y.0) })
    }

    #[inline(always)]
    fn majority(x: Self, y: Self, z: Self) -> Self {
        unsafe {
            let either = _mm256_or_si256(x.0, y.0);
            Self(_mm256_or_si256(_mm256_and_si256(x.0, y.0), _mm256_and_si256(either, z.0)))
        }
    }

    #[inline(always)]
    fn parity(x: Self, y: Self, z: Self) -> Self {
        Self(unsafe { _mm256_xor_si256(_mm256_xor_si256(y.0, z.0), x.0) })
    }

    #[inline(always)]
    fn md5_i(x: Self, y: Self, z: Self) -> Self {
        unsafe {
            let not_z = _mm256_xor_si256(z.0, _mm256_set1_epi32(-1));
            Self(_mm256_xor_si256(_mm256_or_si256(x.0, not_z), y.0))
        }
    }

    #[inline(always)]
    fn add_chosen(sum: Self, by: Self, x: Self, y: Self) -> Self {
        // The reason for the two halves is in the implementation for `u32`.
        unsafe { sum.add(Self(_mm256_andnot_si256(by.0, y.0))).add(Self(_mm256_and_si256(x.0, by.0))) }
    }
}

/// Implements the loads and stores of a vector, and its number of lanes.
macro_rules! vector {
    ($word:ident, $lanes:literal, $load:ident, $store:ident, $transpose:ident) => {
        // SAFETY (all): the arrays have as many words as the vector has lanes. The functions are
        // used only in functions that are compiled for the vector's instructions.
        impl Vector<$lanes> for $word {
            #[inline(always)]
            fn load(words: &[u32; $lanes]) -> Self {
                Self(unsafe { $load(words.as_ptr().cast()) })
            }

            #[inline(always)]
            fn store(self) -> [u32; $lanes] {
                let mut words = [0; $lanes];
                unsafe { $store(words.as_mut_ptr().cast(), self.0) };
                words
            }

            #[inline(always)]
            fn transpose(blocks: [&Block; $lanes]) -> [Self; 16] {
                unsafe { $transpose(blocks) }.map(Self)
            }
        }
    };
}

vector!(One, 1, _mm_loadu_si32, _mm_storeu_si32, words_of_1);
vector!(Eight, 8, _mm256_loadu_si256, _mm256_storeu_si256, words_of_8);
vector!(Eight512, 8, _mm256_loadu_si256, _mm256_storeu_si256, words_of_8);
vector!(Sixteen, 16, _mm512_loadu_si512, _mm512_storeu_si512, words_of_16);

#[inline]
#[target_feature(enable = "sse2")]
fn words_of_1([block]: [&Block; 1]) -> [__m128i; 16] {
    let (words, _) = block.as_chunks();
    std::array::from_fn(|n| _mm_cvtsi32_si128(i32::from_le_bytes(words[n])))
}

/// Returns the words of one block of each stream: sixteen vectors, each with one word of every
/// stream.
#[inline]
#[target_feature(enable = "avx2")]
fn words_of_8(blocks: [&Block; 8]) -> [__m256i; 16] {
    let mut out = [_mm256_setzero_si256(); 16];
    for half in 0..2 {
        // SAFETY: both halves of a block are 32 bytes.
        let row = |n: usize| unsafe { _mm256_loadu_si256(blocks[n].as_ptr().add(half * 32).cast()) };
        // Interleaves the words of two rows, then of four rows, each in both halves of a vector.
        let mut four = [[_mm256_setzero_si256(); 4]; 2];
        for (n, four) in four.iter_mut().enumerate() {
            let (a, b, c, d) = (row(4 * n), row(4 * n + 1), row(4 * n + 2), row(4 * n + 3));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            four[0] = _mm256_unpacklo_epi64(ab, cd);
            four[1] = _mm256_unpackhi_epi64(ab, cd);
            let (ab, cd) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            four[2] = _mm256_unpacklo_epi64(ab, cd);
            four[3] = _mm256_unpackhi_epi64(ab, cd);
        }
        for n in 0..4 {
            out[half * 8 + n] = _mm256_permute2x128_si256::<0x20>(four[0][n], four[1][n]);
            out[half * 8 + 4 + n] = _mm256_permute2x128_si256::<0x31>(four[0][n], four[1][n]);
        }
    }
    out
}

/// Returns the words of one block of each stream; see [`words_of_8`].
#[inline]
#[target_feature(enable = "avx512f")]
fn words_of_16(blocks: [&Block; 16]) -> [__m512i; 16] {
    // SAFETY: a block is 64 bytes.
    let row = |n: usize| unsafe { _mm512_loadu_si512(blocks[n].as_ptr().cast()) };
    let mut four = [[_mm512_setzero_si512(); 4]; 4];
    for (n, four) in four.iter_mut().enumerate() {
        let (a, b, c, d) = (row(4 * n), row(4 * n + 1), row(4 * n + 2), row(4 * n + 3));
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        four[0] = _mm512_unpacklo_epi64(ab, cd);
        four[1] = _mm512_unpackhi_epi64(ab, cd);
        let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        four[2] = _mm512_unpacklo_epi64(ab, cd);
        four[3] = _mm512_unpackhi_epi64(ab, cd);
    }
    // Each quarter of `four[i][n]` has word n, n + 4, n + 8 or n + 12 of the rows 4i to 4i + 3.
    let mut out = [_mm512_setzero_si512(); 16];
    for n in 0..4 {
        let low = _mm512_shuffle_i32x4::<0x44>(four[0][n], four[1][n]);
        let high = _mm512_shuffle_i32x4::<0x44>(four[2][n], four[3][n]);
        out[n] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[n + 4] = _mm512_shuffle_i32x4::<0xdd>(low, high);
        let low = _mm512_shuffle_i32x4::<0xee>(four[0][n], four[1][n]);
        let high = _mm512_shuffle_i32x4::<0xee>(four[2][n], four[3][n]);
        out[n + 8] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[n + 12] = _mm512_shuffle_i32x4::<0xdd>(low, high);
    }
    out
}
