//! Names of files that become directories in several steps
//! ([`conversion`](crate::write::conversion)).

/// The note of a conversion, in `.slipway`.
pub(crate) const ANNOUNCEMENT: &str = "converting";

/// The name of the file in the prepared directory, until it is known to be the expected one.
pub(crate) const OUT: &str = ".slipway,out";
