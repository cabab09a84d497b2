use iam::Permission;
use std::future::Future;

use s3_wire::Result;

use crate::call::Call;
use crate::outcome::Outcome;

/// What performs an operation: typed input, what it needs to be allowed, and the work.
pub trait Handler<'a>: Sized + Send {
    /// Reads the input from query and headers. What S3 forgives is forgiven here.
    fn parse(call: &Call<'a>) -> Result<Self>;

    /// What must be allowed before the work begins; more than the operation's own action where,
    /// say, a source is read.
    fn permissions<'p>(&'p self, call: &Call<'p>) -> Vec<Permission<'p>>
    where
        'a: 'p,
    {
        vec![call.own_permission()]
    }

    /// Does the work.
    fn perform(self, call: Call<'a>) -> impl Future<Output = Result<Outcome>> + Send;
}
