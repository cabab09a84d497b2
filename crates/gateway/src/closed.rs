//! Buckets whose documents cannot be read. Only root may use them, since it is not known what the
//! documents forbid.

use std::fmt;
use std::sync::Arc;

use backend::BucketState;
use backend::seldom::SeldomEach;
use iam::{Account, Requester};
use s3_types::BucketName;
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::{BucketDefaults, KnownRules};

/// The cause of the refusal. It is logged once a minute for each bucket, not with each request.
#[derive(Debug)]
pub struct BucketClosed;

impl fmt::Display for BucketClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bucket is closed")
    }
}

impl std::error::Error for BucketClosed {}

/// Refuses a requester other than root if the bucket is closed. `account` owns the storage.
///
/// A bucket whose policy cannot be read is not closed: the authorizer denies everything, except
/// that the owner's root may repair the policy. The reason is logged here.
pub fn check(
    state: &BucketState,
    account: &Arc<Account>,
    defaults: BucketDefaults,
    requester: &Requester,
) -> Result<()> {
    static LOGGED: SeldomEach<BucketName> = SeldomEach::every_minute();
    let known = KnownRules::of(state, account, defaults);
    let by_rules = || known.map_or(Some("its rules are unknown"), |known| known.closed);
    let Some(why) = state.closed.as_deref().or_else(by_rules) else {
        if let Some(known) = known.filter(|_| !requester.is_root()) {
            log_bad_policy(state, known);
        }
        return Ok(());
    };
    if LOGGED.is_due(state.name.clone()) {
        tracing::error!(
            bucket = state.name.as_str(),
            %why,
            "a part of a bucket's settings (such as its policy) is at fault: requests of all but root are refused \
             until root replaces or deletes that part; `slipway fsck` lists all such buckets"
        );
    }
    if requester.is_root() {
        Ok(())
    } else {
        Err(S3Error::new(ErrorCode::InternalError).caused_by(BucketClosed))
    }
}

/// Logs the reason if the policy of a bucket cannot be read.
fn log_bad_policy(state: &BucketState, known: &KnownRules) {
    static LOGGED: SeldomEach<BucketName> = SeldomEach::every_minute();
    let Err(why) = known.rules.compiled(&state.name) else { return };
    if LOGGED.is_due(state.name.clone()) {
        tracing::error!(
            bucket = state.name.as_str(),
            %why,
            "the policy of a bucket cannot be read: all requests to the bucket are refused, except those with the \
             gateway's root key. To end this, put another policy or delete this one, with the gateway's root key \
             or as the root user of the account that owns the bucket"
        );
    }
}

#[cfg(test)]
mod tests {
    use backend::{BucketTag, DocumentKind, Documents, Parsed};
    use bytes::Bytes;
    use iam::{AccessKeyId, AccountId, Credential, KeyKind, Principal, SecretKey, Session};
    use s3_types::Timestamp;
    use std::error::Error as _;

    use super::*;

    fn account() -> Arc<Account> {
        Arc::new(Account::new(AccountId::new("111122223333").unwrap()))
    }

    fn state(closed: Option<&str>, owner: Option<&str>) -> BucketState {
        BucketState {
            name: BucketName::new("bucket").unwrap(),
            created: Timestamp::UNIX_EPOCH,
            owner: owner.map(Into::into),
            documents: Documents::new(),
            tag: BucketTag::new(&[]),
            closed: closed.map(Into::into),
            parsed: Parsed::default(),
        }
    }

    /// A requester with a key of this kind, whose account may be another one than the server's.
    fn signer(key_kind: KeyKind) -> Requester {
        let principal = Principal::root(account(), None);
        let (access_key, secret_key) = (AccessKeyId::new("somebody"), SecretKey::new("a-secret-of-mine"));
        let credential = Credential { access_key: access_key.unwrap(), secret_key: secret_key.unwrap() };
        Requester::Session(Arc::new(Session::new(principal, credential, key_kind)))
    }

    #[test]
    fn only_root_gets_into_a_closed_bucket() {
        let requesters = [signer(KeyKind::Root), signer(KeyKind::User), Requester::Anonymous];
        let refused = |closed, owner| {
            let state = state(closed, owner);
            requesters
                .each_ref()
                .map(|requester| check(&state, &account(), BucketDefaults::default(), requester).err())
        };
        for owner in [None, Some("444455556666")] {
            assert!(refused(None, owner).iter().all(Option::is_none));
        }
        for (closed, owner) in [(Some("damaged"), None), (None, Some("nobody"))] {
            let [root, other, anonymous] = refused(closed, owner);
            assert!(root.is_none());
            for error in [other.unwrap(), anonymous.unwrap()] {
                assert_eq!(error.code(), ErrorCode::InternalError);
                assert!(error.source().unwrap().is::<BucketClosed>());
            }
        }
    }

    /// A later build may keep versions by it that this one would destroy.
    #[test]
    fn an_unknown_configuration_closes_its_bucket() {
        let is_refused = |kind, document: &'static [u8]| {
            let documents = Documents::from([(kind, Bytes::from_static(document))]);
            let state = BucketState { documents, ..state(None, None) };
            check(&state, &account(), BucketDefaults::default(), &signer(KeyKind::User)).is_err()
        };
        for (kind, documents) in [
            (DocumentKind::Versioning, [&b"enabled"[..], b"suspended", b"archived"]),
            (DocumentKind::PublicAccessBlock, [b"deleted", b"set BlockPublicAcls", b"set BlockAll"]),
            (DocumentKind::OwnershipControls, [b"deleted", b"BucketOwnerEnforced", b"Nobody"]),
        ] {
            assert_eq!(
                documents.map(|document| is_refused(kind, document)),
                [false, false, true],
                "{kind:?}"
            );
        }
    }
}
