//! Names of the mark of a `.slipway` that the server made ([`marks`](crate::tree::marks)).

/// The mark where there are attributes.
pub(crate) const ATTRIBUTE: &str = "user.slipway.own";

/// The mark where there are none, or where an operator gave it: a file in the directory, of the
/// same owner.
pub(crate) const FILE: &str = ".slipway,own";
