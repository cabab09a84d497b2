use http::StatusCode;
use s3_wire::Result;

use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// HeadBucket.
pub struct HeadBucket;

impl<'a> Handler<'a> for HeadBucket {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        call.require_bucket().await?;
        let mut reply = reply::empty(StatusCode::OK);
        reply::set(reply.headers_mut(), "x-amz-bucket-region", &call.gateway.signing.region);
        reply::set(reply.headers_mut(), "x-amz-access-point-alias", "false");
        reply::set(reply.headers_mut(), "x-amz-bucket-arn", bucket.arn());
        Ok(reply.into())
    }
}
