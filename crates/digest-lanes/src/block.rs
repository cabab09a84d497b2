/// The number of streams to give to [`update_together`](crate::update_together) at once: a multiple
/// of the lanes of every kernel.
pub const LANES: usize = 16;

pub(crate) const BLOCK_BYTES: usize = 64;

/// The bytes that a digest takes at once: sixteen words.
pub(crate) type Block = [u8; BLOCK_BYTES];
