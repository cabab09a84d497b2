use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use policy::{Kind, Malformed, Policy};
use s3_types::BucketName;

use crate::account::Account;

/// The rules of a bucket about permissions: its owner, and those of its documents that permissions
/// depend on. They are made once for each state of a bucket; [`crate::Authorizer`]s interpret the
/// documents.
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
    /// The compiled policy, once it was asked for.
    compiled: OnceLock<Result<Option<Box<Policy>>, Malformed>>,
}

impl BucketRules {
    /// Makes the rules of a bucket.
    pub const fn new(
        owner: Arc<Account>,
        policy: Option<Bytes>,
        acl: Option<Bytes>,
        public_access_block: Option<Bytes>,
    ) -> Self {
        Self { owner, policy, acl, public_access_block, compiled: OnceLock::new() }
    }

    /// Makes the rules of a bucket without documents.
    pub const fn of_owner(owner: Arc<Account>) -> Self {
        Self::new(owner, None, None, None)
    }

    /// Returns the compiled policy, which is made at the first call. `bucket` is the bucket that
    /// has these rules. An error means that the document is not a valid policy: since it may forbid
    /// anything, other policies must not allow anything either, except the repair of this one.
    pub fn compiled(&self, bucket: &BucketName) -> Result<Option<&Policy>, &Malformed> {
        let compile = || {
            let parse =
                |document: &Bytes| Policy::parse(document, Kind::Bucket(bucket.as_str())).map(Box::new);
            self.policy.as_ref().map(parse).transpose()
        };
        self.compiled.get_or_init(compile).as_ref().map(Option::as_deref)
    }
}
