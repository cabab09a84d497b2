//! Names of records.

/// The name of the attribute that holds a record.
pub(crate) const ATTRIBUTE: &str = "user.slipway";

/// The name of the record of a directory itself, in its folder of records. No key maps to this
/// name.
pub(crate) const OF_DIRECTORY: &str = ".slipway,directory";
