//! Names of the mark of a `.slipway` that the server made ([`marks`](crate::tree::marks)).

/// The extended attribute that is the mark, on file systems with attributes.
pub(crate) const ATTRIBUTE: &str = "user.slipway.own";

/// The mark, on file systems without attributes, or if an operator made it: a file in the
/// directory, with the same owner.
pub(crate) const FILE: &str = ".slipway,own";
