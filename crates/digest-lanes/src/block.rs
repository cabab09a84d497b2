/// The best number of streams for one call of [`update_together`](crate::update_together): a
/// multiple of the number of lanes of every kernel.
pub const LANES: usize = 16;

pub(crate) const BLOCK_BYTES: usize = 64;

/// The bytes of one block, which a digest takes at once: sixteen words.
pub(crate) type Block = [u8; BLOCK_BYTES];
