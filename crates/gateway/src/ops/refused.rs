use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Result, S3Error};

use super::handler::{Handler, Needs};
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;

/// An operation of S3 that this server does not have.
pub struct Refused;

impl<'a> Handler<'a> for Refused {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    /// A form has its signature in its body, so that its requester is unknown until that is read.
    fn needs(&self, call: &Call<'a>) -> Needs {
        if call.operation == Operation::PostObject { Needs::Later } else { Needs::Now(call.action().into()) }
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let message = format!("{} is not implemented.", call.operation.name());
        Err(S3Error::with_message(ErrorCode::NotImplemented, message))
    }
}
