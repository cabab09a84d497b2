//! Regular maintenance of a bucket: removes leftovers of crashes, and what has expired.

pub(crate) mod companions;
pub(crate) mod sweep;
