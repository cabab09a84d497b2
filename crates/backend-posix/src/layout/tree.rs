//! Names of files about a tree as a whole.

/// The file that says where the tree's records are kept, in `DIR/.slipway`.
pub(crate) const METADATA: &str = "metadata";
