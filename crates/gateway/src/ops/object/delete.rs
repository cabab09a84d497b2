use backend::DeleteRequest;
use http::StatusCode;
use s3_types::{Conditions, VersionId};
use s3_wire::Result;
use s3_wire::headers::delete_conditions;

use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::version::version_id;
use crate::outcome::Outcome;
use crate::reply;

/// DeleteObject.
pub struct DeleteObject {
    version: Option<VersionId>,
    conditions: Conditions,
}

impl<'a> Handler<'a> for DeleteObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let version = version_id(call.query.get("versionId"))?;
        Ok(Self { version, conditions: delete_conditions(call.headers)? })
    }

    fn about(&self) -> About<'_> {
        About { version: self.version.as_ref(), conditions: Some(&self.conditions) }
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?.of(self.version.as_ref());
        let request = DeleteRequest { object, conditions: &self.conditions, check: None };
        let receipt = storage.delete_object(request).await.map_err(call.failed())?;
        let mut reply = reply::empty(StatusCode::NO_CONTENT);
        reply::set_version(reply.headers_mut(), receipt.version.as_ref());
        if receipt.delete_marker {
            reply::set(reply.headers_mut(), "x-amz-delete-marker", "true");
        }
        let did = Did { object_bytes: None, version: receipt.version };
        Ok(Outcome::done(reply, did))
    }
}
