//! The values that steps compute with: a word of one stream in a register, or one word of each
//! stream in a vector.

use std::fmt::Debug;

/// One word of one stream, or of several.
pub trait Word: Copy + Debug + Send + Sync {
    /// A value with the same word for all streams.
    fn splat(constant: u32) -> Self;

    /// Adds modulo 2^32.
    fn add(self, other: Self) -> Self;

    /// Rotates left by `LEFT`, which is 32 less `RIGHT`.
    fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;

    /// Shifts right by `RIGHT`.
    fn shift<const RIGHT: i32>(self) -> Self;

    /// The bits of `x` where `by` has ones, and of `y` where it has zeros.
    fn choose(by: Self, x: Self, y: Self) -> Self;

    /// The bits that at least two have.
    fn majority(x: Self, y: Self, z: Self) -> Self;

    /// The bits that one or three have. A step waits for `x`: what does not depend on it comes
    /// first.
    fn parity(x: Self, y: Self, z: Self) -> Self;

    /// MD5's function I, `y ^ (x | !z)`.
    fn md5_i(x: Self, y: Self, z: Self) -> Self;

    /// `sum` and what [`Word::choose`] gives; a step waits for `x`.
    #[inline(always)]
    fn add_chosen(sum: Self, by: Self, x: Self, y: Self) -> Self {
        sum.add(Self::choose(by, x, y))
    }

    /// Reverses the order of bytes.
    #[inline(always)]
    fn swap_bytes(self) -> Self {
        Self::choose(Self::splat(0x00ff_00ff), self.rotate::<8, 24>(), self.rotate::<24, 8>())
    }
}

impl Word for u32 {
    #[inline(always)]
    fn splat(constant: u32) -> Self {
        constant
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        self.rotate_left(LEFT.unsigned_abs())
    }

    #[inline(always)]
    fn shift<const RIGHT: i32>(self) -> Self {
        self >> RIGHT
    }

    #[inline(always)]
    fn choose(by: Self, x: Self, y: Self) -> Self {
        by & (x ^ y) ^ y
    }

    #[inline(always)]
    fn majority(x: Self, y: Self, z: Self) -> Self {
        x & y | z & (x | y)
    }

    #[inline(always)]
    fn parity(x: Self, y: Self, z: Self) -> Self {
        (y ^ z) ^ x
    }

    #[inline(always)]
    fn md5_i(x: Self, y: Self, z: Self) -> Self {
        (x | !z) ^ y
    }

    #[inline(always)]
    fn add_chosen(sum: Self, by: Self, x: Self, y: Self) -> Self {
        // The two halves have no bit in common, so that they can be added, and one is known early.
        sum.add(y & !by).add(x & by)
    }
}
