use backend::DeleteRequest;
use http::StatusCode;
use s3_types::Conditions;
use s3_wire::Result;
use s3_wire::headers::delete_conditions;

use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::version::check_version;
use crate::reply::{self, Reply};

/// DeleteObject.
pub struct DeleteObject {
    conditions: Conditions,
}

impl<'a> Handler<'a> for DeleteObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        check_version(call.query.get("versionId"))?;
        Ok(Self { conditions: delete_conditions(call.headers)? })
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let object = call.object()?;
        call.backend()
            .delete_object(&call.backend_context(), DeleteRequest { object, conditions: &self.conditions })
            .await
            .map_err(call.failed())?;
        Ok(reply::empty(StatusCode::NO_CONTENT))
    }
}
