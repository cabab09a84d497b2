use std::sync::Arc;

use s3_types::{RequesterFacts, UnixAccount, UnixIdentity};

/// The requester of storage calls. It is made once for each request; a clone, for work that
/// outlives the request, copies nothing.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The request's id, for a storage that logs it; empty for the gateway's own calls. The tree of
    /// files does not use it.
    pub request_id: Arc<str>,
    /// The requester; `None` for anonymous requests, and for the gateway's own calls.
    pub requester: Option<Arc<RequesterFacts>>,
    /// The POSIX identity of the requester, if that is known and used.
    pub unix: Option<Arc<UnixIdentity>>,
}

impl Context {
    /// Returns the uid and gid of the requester on the file system, if they are known.
    pub fn unix_account(&self) -> Option<UnixAccount> {
        self.unix.as_ref().map(|unix| unix.account)
    }
}
