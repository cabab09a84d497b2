//! Facts about an existing object, whether it has a record or not.

pub(crate) mod chain;
pub(crate) mod foreign;
pub(crate) mod place;
pub(crate) mod predecessor;
pub(crate) mod versitygw;
