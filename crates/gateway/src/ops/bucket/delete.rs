use http::StatusCode;
use s3_wire::Result;

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

    async fn perform(self, call: Call<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        call.backend().delete_bucket(call.backend_cx, bucket).await.map_err(call.failed())?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}
