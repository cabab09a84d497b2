use s3_wire::{Result, xml};

use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// GetBucketLocation.
pub struct GetBucketLocation;

impl<'a> Handler<'a> for GetBucketLocation {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        call.require_bucket().await?;
        // S3 has no name for its first region here.
        let region = Some(call.gateway.signing.region.as_str()).filter(|region| *region != "us-east-1");
        Ok(reply::ok_xml(xml::location_constraint(region)).into())
    }
}
