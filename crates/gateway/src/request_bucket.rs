//! Finds the bucket of a request, before the request is checked further.

use std::sync::Arc;

use backend::{BackendError, BucketState, Context, Versioning};
use iam::{Account, BucketRules, Requester, Resource};
use s3_types::BucketName;
use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::{KnownRules, Storage};
use crate::closed;
use crate::errors::from_backend;

/// The bucket that a request names, or the bucket of the source of its copy.
pub struct RequestBucket<'a> {
    storage: &'a Storage,
    cx: &'a Context,
    /// The account that owns the storage.
    account: &'a Arc<Account>,
    resource: Resource<'a>,
    /// The name of the bucket; `None` if the request names none, or makes the bucket.
    name: Option<&'a BucketName>,
    /// The state of the bucket, once it was found.
    state: Option<Arc<BucketState>>,
    /// True if the state was read for this request, so that the bucket exists.
    is_new: bool,
}

impl<'a> RequestBucket<'a> {
    /// Makes the bucket of `resource`, without a search for it.
    pub fn of(
        storage: &'a Storage,
        cx: &'a Context,
        account: &'a Arc<Account>,
        resource: Resource<'a>,
    ) -> Self {
        Self { storage, cx, account, resource, name: resource.bucket, state: None, is_new: false }
    }

    /// Searches for the bucket; fails with `NoSuchBucket` if it does not exist. For CreateBucket,
    /// there is nothing to search for.
    pub async fn find(mut self, operation: Operation, requester: &Requester) -> Result<Self> {
        self.name = self.name.filter(|_| operation != Operation::CreateBucket);
        let Some(name) = self.name else { return Ok(self) };
        let known = self.storage.known_bucket(name);
        self.is_new = known.is_none();
        let state = match known {
            Some(state) => state,
            None => self.storage.load_bucket(self.cx, name).await.map_err(|error| self.about(error))?,
        };
        closed::check(&state, self.account, self.storage.bucket_defaults(), requester)?;
        self.state = Some(state);
        Ok(self)
    }

    /// Returns the rules of the bucket, as they were when it was found.
    pub fn rules(&self) -> Option<&Arc<BucketRules>> {
        self.known().map(|known| &known.rules)
    }

    /// Returns whether the bucket kept versions when it was found.
    pub fn versioning(&self) -> Versioning {
        self.known().map_or(Versioning::Unset, |known| known.versioning)
    }

    /// True if versions of the bucket could be locked when it was found.
    pub fn has_locks(&self) -> bool {
        self.known().is_some_and(|known| known.has_locks)
    }

    fn known(&self) -> Option<&KnownRules> {
        KnownRules::of(self.state.as_deref()?, self.account, self.storage.bucket_defaults())
    }

    /// Returns the answer to a request that is refused with `error`: `NoSuchBucket` if the bucket
    /// does not exist, otherwise `error`.
    ///
    /// S3 checks whether the bucket exists before it checks anything else in a request. The state
    /// in memory may belong to a bucket that was deleted. If the request is valid, its operation
    /// notices that. So only for a refused request, the bucket has to be searched for.
    pub async fn refusal(&self, error: S3Error) -> S3Error {
        let Some(name) = self.name.filter(|_| !self.is_new && !shows_bucket(&error)) else { return error };
        match self.storage.bucket_exists(self.cx, name).await {
            Ok(false) => self.about(BackendError::NoSuchBucket),
            _ => error,
        }
    }

    fn about(&self, error: BackendError) -> S3Error {
        from_backend(error, self.resource)
    }
}

/// True for an error that only the storage reports, after it has opened the bucket, and for one
/// that says nothing about the request.
fn shows_bucket(error: &S3Error) -> bool {
    match error.code() {
        ErrorCode::NoSuchBucket | ErrorCode::NoSuchKey => true,
        ErrorCode::NotImplemented => false,
        _ => error.status().is_server_error(),
    }
}
