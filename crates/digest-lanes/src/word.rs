//! The values that a digest computes with: one word of one stream in a register, or one word of
//! each stream in a vector.

use std::fmt::Debug;

/// One word of one stream, or one word of each of several streams.
pub trait Word: Copy + Debug + Send + Sync {
    /// Makes a value that has the same word for all streams.
    fn splat(constant: u32) -> Self;

    /// Adds two words modulo 2^32.
    fn add(self, other: Self) -> Self;

    /// Rotates left by `LEFT` bits. `RIGHT` must be 32 - `LEFT`.
    fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;

    /// Shifts right by `RIGHT` bits.
    fn shift<const RIGHT: i32>(self) -> Self;

    /// Returns the bits of `x` where `by` has ones, and those of `y` where it has zeros.
    fn choose(by: Self, x: Self, y: Self) -> Self;

    /// Returns the bits that are set in at least two of the words.
    fn majority(x: Self, y: Self, z: Self) -> Self;

    /// Returns the bits that are set in one or in all three of the words. A step waits for `x`, so
    /// that the code computes first what does not depend on `x`.
    fn parity(x: Self, y: Self, z: Self) -> Self;

    /// Computes MD5's function I, `y ^ (x | !z)`.
    fn md5_i(x: Self, y: Self, z: Self) -> Self;

    /// Returns `sum` plus the result of [`Word::choose`]. A step waits for `x`.
    #[inline(always)]
    fn add_chosen(sum: Self, by: Self, x: Self, y: Self) -> Self {
        sum.add(Self::choose(by, x, y))
    }

    /// Reverses the order of the bytes in each word.
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
        // The two halves have no bits in common, so that they can be added, and the one without `x`
        // is known early.
        sum.add(y & !by).add(x & by)
    }
}
