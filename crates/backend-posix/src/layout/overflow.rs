//! The directory of long records' second parts.

/// Directory of companions, in `.slipway`.
pub(crate) const OVERFLOW: &str = "overflow";
