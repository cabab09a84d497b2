//! The trait of actions.

use async_trait::async_trait;
use iam_wire::{Input, Output, QueryError, render_done};
use policy::Value;

use super::call::ActionCall;

/// An action: what it is done with, and what it does.
#[async_trait]
pub(super) trait Perform<'f>: Input<'f> + Send + Sync {
    /// True for an action that decides by itself whether it is allowed, since more than the
    /// requester's policies counts.
    const DECIDES_ITSELF: bool = false;

    /// Returns the ARN of what the action is done with; `*` for nothing. Of something that is not
    /// there it is the ARN that it would have.
    fn about(&self, call: &ActionCall<'_>) -> Result<String, QueryError>;

    /// Returns the ARN that the thing will have, for an action that gives it another one: the
    /// requester needs the permission for both.
    fn becomes(&self, _: &ActionCall<'_>) -> Result<Option<String>, QueryError> {
        Ok(None)
    }

    /// Returns the value of a condition key that only some actions have.
    fn own_value<'v>(&'v self, _: &'v ActionCall<'_>, _name: &str, _tag: &str) -> Value<'v> {
        Value::Absent
    }

    /// Performs it, and returns the answer's document.
    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError>;
}

/// Renders an answer.
pub(super) fn rendered(output: &impl Output, call: &ActionCall<'_>) -> String {
    output.render(call.request_id)
}

/// Renders the answer of an action that has nothing to say.
pub(super) fn done<'f, P: Perform<'f>>(call: &ActionCall<'_>) -> String {
    render_done(P::ACTION, call.request_id)
}
