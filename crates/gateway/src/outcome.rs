//! What performing an operation came to.

use crate::effects::{Did, Effects};
use crate::reply::Reply;

/// The answer, and what was done.
pub struct Outcome {
    /// The answer.
    pub reply: Reply,
    /// What was done.
    pub effects: Effects,
}

impl Outcome {
    /// An answer after which all is done.
    pub const fn done(reply: Reply, did: Did) -> Self {
        Self { reply, effects: Effects::Done(did) }
    }
}

impl From<Reply> for Outcome {
    /// An answer that is all there is to tell.
    fn from(reply: Reply) -> Self {
        Self::done(reply, Did::default())
    }
}
