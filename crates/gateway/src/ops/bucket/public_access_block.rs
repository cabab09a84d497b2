use backend::DocumentKind;
use http::StatusCode;
use s3_wire::Result;

use super::documents::change;
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// DeletePublicAccessBlock. This server cannot put such a configuration, but clients delete it
/// before they put a public policy, and a later version may have left one.
pub struct DeletePublicAccessBlock;

impl<'a> Handler<'a> for DeletePublicAccessBlock {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        change(&call, DocumentKind::PublicAccessBlock, None).await?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}
