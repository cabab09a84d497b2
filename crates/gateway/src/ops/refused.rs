use s3_wire::{ErrorCode, Result, S3Error};

use super::Operation;
use crate::pipeline::Call;
use crate::reply::Reply;

/// An operation of S3's that this server lacks.
pub struct Refused;

impl<'a> Operation<'a> for Refused {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let message = format!("{} is not implemented.", call.operation.name());
        Err(call.in_bucket(S3Error::with_message(ErrorCode::NotImplemented, message)).await)
    }
}
