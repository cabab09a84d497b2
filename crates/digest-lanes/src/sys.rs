//! Vector registers of x86-64: eight streams with AVX2, eight or sixteen with AVX-512, and one with AVX-512, whose rotation and
//! three-way logic make a step shorter than general registers can.
//!
//! All unsafe code of this crate is here. It reads from slices whose lengths were checked, and runs on processors that have what
//! it is compiled for.

#[allow(clippy::wildcard_imports, reason = "the instructions are the language of this file")]
use std::arch::x86_64::*;
use std::array::from_fn;
use std::sync::OnceLock;

use crate::block::{Word, block};
use crate::{BLOCK_BYTES, State};

/// What the processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Nothing of use.
    Scalar,
    /// Eight lanes.
    Avx2,
    /// One, eight or sixteen.
    Avx512,
}

impl Level {
    /// Of this processor.
    pub fn get() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                Self::Avx512
            } else if is_x86_feature_detected!("avx2") {
                Self::Avx2
            } else {
                Self::Scalar
            }
        })
    }
}

/// Adds whole blocks to one state; false if there is no better way than the common one.
pub(crate) fn compress(level: Level, state: &mut State, blocks: &[u8]) -> bool {
    if level == Level::Avx512 {
        // SAFETY: the processor has AVX-512.
        unsafe { compress_1_avx512(state, blocks) };
    }
    level == Level::Avx512
}

/// Adds `blocks` whole blocks to each state; false if the processor has no lanes.
pub(crate) fn compress_each(
    level: Level,
    states: &mut [&mut State],
    inputs: &[&[u8]],
    blocks: usize,
) -> bool {
    let (eight, sixteen): (Kernel<8>, Option<Kernel<16>>) = match level {
        Level::Scalar => return false,
        Level::Avx2 => (compress_8_avx2, None),
        Level::Avx512 => (compress_8_avx512, Some(compress_16_avx512)),
    };
    // SAFETY (both): `level` says that the processor has what the kernels need.
    match sixteen {
        Some(sixteen) if states.len() > 8 => unsafe { in_lanes(sixteen, states, inputs, blocks) },
        _ => unsafe { in_lanes(eight, states, inputs, blocks) },
    }
    true
}

/// Adds blocks to `N` streams. The state's words are those of all streams. To be called on a processor that has what it is compiled for, with inputs of so many blocks.
type Kernel<const N: usize> = unsafe fn(&mut [[u32; N]; 4], &[*const u8; N], usize);

/// Gives each lane of the kernel a stream, in rounds if there are more streams than lanes.
///
/// # Safety
/// The processor must have what the kernel needs.
unsafe fn in_lanes<const N: usize>(
    kernel: Kernel<N>,
    states: &mut [&mut State],
    inputs: &[&[u8]],
    blocks: usize,
) {
    assert!(inputs.iter().all(|input| input.len() / BLOCK_BYTES >= blocks));
    for (states, inputs) in states.chunks_mut(N).zip(inputs.chunks(N)) {
        // A lane without a stream reads the first one's input again, for nothing.
        let pointers = from_fn(|lane| inputs.get(lane).unwrap_or(&inputs[0]).as_ptr());
        let mut lanes = [[0; N]; 4];
        for (lane, state) in states.iter().enumerate() {
            for (words, word) in lanes.iter_mut().zip(**state) {
                words[lane] = word;
            }
        }
        // SAFETY: the caller vouches for the processor; all inputs have so many blocks.
        unsafe { kernel(&mut lanes, &pointers, blocks) };
        for (lane, state) in states.iter_mut().enumerate() {
            **state = lanes.map(|words| words[lane]);
        }
    }
}

/// One stream in the lowest lane.
#[derive(Clone, Copy)]
struct One(__m128i);
/// Eight streams, by AVX2.
#[derive(Clone, Copy)]
struct Eight(__m256i);
/// Eight streams, by AVX-512.
#[derive(Clone, Copy)]
struct Eight512(__m256i);
/// Sixteen streams.
#[derive(Clone, Copy)]
struct Sixteen(__m512i);

/// Words whose processor has AVX-512: each function is one instruction, by the table of its results.
macro_rules! three_way_word {
    ($word:ident, $splat:ident, $add:ident, $rotate:ident, $ternary:ident) => {
        // SAFETY (all): only functions that are compiled for AVX-512 make such words.
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
            fn f(sum: Self, x: Self, y: Self, z: Self) -> Self {
                sum.add(Self(unsafe { $ternary::<0xca>(x.0, y.0, z.0) }))
            }

            #[inline(always)]
            fn g(sum: Self, x: Self, y: Self, z: Self) -> Self {
                sum.add(Self(unsafe { $ternary::<0xe4>(x.0, y.0, z.0) }))
            }

            #[inline(always)]
            fn h(sum: Self, x: Self, y: Self, z: Self) -> Self {
                sum.add(Self(unsafe { $ternary::<0x96>(x.0, y.0, z.0) }))
            }

            #[inline(always)]
            fn i(sum: Self, x: Self, y: Self, z: Self) -> Self {
                sum.add(Self(unsafe { $ternary::<0x39>(x.0, y.0, z.0) }))
            }
        }
    };
}

three_way_word!(One, _mm_set1_epi32, _mm_add_epi32, _mm_rol_epi32, _mm_ternarylogic_epi32);
three_way_word!(Eight512, _mm256_set1_epi32, _mm256_add_epi32, _mm256_rol_epi32, _mm256_ternarylogic_epi32);
three_way_word!(Sixteen, _mm512_set1_epi32, _mm512_add_epi32, _mm512_rol_epi32, _mm512_ternarylogic_epi32);

// SAFETY (all): only functions that are compiled for AVX2 make such words.
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
    fn f(sum: Self, x: Self, y: Self, z: Self) -> Self {
        let mixed = unsafe { _mm256_xor_si256(_mm256_and_si256(x.0, _mm256_xor_si256(y.0, z.0)), z.0) };
        sum.add(Self(mixed))
    }

    #[inline(always)]
    fn g(sum: Self, x: Self, y: Self, z: Self) -> Self {
        // See the scalar one.
        unsafe { sum.add(Self(_mm256_andnot_si256(z.0, y.0))).add(Self(_mm256_and_si256(x.0, z.0))) }
    }

    #[inline(always)]
    fn h(sum: Self, x: Self, y: Self, z: Self) -> Self {
        sum.add(Self(unsafe { _mm256_xor_si256(_mm256_xor_si256(y.0, z.0), x.0) }))
    }

    #[inline(always)]
    fn i(sum: Self, x: Self, y: Self, z: Self) -> Self {
        let not_z = unsafe { _mm256_xor_si256(z.0, _mm256_set1_epi32(-1)) };
        sum.add(Self(unsafe { _mm256_xor_si256(_mm256_or_si256(x.0, not_z), y.0) }))
    }
}

/// # Safety
/// The processor must have AVX-512.
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn compress_1_avx512(state: &mut State, blocks: &[u8]) {
    let mut words = state.map(|word| One(_mm_cvtsi32_si128(word.cast_signed())));
    for bytes in blocks.chunks_exact(BLOCK_BYTES) {
        let word = from_fn(|n| {
            let word =
                i32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]]);
            One(_mm_cvtsi32_si128(word))
        });
        words = block(words, &word);
    }
    *state = words.map(|word| _mm_cvtsi128_si32(word.0).cast_unsigned());
}

/// Defines a [`Kernel`].
macro_rules! kernel {
    ($features:literal, $name:ident, $lanes:literal, $word:ident, $load:ident, $store:ident, $words_of:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $name(lanes: &mut [[u32; $lanes]; 4], inputs: &[*const u8; $lanes], blocks: usize) {
            // SAFETY (both): as many words as the vector has lanes.
            let mut state = lanes.each_ref().map(|words| $word(unsafe { $load(words.as_ptr().cast()) }));
            for n in 0..blocks {
                // SAFETY: the inputs have so many blocks.
                let word = unsafe { $words_of(inputs, n * BLOCK_BYTES) };
                state = block(state, &word.map($word));
            }
            for (words, word) in lanes.iter_mut().zip(state) {
                unsafe { $store(words.as_mut_ptr().cast(), word.0) };
            }
        }
    };
}

kernel!("avx2", compress_8_avx2, 8, Eight, _mm256_loadu_si256, _mm256_storeu_si256, words_of_8);
kernel!(
    "avx512f,avx512vl",
    compress_8_avx512,
    8,
    Eight512,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    words_of_8
);
kernel!("avx512f", compress_16_avx512, 16, Sixteen, _mm512_loadu_si512, _mm512_storeu_si512, words_of_16);

/// A block of each input, as vectors of one word of each.
///
/// # Safety
/// There must be a block at `offset` of each input.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn words_of_8(inputs: &[*const u8; 8], offset: usize) -> [__m256i; 16] {
    let mut out = [_mm256_setzero_si256(); 16];
    for half in 0..2 {
        // SAFETY: both halves of the block are 32 bytes.
        let row = |n: usize| unsafe { _mm256_loadu_si256(inputs[n].add(offset + half * 32).cast()) };
        // Two rows' words in turn, then four rows' words, each of them in both halves of a vector.
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

/// See [`words_of_8`].
///
/// # Safety
/// There must be a block at `offset` of each input.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn words_of_16(inputs: &[*const u8; 16], offset: usize) -> [__m512i; 16] {
    // SAFETY: a block is 64 bytes.
    let row = |n: usize| unsafe { _mm512_loadu_si512(inputs[n].add(offset).cast()) };
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
    // A quarter of `four[i][n]` has word n, n + 4, n + 8 or n + 12 of rows 4i to 4i + 3.
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
