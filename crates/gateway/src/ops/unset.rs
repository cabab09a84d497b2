use std::borrow::Cow;

use backend::{ReadRequest, ReadSelector};
use iam::ConditionKey;
use s3_types::{Conditions, S3Action, VersionId};
use s3_wire::Result;
use s3_wire::unset::UnsetRequest;

use super::handler::{Handler, Needs};
use super::values;
use super::version::{on_version, version_id};
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;
use crate::reply;

/// A read of a configuration that cannot be set here.
pub struct Unset {
    version: Option<VersionId>,
}

impl Unset {
    fn action(&self, call: &Call<'_>) -> S3Action {
        on_version(call.action(), self.version.as_ref())
    }
}

impl<'a> Handler<'a> for Unset {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { version: version_id(call.query.get("versionId"))? })
    }

    fn needs(&self, call: &Call<'a>) -> Needs {
        Needs::Now(self.action(call).into())
    }

    fn value(&self, _: &Call<'a>, key: ConditionKey) -> Option<Cow<'_, str>> {
        values::of_version(self.version.as_ref(), key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let request = UnsetRequest {
            operation: call.operation,
            query: call.query,
            bucket: bucket.as_str(),
            owner: call.owner(),
        };
        if request.asks_for_object() || self.version.is_some() {
            let none = Conditions::default();
            let object = call.object()?.of(self.version.as_ref());
            let read = ReadRequest { object, selector: ReadSelector::Whole, conditions: &none };
            storage.find_object(self.action(&call), read).await.map_err(call.failed())?;
        } else {
            call.require_bucket().await?;
        }
        Ok(reply::ok_xml(request.answer()?).into())
    }
}
