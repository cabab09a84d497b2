//! Names of the mark of a `.slipway` that the server made ([`marks`](crate::tree::marks)).

/// The name of the extended attribute that is the mark, on file systems with attributes.
pub(crate) const ATTRIBUTE: &str = "user.slipway.own";

/// The name of the file that is the mark, on file systems without attributes, or if an operator
/// made it. It is in the directory, and has the same owner.
pub(crate) const FILE: &str = ".slipway,own";
