//! Regular maintenance of a bucket: the removal of what crashes have left, and of what has expired.

pub(crate) mod chains;
pub(crate) mod companions;
pub(crate) mod sweep;
