//! The check whether a requester may do an action.

use http::HeaderMap;
use iam::{ActionQuestion, DecidedBy, Decision, Explained, KeyKind, Policies, Requester, Values};
use iam_wire::{Action, ActionInfo, Permission, QueryError, Service};
use policy::Value;

use super::call::ActionCall;
use super::perform::Perform;
use super::target::Target;
use crate::access::{Asker, Subject};
use crate::audit::{Named, NoPolicy};
use crate::gateway::Gateway;
use crate::request::RequestContext;

/// Returns the requester, with the facts about the request that conditions may need.
pub(super) fn asker<'a>(
    gateway: &'a Gateway,
    cx: &'a RequestContext,
    headers: &'a HeaderMap,
    requester: &'a Requester,
) -> Asker<'a> {
    Asker {
        authorizer: &gateway.authorizer,
        requester,
        region: &gateway.signing.region,
        peer: cx.peer,
        now: cx.now,
        headers,
        // Conditions of IAM's actions have no keys of signatures.
        signature: None,
        trail: cx.trail.as_ref(),
    }
}

/// Refuses an action that the requester's policies do not allow.
pub(super) fn check<'f, P: Perform<'f>>(
    input: &P,
    row: &ActionInfo,
    call: &ActionCall<'_>,
) -> Result<(), QueryError> {
    let permission = match row.permission {
        Permission::Unasked => {
            note(call, row, (&Target::nothing(), NoPolicy::Anybody), true);
            return Ok(());
        }
        Permission::Administrator => {
            let caller = &call.session.principal.arn;
            let is_root = call.session.key_kind == KeyKind::Root;
            if call.asker.trail.is_some() {
                // What is wrong with the parameters is told when it is performed, to root alone.
                let target = input.target(call).unwrap_or_else(|_| Target::nothing());
                note(call, row, (&target, NoPolicy::Administrator), is_root);
            }
            return if is_root { Ok(()) } else { Err(QueryError::not_administrator(caller, row.name)) };
        }
        Permission::Of(name) => name,
    };
    may(call, row.action, permission, &input.target(call)?, None)
}

/// Refuses the request if the requester lacks a permission for the target of the action. `trust` is
/// the trust policy of a role that is to be assumed, with the id of the role's account.
pub(super) fn may(
    call: &ActionCall<'_>,
    action: Action,
    permission: &str,
    target: &Target<'_>,
    trust: Option<(&policy::Policy, &str)>,
) -> Result<(), QueryError> {
    let of_operation: &Values<'_> = &|_| Value::Absent;
    let own_values = |key: &str, tag: &str| target.value(action, key, tag);
    let values = |key| call.asker.value_of(key, Subject::default(), of_operation);
    for arn in target.arns() {
        let Some(named) = policy::Action::named(permission) else {
            return Err(denied(call, permission, &as_sent(call, arn), None));
        };
        let question = ActionQuestion {
            requester: call.requester,
            provider: None,
            action: named,
            resource: arn,
            trust,
            values: &values,
            own_values: &own_values,
        };
        if decide_naming(call.asker, &question, target.named(action)) != Decision::Allow {
            let why = Policies.decide_action_explained(&question).why_not(permission);
            return Err(denied(call, permission, &as_sent(call, arn), why.as_deref()));
        }
    }
    Ok(())
}

/// Adds a line to the audit log about an action that no policy decides about.
fn note(call: &ActionCall<'_>, row: &ActionInfo, (target, by): (&Target<'_>, NoPolicy), is_allowed: bool) {
    if let Some(trail) = call.asker.trail {
        let service = match row.service {
            Service::Sts => "sts",
            Service::Iam => "iam",
            Service::Slipway => "slipway",
        };
        let (action, named) = (format!("{service}:{}", row.name), target.named(row.action));
        trail.decided_without(call.requester, (&action, target.arn()), named, by, is_allowed);
    }
}

/// Returns the ARN of a user, group or role as the requester could have made it from the
/// parameters. So a refusal reveals neither whether it exists, nor its path.
fn as_sent(call: &ActionCall<'_>, arn: &str) -> String {
    for (kind, parameter) in [("user", "UserName"), ("group", "GroupName"), ("role", "RoleName")] {
        let of_kind = call.arn(kind, "/");
        if let Some(sent) = call.form.get(parameter).filter(|_| arn.starts_with(&of_kind)) {
            return format!("{of_kind}{sent}");
        }
    }
    arn.to_owned()
}

/// Decides a question. If there is an audit log, adds a line to it.
pub(super) fn decide(asker: &Asker<'_>, question: &ActionQuestion<'_>) -> Decision {
    decide_naming(asker, question, Named::default())
}

/// Decides as [`decide`], about an action that names more than its resource.
fn decide_naming(asker: &Asker<'_>, question: &ActionQuestion<'_>, named: Named<'_>) -> Decision {
    let Some(trail) = asker.trail else { return Policies.decide_action(question) };
    let explained = Policies.decide_action_explained(question);
    let action = question.action.to_string();
    trail.decided_naming(question.requester, (&action, question.resource), named, &explained);
    explained.decision
}

/// Adds a line to the audit log about a target that does not exist, and is denied for this reason.
pub(super) fn note_missing(call: &ActionCall<'_>, permission: &str, about: &str) {
    if let Some(trail) = call.asker.trail {
        let explained = Explained::without(Decision::NoGrant, DecidedBy::NoStatement);
        trail.decided(call.requester, permission, about, &explained);
    }
}

/// Makes the error for an action that is not allowed. `why` is the end of its sentence
/// ([`Explained::why_not`]); `None` if the requester is not to know the reason.
pub(super) fn denied(call: &ActionCall<'_>, permission: &str, about: &str, why: Option<&str>) -> QueryError {
    QueryError::access_denied(&call.session.principal.arn, permission, about, why)
}
