//! The trait that each action implements.

use async_trait::async_trait;
use iam_wire::{Input, Output, QueryError, render_done};

use super::call::ActionCall;
use super::target::Target;

/// An action, with its target and its implementation.
#[async_trait]
pub(super) trait Perform<'f>: Input<'f> + Send + Sync {
    /// True for an action that checks itself whether it is allowed, since this depends on more than
    /// the requester's policies.
    const DECIDES_ITSELF: bool = false;

    /// Returns the target of the action.
    fn target<'v>(&'v self, call: &'v ActionCall<'_>) -> Result<Target<'v>, QueryError>;

    /// Performs the action, and returns the XML of the answer.
    async fn perform(self, call: &ActionCall<'_>) -> Result<String, QueryError>;
}

/// Renders the answer of an action.
pub(super) fn rendered(output: &impl Output, call: &ActionCall<'_>) -> String {
    output.render(call.request_id)
}

/// Renders the answer of an action that has no members.
pub(super) fn done<'f, P: Perform<'f>>(call: &ActionCall<'_>) -> String {
    render_done(P::ACTION, call.request_id)
}
