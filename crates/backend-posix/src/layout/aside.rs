//! Names in the root of what waits to be removed.

use s3_types::BucketName;

use crate::base::unique;

/// Prefix of the name of a directory in the root that waits to be removed. The bucket, the time of
/// its creation and a unique part follow. A name without a bucket is of a directory in which a file
/// system is tried, or of a `.slipway` that is being made.
pub(crate) const PREFIX: &str = ".slipway,deleting,";

pub(crate) fn prefix_of(name: &BucketName, identity: &str) -> String {
    format!("{PREFIX}{name},{identity},")
}

/// A name in the root for what gets another one or is removed at once, or by the sweep.
pub(crate) fn aside_of_nothing() -> String {
    format!("{PREFIX},{}", unique::name())
}

/// True for such a name.
pub(crate) fn is_of_nothing(aside: &str) -> bool {
    aside.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(','))
}
