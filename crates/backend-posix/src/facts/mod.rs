//! Facts about an existing object, whether it has a record or not.

pub(crate) mod chain;
pub(crate) mod foreign;
pub(crate) mod lock_entry;
pub(crate) mod object_lock;
pub(crate) mod place;
pub(crate) mod predecessor;
pub(crate) mod versitygw;
