use std::future::Future;

use iam::ConditionKey;
use policy::Value;
use s3_types::ActionSet;
use s3_wire::Result;

use super::about::About;
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;

/// The implementation of an operation: its typed input, the permissions that it needs, and the
/// work.
pub trait Handler<'a>: Sized + Send {
    /// Reads the input from the query and the headers, as tolerantly as S3 does.
    fn parse(call: &Call<'a>) -> Result<Self>;

    /// Returns the version that the request names, and its conditions.
    fn about(&self) -> About<'_> {
        About::default()
    }

    /// Returns the actions that must be allowed on the target before anything is done: by default,
    /// the operation's own. An operation that has to read its document first returns none, and asks
    /// later ([`Call::authorize`]).
    fn needs(&self, call: &Call<'a>) -> ActionSet {
        self.about().actions(call.action())
    }

    /// Returns the value of a condition key that depends on the operation, except for the keys of
    /// [`Handler::about`]. `None` if the request has no value, or if the key does not concern this
    /// operation.
    fn value<'v>(&'v self, _call: &'v Call<'a>, _key: ConditionKey) -> Value<'v> {
        Value::Absent
    }

    /// Does the work, with the permissions that [`Handler::needs`] names.
    fn perform(self, call: Call<'a>, storage: Authorized<'a>)
    -> impl Future<Output = Result<Outcome>> + Send;
}
