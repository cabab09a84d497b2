use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use policy::{Kind, Malformed, Policy};
use s3_types::{BucketName, Kept, ObjectOwnership, PublicAccessBlock};

use crate::account::Account;

/// The rules of a bucket about access, apart from its policy.
#[derive(Debug, Clone)]
pub struct BucketAccess {
    /// The rule for the owners of objects.
    pub ownership: ObjectOwnership,
    /// The public access block.
    pub block: Kept<PublicAccessBlock>,
    /// The public access block of a bucket that has no document about it.
    pub default_block: PublicAccessBlock,
}

/// The rules of a bucket without documents, where no option says anything else.
impl Default for BucketAccess {
    fn default() -> Self {
        Self {
            ownership: ObjectOwnership::default(),
            block: Kept::Default,
            default_block: PublicAccessBlock::ALL,
        }
    }
}

/// The rules of a bucket about permissions: its owner, and those of its documents that permissions
/// depend on. They are made once for each state of a bucket; [`crate::Authorizer`]s interpret them.
#[derive(Debug, Clone)]
pub struct BucketRules {
    /// The account that owns the bucket.
    pub owner: Arc<Account>,
    /// The policy.
    pub policy: Option<Bytes>,
    /// The rules in the other documents.
    pub access: BucketAccess,
    /// The compiled policy, once it was asked for.
    compiled: OnceLock<Result<Option<Box<Policy>>, Malformed>>,
    /// True if the policy is public, once that was asked for.
    is_public: OnceLock<bool>,
}

impl BucketRules {
    /// Makes the rules of a bucket.
    pub const fn new(owner: Arc<Account>, policy: Option<Bytes>, access: BucketAccess) -> Self {
        Self { owner, policy, access, compiled: OnceLock::new(), is_public: OnceLock::new() }
    }

    /// Makes the rules of a bucket without documents.
    pub fn of_owner(owner: Arc<Account>) -> Self {
        Self::new(owner, None, BucketAccess::default())
    }

    /// Returns the same rules with another policy.
    #[must_use]
    pub fn with_policy(&self, policy: Option<Bytes>) -> Self {
        Self::new(Arc::clone(&self.owner), policy, self.access.clone())
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

    /// True if the bucket has a policy that is public. One that cannot be read is not: it denies
    /// everything.
    pub fn has_public_policy(&self, bucket: &BucketName) -> bool {
        let compute = || matches!(self.compiled(bucket), Ok(Some(policy)) if policy.is_public());
        *self.is_public.get_or_init(compute)
    }

    /// Returns the bucket's public access block; `None` if it has none. A bucket whose policy is
    /// public, and which has no document about its block, was public before there were blocks, and
    /// stays so (docs/decisions/0062-access-lists.md).
    pub fn public_access_block(&self, bucket: &BucketName) -> Option<PublicAccessBlock> {
        match self.access.block {
            Kept::Set(block) => Some(block),
            Kept::Deleted => None,
            Kept::Default => {
                let default = self.access.default_block;
                Some(default)
                    .filter(|block| *block != PublicAccessBlock::NONE && !self.has_public_policy(bucket))
            }
        }
    }

    /// Returns the switches that are on for the bucket.
    pub fn blocks(&self, bucket: &BucketName) -> PublicAccessBlock {
        self.public_access_block(bucket).unwrap_or(PublicAccessBlock::NONE)
    }

    /// True if nothing that the policy allows holds for anonymous requesters and other accounts
    /// than the owner's.
    pub fn is_restricted(&self, bucket: &BucketName) -> bool {
        // The policy is looked at only where it matters.
        self.policy.is_some() && self.blocks(bucket).restrict_public_buckets && self.has_public_policy(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::AccountId;

    const PUBLIC: &str = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":"*",
        "Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*"}}"#;

    fn rules(policy: Option<&'static str>, block: Kept<PublicAccessBlock>) -> BucketRules {
        let owner = Arc::new(Account::new(AccountId::new("111122223333").unwrap()));
        let access = BucketAccess { block, ..BucketAccess::default() };
        BucketRules::new(owner, policy.map(|text| Bytes::from_static(text.as_bytes())), access)
    }

    #[test]
    fn what_was_public_before_there_were_blocks_stays_public() {
        let bucket = BucketName::new("bucket").unwrap();
        let restrict = PublicAccessBlock { restrict_public_buckets: true, ..PublicAccessBlock::NONE };
        for (policy, block, wanted, is_restricted) in [
            (None, Kept::Default, Some(PublicAccessBlock::ALL), false),
            (None, Kept::Deleted, None, false),
            (None, Kept::Set(PublicAccessBlock::NONE), Some(PublicAccessBlock::NONE), false),
            (Some(PUBLIC), Kept::Default, None, false),
            (Some(PUBLIC), Kept::Deleted, None, false),
            (Some(PUBLIC), Kept::Set(restrict), Some(restrict), true),
            // One that cannot be read denies everything.
            (Some("{}"), Kept::Default, Some(PublicAccessBlock::ALL), false),
        ] {
            let rules = rules(policy, block);
            assert_eq!(rules.public_access_block(&bucket), wanted, "{policy:?} {block:?}");
            assert_eq!(rules.is_restricted(&bucket), is_restricted, "{policy:?} {block:?}");
        }
        let mut off = rules(None, Kept::Default);
        off.access.default_block = PublicAccessBlock::NONE;
        assert_eq!(off.public_access_block(&bucket), None);
    }
}
