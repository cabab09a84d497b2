use iam::Permission;
use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Result, S3Error};

use super::handler::Handler;
use crate::call::Call;
use crate::outcome::Outcome;

/// An operation of S3's that this server lacks.
pub struct Refused;

impl<'a> Handler<'a> for Refused {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    /// A form's signature is in its body, so that who sends it is a stranger until that is read.
    fn permissions<'p>(&'p self, call: &Call<'p>) -> Vec<Permission<'p>>
    where
        'a: 'p,
    {
        if call.operation == Operation::PostObject { Vec::new() } else { vec![call.own_permission()] }
    }

    async fn perform(self, call: Call<'a>) -> Result<Outcome> {
        let message = format!("{} is not implemented.", call.operation.name());
        Err(call.in_bucket(S3Error::with_message(ErrorCode::NotImplemented, message)).await)
    }
}
