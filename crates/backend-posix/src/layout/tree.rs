//! Names of what is kept about a tree as a whole.

/// Where the tree says that records are kept, in `DIR/.slipway`.
pub(crate) const METADATA: &str = "metadata";
