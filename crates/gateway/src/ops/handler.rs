use std::borrow::Cow;
use std::future::Future;

use iam::ConditionKey;
use s3_types::ActionSet;
use s3_wire::Result;

use crate::access::Authorized;
use crate::call::Call;
use crate::outcome::Outcome;

/// The permissions that an operation needs on its own target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// These actions, before anything else is done.
    Now(ActionSet),
    /// Those that the request's document says: the operation asks once it has read it.
    Later,
}

impl Needs {
    /// The actions that are asked for before the work.
    pub fn now(self) -> ActionSet {
        match self {
            Self::Now(actions) => actions,
            Self::Later => ActionSet::NONE,
        }
    }
}

/// Performs an operation: has its typed input, the permissions that it needs, and the work.
pub trait Handler<'a>: Sized + Send {
    /// Reads the input from query and headers, as tolerantly as S3 does.
    fn parse(call: &Call<'a>) -> Result<Self>;

    /// What must be allowed on the target: the operation's own action, unless it says otherwise.
    fn needs(&self, call: &Call<'a>) -> Needs {
        Needs::Now(call.action().into())
    }

    /// The value of a condition key, as the operation will act on it. `None` if the request has
    /// none, or if the key is not about this operation.
    fn value<'v>(&'v self, _call: &'v Call<'a>, _key: ConditionKey) -> Option<Cow<'v, str>> {
        None
    }

    /// Does the work, with what [`Handler::needs`] asked for.
    fn perform(self, call: Call<'a>, storage: Authorized<'a>)
    -> impl Future<Output = Result<Outcome>> + Send;
}
