//! Facts about an existing object, with a record or without.

pub(crate) mod foreign;
pub(crate) mod place;
pub(crate) mod predecessor;
pub(crate) mod versitygw;
