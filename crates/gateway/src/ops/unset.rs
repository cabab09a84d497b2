use backend::{ReadRequest, ReadSelector};
use s3_types::{Conditions, VersionId};
use s3_wire::Result;
use s3_wire::operation::Operation;
use s3_wire::unset::UnsetRequest;

use super::about::About;
use super::handler::Handler;
use super::version::{shown, version_id};
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;
use crate::reply;

/// A request for a configuration that cannot be set on this server.
pub struct Unset {
    version: Option<VersionId>,
}

impl<'a> Handler<'a> for Unset {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { version: version_id(call.query.get("versionId"))? })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
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
            let read = ReadRequest {
                object,
                selector: ReadSelector::Whole,
                conditions: &none,
                with_lock: false,
                check: None,
            };
            let found = storage.find_object(call.action(), read).await;
            let version = found.map_err(call.failed())?;
            let mut reply = reply::ok_xml(request.answer()?);
            let is_shown = call.operation == Operation::GetObjectAcl;
            let version = shown(version, call.versioning).filter(|_| is_shown);
            reply::set_version(reply.headers_mut(), version.as_ref());
            return Ok(reply.into());
        }
        call.require_bucket().await?;
        Ok(reply::ok_xml(request.answer()?).into())
    }
}
