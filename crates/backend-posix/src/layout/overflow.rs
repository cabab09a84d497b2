//! Where the rest of long records is.

/// Where companions are, in `.slipway`.
pub(crate) const OVERFLOW: &str = "overflow";
