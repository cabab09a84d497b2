//! The outcome of an operation.

use crate::effects::{Did, Effects};
use crate::reply::Reply;

/// The answer of an operation, and its effects.
pub struct Outcome {
    /// The answer.
    pub reply: Reply,
    /// The effects on objects.
    pub effects: Effects,
}

impl Outcome {
    /// Makes the outcome of an operation whose work has ended before its answer is sent.
    pub const fn done(reply: Reply, did: Did) -> Self {
        Self { reply, effects: Effects::Done(did) }
    }
}

impl From<Reply> for Outcome {
    /// Makes the outcome of an operation whose effects are all visible in its answer.
    fn from(reply: Reply) -> Self {
        Self::done(reply, Did::default())
    }
}
