use backend::BackendError;
use http::StatusCode;
use s3_wire::Result;

use crate::access::Authorized;
use crate::call::Call;
use crate::errors::has_versions;
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
            BackendError::BucketNotEmpty if call.versioning.is_set() => has_versions(bucket.as_str()),
            error => call.fail(error),
        })?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}
