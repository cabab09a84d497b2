//! The trait of actions.

use async_trait::async_trait;
use iam_wire::{Input, Output, QueryError, render_done};

use super::call::ActionCall;
use super::target::Target;

/// An action: what it is done with, and what it does.
#[async_trait]
pub(super) trait Perform<'f>: Input<'f> + Send + Sync {
    /// True for an action that decides by itself whether it is allowed, since more than the
    /// requester's policies counts.
    const DECIDES_ITSELF: bool = false;

    /// Returns what the action is done with.
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError>;

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
