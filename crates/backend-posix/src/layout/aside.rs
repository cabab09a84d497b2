//! Names in the root of directories that wait to be removed.

use s3_types::BucketName;

use crate::base::unique;

/// The prefix of the name of a directory in the root that waits to be removed. The bucket, the time
/// of its creation and a unique part follow. Names without a bucket belong to directories in which
/// a file system is tested, and to a `.slipway` or a bucket that is being made.
pub(crate) const PREFIX: &str = ".slipway,deleting,";

pub(crate) fn prefix_of(name: &BucketName, identity: &str) -> String {
    format!("{PREFIX}{name},{identity},")
}

/// Returns a name in the root for a directory that is soon renamed or removed, or else swept.
pub(crate) fn aside_of_nothing() -> String {
    format!("{PREFIX},{}", unique::name())
}

/// True for a name as [`aside_of_nothing`] makes it.
pub(crate) fn is_of_nothing(aside: &str) -> bool {
    aside.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(','))
}
