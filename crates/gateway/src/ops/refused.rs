use s3_types::{ActionSet, VersionId};
use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Result, S3Error};

use super::about::About;
use super::handler::Handler;
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;

/// An operation of S3 that this server does not have.
pub struct Refused {
    version: Option<VersionId>,
}

impl<'a> Handler<'a> for Refused {
    fn parse(call: &Call<'a>) -> Result<Self> {
        // What is wrong with one does not matter to a refusal.
        Ok(Self { version: call.query.get("versionId").and_then(|id| VersionId::new(id).ok()) })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    /// Returns no actions for a form: its signature is in its body, so that its requester is
    /// unknown until the body is read.
    fn needs(&self, call: &Call<'a>) -> ActionSet {
        match call.operation {
            Operation::PostObject => ActionSet::NONE,
            _ => self.about().actions(call.action()),
        }
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let message = format!("{} is not implemented.", call.operation.name());
        Err(S3Error::with_message(ErrorCode::NotImplemented, message))
    }
}
