//! Names in the root of what waits to be removed.

use s3_types::BucketName;

use crate::unique;

/// What the names of such directories start with; then come the bucket, when it was created, and
/// what makes them unique. Without a bucket, they are of none: what a file system is tried in, or a
/// `.slipway` that is being made.
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
