use std::sync::Arc;

use s3_types::UnixAccount;

/// On whose behalf a storage call is made.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The request's id, for logs.
    pub request_id: Arc<str>,
    /// Who the requester is to the file system; `None` for strangers, for those of whom it is not
    /// known, and for the gateway's own calls. Every call has it, whether the storage makes use of
    /// it or not.
    pub unix_account: Option<UnixAccount>,
}
