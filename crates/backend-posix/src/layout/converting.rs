//! Names of what becomes a directory by steps ([`conversion`](crate::write::conversion)).

/// What tells of it, in `.slipway`.
pub(crate) const ANNOUNCEMENT: &str = "converting";

/// Where the file is, in the directory that was prepared, until it is known to be the one that was
/// expected.
pub(crate) const OUT: &str = ".slipway,out";
