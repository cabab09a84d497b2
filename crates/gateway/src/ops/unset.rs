use backend::{ReadRequest, ReadSelector};
use s3_types::Conditions;
use s3_wire::Result;
use s3_wire::unset::UnsetRequest;

use super::handler::Handler;
use super::version::check_version;
use crate::call::Call;
use crate::reply::{self, Reply};

/// A read of configuration that nobody can have set.
pub struct Unset;

impl<'a> Handler<'a> for Unset {
    fn parse(call: &Call<'a>) -> Result<Self> {
        check_version(call.query.get("versionId"))?;
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let (bucket, backend, cx) = (call.bucket()?, call.backend(), call.backend_context());
        let request = UnsetRequest {
            operation: call.operation,
            query: call.query,
            bucket: bucket.as_str(),
            owner: call.owner(),
        };
        if request.asks_for_object() {
            let none = Conditions::default();
            let read =
                ReadRequest { object: call.object()?, selector: ReadSelector::Whole, conditions: &none };
            backend.head_object(&cx, read).await.map_err(call.failed())?;
        } else {
            backend.head_bucket(&cx, bucket).await.map_err(call.failed())?;
        }
        Ok(reply::ok_xml(request.answer()?))
    }
}
