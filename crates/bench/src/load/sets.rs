use crate::request::Prepared;

/// Requests by endpoint, since each has its own signature. All endpoints have the same number.
pub(crate) type Sets = Vec<Vec<Prepared>>;
