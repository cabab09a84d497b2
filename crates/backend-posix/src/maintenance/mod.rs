//! What is done for a bucket now and then: what crashes and time left behind is removed.

pub(crate) mod companions;
pub(crate) mod sweep;
