use http::{HeaderMap, StatusCode};
use s3_types::Conditions;
use s3_wire::headers::delete_conditions;
use s3_wire::{Result, S3Error};

use crate::ops::{Operation, check_version};
use crate::pipeline::Call;
use crate::reply::{self, Reply};

/// DeleteObject.
pub struct DeleteObject {
    conditions: Conditions,
}

impl<'a> Operation<'a> for DeleteObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        refuse_bypass(call.headers)?;
        check_version(call.query.get("versionId"))?;
        Ok(Self { conditions: delete_conditions(call.headers)? })
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let object = call.object()?;
        call.backend()
            .delete_object(&call.backend_context(), object, &self.conditions)
            .await
            .map_err(call.failed())?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}

/// Refuses to bypass a retention, be it to say that it is not to be bypassed: S3 takes the header in buckets with Object Lock
/// alone, and there are none.
pub fn refuse_bypass(headers: &HeaderMap) -> Result<()> {
    const NAME: &str = "x-amz-bypass-governance-retention";
    if !headers.contains_key(NAME) {
        return Ok(());
    }
    let message = "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets.";
    Err(S3Error::argument_named(NAME, message))
}
