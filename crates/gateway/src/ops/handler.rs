use std::borrow::Cow;
use std::future::Future;

use iam::ConditionKey;
use s3_types::ActionSet;
use s3_wire::Result;

use super::about::About;
use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;

/// Performs an operation: defines its typed input, the permissions that it needs, and the work.
pub trait Handler<'a>: Sized + Send {
    /// Reads the input from query and headers, as tolerantly as S3 does.
    fn parse(call: &Call<'a>) -> Result<Self>;

    /// The version that the request names, and its conditions.
    fn about(&self) -> About<'_> {
        About::default()
    }

    /// The actions that must be allowed on the target before anything is done: by default, the
    /// operation's own. None for an operation that has to read its document first, and then asks
    /// ([`Call::authorize`]).
    fn needs(&self, call: &Call<'a>) -> ActionSet {
        self.about().actions(call.action())
    }

    /// The value of a condition key, as the operation will act on it, except for keys of
    /// [`Handler::about`]. `None` if the request has no value, or if the key does not concern this
    /// operation.
    fn value<'v>(&'v self, _call: &'v Call<'a>, _key: ConditionKey) -> Option<Cow<'v, str>> {
        None
    }

    /// Does the work, with the permissions that [`Handler::needs`] names.
    fn perform(self, call: Call<'a>, storage: Authorized<'a>)
    -> impl Future<Output = Result<Outcome>> + Send;
}
