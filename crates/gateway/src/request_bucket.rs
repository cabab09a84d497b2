//! The bucket of a request, which is looked for before the request is checked further.

use std::sync::Arc;

use backend::{BackendError, BucketState, Context};
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
    /// `None` if there is no bucket, or if the request makes it.
    name: Option<&'a BucketName>,
    /// What is known of the bucket, once it was found.
    state: Option<Arc<BucketState>>,
    /// The state was read for this request, so that the bucket exists.
    is_new: bool,
}

impl<'a> RequestBucket<'a> {
    /// The bucket of `resource`, which was not looked for yet.
    pub fn of(
        storage: &'a Storage,
        cx: &'a Context,
        account: &'a Arc<Account>,
        resource: Resource<'a>,
    ) -> Self {
        Self { storage, cx, account, resource, name: resource.bucket, state: None, is_new: false }
    }

    /// Looks for the bucket; `NoSuchBucket` if it does not exist. CreateBucket has none to be
    /// found.
    pub async fn find(mut self, operation: Operation, requester: &Requester) -> Result<Self> {
        self.name = self.name.filter(|_| operation != Operation::CreateBucket);
        let Some(name) = self.name else { return Ok(self) };
        let known = self.storage.known_bucket(name);
        self.is_new = known.is_none();
        let state = match known {
            Some(state) => state,
            None => self.storage.load_bucket(self.cx, name).await.map_err(|error| self.about(error))?,
        };
        closed::check(&state, self.account, requester)?;
        self.state = Some(state);
        Ok(self)
    }

    /// The rules of the bucket, as they were when it was found.
    pub fn rules(&self) -> Option<&Arc<BucketRules>> {
        KnownRules::of(self.state.as_deref()?, self.account).map(|known| &known.rules)
    }

    /// The answer to a request that is refused with `error`: `NoSuchBucket` if the bucket does not
    /// exist, else `error`.
    ///
    /// S3 looks for the bucket before it checks anything else of a request. A state that is
    /// remembered may be that of a bucket that is gone. If nothing is wrong with the request, its
    /// operation meets the bucket, so that only a request that is refused has to look for it.
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

/// True for an error that only the storage reports, and only of a bucket that it has opened, or
/// that says nothing of the request.
fn shows_bucket(error: &S3Error) -> bool {
    match error.code() {
        ErrorCode::NoSuchBucket | ErrorCode::NoSuchKey => true,
        ErrorCode::NotImplemented => false,
        _ => error.status().is_server_error(),
    }
}
