/// How many streams are of use to [`update_together`](crate::update_together): a multiple of what
/// any processor takes at once.
pub const LANES: usize = 16;

pub(crate) const BLOCK_BYTES: usize = 64;

/// The bytes that a digest takes at a time: sixteen words.
pub(crate) type Block = [u8; BLOCK_BYTES];
