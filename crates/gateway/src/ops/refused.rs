use iam::Permission;
use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Result, S3Error};

use super::handler::Handler;
use crate::call::Call;
use crate::outcome::Outcome;

/// An operation of S3 that this server does not have.
pub struct Refused;

impl<'a> Handler<'a> for Refused {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    /// A form has its signature in its body, so that its requester is unknown until that is read.
    fn permissions<'p>(&'p self, call: &Call<'p>) -> Vec<Permission<'p>>
    where
        'a: 'p,
    {
        if call.operation == Operation::PostObject { Vec::new() } else { vec![call.own_permission()] }
    }

    async fn perform(self, call: Call<'a>) -> Result<Outcome> {
        let message = format!("{} is not implemented.", call.operation.name());
        Err(S3Error::with_message(ErrorCode::NotImplemented, message))
    }
}
