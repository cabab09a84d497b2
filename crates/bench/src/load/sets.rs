use crate::request::Prepared;

/// Requests by endpoint, since each has its own signature. All endpoints have as many.
pub(crate) type Sets = Vec<Vec<Prepared>>;
