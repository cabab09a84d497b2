use std::sync::Arc;

use bytes::Bytes;

use crate::account::Account;

/// The rules of a bucket about permissions: its owner, and those of its documents that decide. Made
/// once for each state of a bucket; [`crate::Authorizer`]s interpret the documents.
#[derive(Debug, Clone)]
pub struct BucketRules {
    /// The account that owns the bucket.
    pub owner: Arc<Account>,
    /// The policy.
    pub policy: Option<Bytes>,
    /// The ACL.
    pub acl: Option<Bytes>,
    /// The public access block.
    pub public_access_block: Option<Bytes>,
}

impl BucketRules {
    /// Makes the rules of a bucket without documents.
    pub const fn of_owner(owner: Arc<Account>) -> Self {
        Self { owner, policy: None, acl: None, public_access_block: None }
    }
}
