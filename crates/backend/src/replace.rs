use std::sync::Arc;

use s3_types::BucketName;

use crate::bucket::{BucketState, ChangeBucketRequest, OwnerChange};
use crate::context::Context;
use crate::documents::DocumentChanges;
use crate::error::{BackendError, Result};
use crate::storage::Backend;

/// The number of attempts. An attempt fails if others change the documents between its read and its
/// write.
const ATTEMPTS: usize = 10;

/// Changes documents of a bucket, whatever they were before. Fails with
/// [`BackendError::BucketChanged`] if others changed them during each of ten attempts.
pub async fn replace_documents(
    backend: &dyn Backend,
    cx: &Context,
    name: &BucketName,
    changes: &DocumentChanges,
) -> Result<Arc<BucketState>> {
    for _ in 0..ATTEMPTS {
        let state = backend.load_bucket(cx, name).await?;
        let owner = OwnerChange::Kept;
        let request = ChangeBucketRequest { name, expected: &state.tag, changes, owner };
        match backend.change_bucket(cx, request).await {
            Err(BackendError::BucketChanged) => {}
            result => return result,
        }
    }
    Err(BackendError::BucketChanged)
}
