//! The rules of a request's bucket.

use std::sync::Arc;

use backend::{BucketState, DocumentKind, LockRules, Versioning};
use iam::{Account, AccountId, BucketAccess, BucketRules};
use s3_types::{DefaultBlock, Kept, ObjectOwnership, PublicAccessBlock};

/// The rules of a bucket whose documents do not say any. All states of a gateway's buckets are read
/// with the same ones.
#[derive(Debug, Clone, Copy, Default)]
pub struct BucketDefaults {
    /// The rule for the owners of objects.
    pub ownership: ObjectOwnership,
    /// Whether public access is blocked.
    pub block: DefaultBlock,
}

/// The rules of a bucket, and whether they can be trusted. They are made once for each state of the
/// bucket, and kept in it.
#[derive(Debug)]
pub struct KnownRules {
    /// The rules.
    pub rules: Arc<BucketRules>,
    /// Whether the bucket keeps versions, for the headers of answers. The storage reads the
    /// document itself.
    pub versioning: Versioning,
    /// True if versions of the bucket may be locked. The storage reads the document itself.
    pub has_locks: bool,
    /// The reason why only root may use the bucket; `None` if others may. The bucket's documents
    /// could be read in any case.
    pub closed: Option<&'static str>,
}

impl KnownRules {
    /// Returns the rules of a bucket. `account` owns buckets whose documents name no owner. It is
    /// never `None`, since the state always holds rules.
    pub fn of<'s>(
        state: &'s BucketState,
        account: &Arc<Account>,
        defaults: BucketDefaults,
    ) -> Option<&'s Self> {
        state.parsed.get_or_make(|| Self::read(state, account, defaults))
    }

    fn read(state: &BucketState, account: &Arc<Account>, defaults: BucketDefaults) -> Self {
        let (owner, closed) = match state.owner.as_deref().map(AccountId::new) {
            None => (Arc::clone(account), None),
            Some(Ok(id)) => (Arc::new(Account::new(id)), None),
            Some(Err(_)) => (Arc::clone(account), Some("its owner is not the id of an account")),
        };
        let versioning = Versioning::of(&state.documents);
        let access = read_access(state, defaults);
        let locks = LockRules::of(&state.documents);
        let closed = closed.or(match (versioning, locks) {
            (Some(_), Ok(_)) => None,
            (None, _) => Some("its versioning configuration has an unknown form"),
            (Some(_), Err(_)) => Some("its Object Lock configuration has an unknown form"),
        });
        let closed = closed.or(access.as_ref().err().copied());
        let policy = state.documents.get(&DocumentKind::Policy).cloned();
        let rules = BucketRules::new(owner, policy, access.unwrap_or_default());
        let (versioning, has_locks) = (versioning.unwrap_or_default(), locks != Ok(None));
        Self { rules: Arc::new(rules), versioning, has_locks, closed }
    }
}

/// Reads what the documents say about access, apart from the policy. The error says which of them
/// has an unknown form: a later build may keep something by it.
fn read_access(state: &BucketState, defaults: BucketDefaults) -> Result<BucketAccess, &'static str> {
    let document = |kind| state.documents.get(&kind).map(|document| &document[..]);
    let ownership = Kept::<ObjectOwnership>::read(document(DocumentKind::OwnershipControls))
        .ok_or("its ownership controls have an unknown form")?;
    let block = Kept::<PublicAccessBlock>::read(document(DocumentKind::PublicAccessBlock))
        .ok_or("its public access block has an unknown form")?;
    let default_block = match defaults.block {
        DefaultBlock::On => PublicAccessBlock::ALL,
        DefaultBlock::Off => PublicAccessBlock::NONE,
    };
    Ok(BucketAccess { ownership: ownership.effective(defaults.ownership), block, default_block })
}
