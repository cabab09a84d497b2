//! Names of what becomes a directory by steps ([`conversion`](crate::write::conversion)).

/// The note of a conversion, in `.slipway`.
pub(crate) const ANNOUNCEMENT: &str = "converting";

/// The place of the file in the directory that was prepared, until it is known to be the one that
/// was expected.
pub(crate) const OUT: &str = ".slipway,out";
