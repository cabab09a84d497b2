use crate::request::Prepared;

/// Requests for each endpoint, by its number, since the signature covers the endpoint's host. All
/// endpoints have the same number of requests.
pub(crate) type Sets = Vec<Vec<Prepared>>;
