use iam::Permission;
use std::future::Future;

use s3_wire::Result;

use crate::call::Call;
use crate::outcome::Outcome;

/// Performs an operation: has its typed input, the permissions that it needs, and the work.
pub trait Handler<'a>: Sized + Send {
    /// Reads the input from query and headers, as tolerantly as S3 does.
    fn parse(call: &Call<'a>) -> Result<Self>;

    /// What must be allowed before the work begins. It is more than the operation's own action if,
    /// for example, a source is read.
    fn permissions<'p>(&'p self, call: &Call<'p>) -> Vec<Permission<'p>>
    where
        'a: 'p,
    {
        vec![call.own_permission()]
    }

    /// Does the work.
    fn perform(self, call: Call<'a>) -> impl Future<Output = Result<Outcome>> + Send;
}
