use backend::BackendError;
use http::StatusCode;
use s3_types::BucketName;
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// DeleteBucket.
pub struct DeleteBucket;

impl<'a> Handler<'a> for DeleteBucket {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        storage.delete_bucket(bucket).await.map_err(|error| match error {
            BackendError::BucketNotEmpty if call.versioning.is_set() => has_versions(bucket),
            error => call.fail(error),
        })?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}

/// Returns the error for a bucket that seems to be empty if it has nothing but old versions.
fn has_versions(bucket: &BucketName) -> S3Error {
    let message = "The bucket you tried to delete is not empty. You must delete all versions in the bucket.";
    S3Error::with_message(ErrorCode::BucketNotEmpty, message).detail("BucketName", bucket.as_str())
}
