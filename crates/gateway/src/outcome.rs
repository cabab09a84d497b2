//! The outcome of an operation.

use crate::effects::{Did, Effects};
use crate::reply::Reply;

/// The answer, and what was done.
pub struct Outcome {
    /// The answer.
    pub reply: Reply,
    /// What was done to objects.
    pub effects: Effects,
}

impl Outcome {
    /// An answer that is sent after all work has ended.
    pub const fn done(reply: Reply, did: Did) -> Self {
        Self { reply, effects: Effects::Done(did) }
    }
}

impl From<Reply> for Outcome {
    /// An answer that shows everything the operation did.
    fn from(reply: Reply) -> Self {
        Self::done(reply, Did::default())
    }
}
