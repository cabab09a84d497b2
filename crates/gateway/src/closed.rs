//! Buckets that are closed to all but root, since it is not known what their documents forbid.

use std::fmt;

use backend::BucketState;
use backend::seldom::SeldomEach;
use iam::Requester;
use s3_types::BucketName;
use s3_wire::{ErrorCode, Result, S3Error};

/// The cause of the refusal, which is logged once a minute for each bucket, and not with each
/// request.
#[derive(Debug)]
pub struct BucketClosed;

impl fmt::Display for BucketClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bucket is closed")
    }
}

impl std::error::Error for BucketClosed {}

/// Refuses a requester other than root if the bucket is closed.
pub fn check(state: &BucketState, requester: &Requester) -> Result<()> {
    static LOGGED: SeldomEach<BucketName> = SeldomEach::every_minute();
    let Some(why) = &state.closed else { return Ok(()) };
    if LOGGED.is_due(state.name.clone()) {
        tracing::error!(
            bucket = state.name.as_str(),
            %why,
            "closed to all but root, who can put or delete its documents; `slipway fsck` lists all closed buckets"
        );
    }
    if requester.is_root() {
        Ok(())
    } else {
        Err(S3Error::new(ErrorCode::InternalError).caused_by(BucketClosed))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::sync::Arc;

    use backend::{BucketTag, Documents, Parsed};
    use iam::{AccessKeyId, Account, AccountId, Credential, KeyKind, Principal, SecretKey, Session};
    use s3_types::Timestamp;

    use super::*;

    fn state(closed: Option<&str>) -> BucketState {
        BucketState {
            name: BucketName::new("bucket").unwrap(),
            created: Timestamp::UNIX_EPOCH,
            owner: None,
            documents: Documents::new(),
            tag: BucketTag::new(&[]),
            closed: closed.map(Into::into),
            parsed: Parsed::default(),
        }
    }

    /// One with a key of this kind. The root of another account is not the server's.
    fn signer(key_kind: KeyKind) -> Requester {
        let principal = Principal::root(Arc::new(Account::new(AccountId::new("111122223333").unwrap())), None);
        let (access_key, secret_key) = (AccessKeyId::new("somebody"), SecretKey::new("a-secret-of-mine"));
        let credential = Credential { access_key: access_key.unwrap(), secret_key: secret_key.unwrap() };
        Requester::Session(Arc::new(Session::new(principal, credential, key_kind)))
    }

    #[test]
    fn only_root_gets_into_a_closed_bucket() {
        let requesters = [signer(KeyKind::Root), signer(KeyKind::User), Requester::Anonymous];
        let refused = |closed| requesters.each_ref().map(|requester| check(&state(closed), requester).err());
        assert!(refused(None).iter().all(Option::is_none));
        let [root, other, anonymous] = refused(Some("damaged"));
        assert!(root.is_none());
        for error in [other.unwrap(), anonymous.unwrap()] {
            assert_eq!(error.code(), ErrorCode::InternalError);
            assert!(error.source().unwrap().is::<BucketClosed>());
        }
    }
}
