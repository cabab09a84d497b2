//! The rules of a request's bucket.

use std::sync::Arc;

use backend::{BucketState, DocumentKind, LockRules, Versioning};
use iam::{Account, AccountId, BucketRules};

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
    pub fn of<'s>(state: &'s BucketState, account: &Arc<Account>) -> Option<&'s Self> {
        state.parsed.get_or_make(|| Self::read(state, account))
    }

    fn read(state: &BucketState, account: &Arc<Account>) -> Self {
        let (owner, closed) = match state.owner.as_deref().map(AccountId::new) {
            None => (Arc::clone(account), None),
            Some(Ok(id)) => (Arc::new(Account::new(id)), None),
            Some(Err(_)) => (Arc::clone(account), Some("its owner is not the id of an account")),
        };
        let document = |kind| state.documents.get(&kind).cloned();
        let [policy, acl, public_access_block] =
            [DocumentKind::Policy, DocumentKind::Acl, DocumentKind::PublicAccessBlock].map(document);
        let rules = BucketRules::new(owner, policy, acl, public_access_block);
        let versioning = Versioning::of(&state.documents);
        let locks = LockRules::of(&state.documents);
        let closed = closed.or(match (versioning, locks) {
            (Some(_), Ok(_)) => None,
            (None, _) => Some("its versioning configuration has an unknown form"),
            (Some(_), Err(_)) => Some("its Object Lock configuration has an unknown form"),
        });
        let (versioning, has_locks) = (versioning.unwrap_or_default(), locks != Ok(None));
        Self { rules: Arc::new(rules), versioning, has_locks, closed }
    }
}
