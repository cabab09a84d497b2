use std::sync::Arc;

use s3_types::{RequesterFacts, UnixAccount};

/// On whose behalf storage calls are made. It is made once for a request; a clone, for work that
/// outlives it, copies nothing.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The request's id, for logs; empty for the gateway's own calls.
    pub request_id: Arc<str>,
    /// Who asks; `None` for strangers, and for the gateway's own calls.
    pub requester: Option<Arc<RequesterFacts>>,
}

impl Context {
    /// Who the requester is to the file system, if that is known.
    pub fn unix_account(&self) -> Option<UnixAccount> {
        self.requester.as_ref().and_then(|requester| requester.unix_account)
    }
}
