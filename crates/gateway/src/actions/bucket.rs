//! Our own actions about the owners of buckets, for the administrator of the tree.

use std::sync::Arc;

use async_trait::async_trait;
use backend::{BackendError, BucketAttributes, BucketState, ListBucketsQuery, OwnerChange};
use iam::{AccountId, Resource};
use iam_wire::api::{self, BucketOwner, ListBucketOwnersResult};
use iam_wire::{QueryCode, QueryError, Text};
use s3_types::{BucketName, S3Action};

use super::admin::{account_id, open};
use super::call::ActionCall;
use super::error;
use super::perform::{Perform, done, rendered};
use super::target::Target;
use crate::access::{KnownRules, Subject};
use crate::limits::DOCUMENT_CHANGES_MAX;

fn missing(bucket: &str) -> QueryError {
    QueryError::new(QueryCode::NoSuchEntity, format!("The bucket {bucket} cannot be found."))
}

/// Makes the error for a failure of the storage.
fn failed(error: BackendError, bucket: &str) -> QueryError {
    match error {
        BackendError::NoSuchBucket => missing(bucket),
        BackendError::ReadOnly => {
            let message = "Buckets cannot be changed through this server, which only reads (--read-only).";
            QueryError::new(QueryCode::UnmodifiableEntity, message)
        }
        BackendError::BucketChanged => {
            let message = "The bucket was changed by others again and again. Submit the request again.";
            QueryError::new(QueryCode::ConcurrentModification, message)
        }
        BackendError::NoPosixIdentity | BackendError::DeniedToUser { .. } => {
            let message = "A server with --impersonate does not see all buckets: ask a server without.";
            QueryError::new(QueryCode::AccessDenied, message)
        }
        error => error::unavailable(error),
    }
}

#[async_trait]
impl<'f> Perform<'f> for api::SetBucketOwner<'f> {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        let bucket = BucketName::new(self.bucket_name).map_err(|_| missing(self.bucket_name))?;
        Ok(Target::new(format!("arn:aws:s3:::{bucket}")))
    }

    /// Refuses a disabled account: DeleteAccount deletes only disabled accounts, after it has
    /// looked for their buckets, and must not miss any.
    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let id = account_id(self.account_id)?;
        if open(&call.state, &id)?.document().disabled {
            let message = format!("The account {id} is disabled, and gets no buckets.");
            return Err(QueryError::new(QueryCode::InvalidInput, message));
        }
        let bucket = BucketName::new(self.bucket_name).map_err(|_| missing(self.bucket_name))?;
        let of_tree = &call.session.principal.account;
        let owner =
            if of_tree.id() == &id { OwnerChange::Storage } else { OwnerChange::Account(id.as_str()) };
        let (cx, failed) = (call.for_all_buckets(), |error| failed(error, self.bucket_name));
        for _ in 0..DOCUMENT_CHANGES_MAX {
            let state = call.storage.load_bucket(&cx, &bucket).await.map_err(failed)?;
            let rules =
                KnownRules::of(&state, of_tree, call.storage.bucket_defaults()).map(|known| &known.rules);
            let subject = Subject { resource: Resource { bucket: Some(&bucket), key: None }, rules };
            let storage = call.permitted(&cx, subject, S3Action::PutBucketPolicy)?;
            match storage.set_bucket_owner(&bucket, &state.tag, owner).await {
                Err(BackendError::BucketChanged) => {}
                outcome => return outcome.map(|()| done::<Self>(call)).map_err(failed),
            }
        }
        Err(failed(BackendError::BucketChanged))
    }
}

fn shown<'a>(of: &'a BucketAttributes, state: &'a BucketState, call: &'a ActionCall<'_>) -> BucketOwner<'a> {
    let of_tree = Some(call.account_id().as_str()).filter(|_| state.closed.is_none());
    let owner = state.owner.as_deref().or(of_tree);
    let account =
        owner.and_then(|id| AccountId::new(id).ok()).and_then(|id| call.state.account(&id).cloned());
    BucketOwner {
        bucket_name: of.name.as_str().into(),
        account_id: owner.map(Into::into),
        account_name: account.map(|account| account.document().name.to_string().into()),
        create_date: of.created,
        closed: state.closed.as_deref().map(Into::into),
    }
}

#[async_trait]
impl Perform<'_> for api::ListBucketOwners {
    fn target<'v>(&'v self, _: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError> {
        Ok(Target::nothing())
    }

    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError> {
        let cx = call.for_all_buckets();
        let storage = call.permitted(&cx, Subject::default(), S3Action::ListAllMyBuckets)?;
        let query = ListBucketsQuery {
            prefix: String::new(),
            after: self.page.after().map(str::to_owned),
            max_buckets: self.page.most(),
        };
        let page = storage.list_buckets(&query).await.map_err(|error| failed(error, ""))?;
        let mut found: Vec<(BucketAttributes, Arc<BucketState>)> = Vec::new();
        for bucket in page.buckets {
            match call.storage.load_bucket(&cx, &bucket.name).await {
                Ok(state) => found.push((bucket, state)),
                // It is gone by now.
                Err(BackendError::NoSuchBucket) => {}
                Err(error) => return Err(failed(error, bucket.name.as_str())),
            }
        }
        let result = ListBucketOwnersResult {
            buckets: found.iter().map(|(of, state)| shown(of, state, call)).collect(),
            is_truncated: page.next.is_some(),
            marker: page.next.map(|name| Text::Owned(self.page.marker(name.as_str()))),
        };
        Ok(rendered(&result, call))
    }
}
