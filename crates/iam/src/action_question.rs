//! Decisions about the actions of IAM and STS, which act on users, roles and policies and not on
//! buckets.

use policy::{Action, Documents, Facts, Key, Party, PartyKind, Policy, Request, Resource, Value, all_keys};

use crate::authorize::{KnownObject, Values};
use crate::decision::{DecidedBy, Decision, Explained};
use crate::explained::{decision, explain};
use crate::policies::{Policies, RequestFacts, party};
use crate::session::Requester;

/// A function that returns the value of a condition key that only actions of IAM and STS have. Its
/// arguments are the name of the key and, for a key such as `aws:RequestTag/`, the key of the tag.
/// Names of keys of identity providers (`idp.lab/a:sub`) are in lower case.
pub type OwnValues<'v> = dyn Fn(&str, &str) -> Value<'v> + 'v;

/// A permission that an action of IAM or STS asks for.
#[derive(Clone, Copy)]
pub struct ActionQuestion<'q> {
    /// The sender of the request.
    pub requester: &'q Requester,
    /// The ARN of the identity provider that vouches for the sender, who has no session then.
    pub provider: Option<&'q str>,
    /// The action.
    pub action: Action,
    /// The ARN of the thing that the action is done with; `*` for an action that is not done with
    /// one thing.
    pub resource: &'q str,
    /// The trust policy of the role that is to be assumed, with the id of the role's account;
    /// `None` for actions on things that belong to the requester's account.
    pub trust: Option<(&'q Policy, &'q str)>,
    /// The values of condition keys that every request has.
    pub values: &'q Values<'q>,
    /// The values of the other condition keys.
    pub own_values: &'q OwnValues<'q>,
}

impl Policies {
    /// Decides about an action of IAM or STS. Without a signature, only what a role's trust policy
    /// grants to everybody is allowed.
    pub fn decide_action(&self, question: &ActionQuestion<'_>) -> Decision {
        if is_of_root(question) {
            return Decision::Allow;
        }
        without_object(decision(with_documents(question, policy::decide)))
    }

    /// Makes the same decision as [`Self::decide_action`], and also returns the statements and
    /// facts that it depends on.
    pub fn decide_action_explained(&self, question: &ActionQuestion<'_>) -> Explained {
        if is_of_root(question) {
            return Explained::without(Decision::Allow, DecidedBy::Root);
        }
        let names = question.requester.session().map(|session| &*session.permissions.names);
        let explained = with_documents(question, |request, documents| explain(request, documents, names));
        Explained { decision: without_object(explained.decision), ..explained }
    }
}

/// True if the requester is the server's root and no role is to be assumed: then everything is
/// allowed.
fn is_of_root(question: &ActionQuestion<'_>) -> bool {
    question.requester.is_root() && question.trust.is_none()
}

/// Replaces [`Decision::NeedsObject`] by [`Decision::NoGrant`], since these actions have no object
/// whose tags could be read.
const fn without_object(decision: Decision) -> Decision {
    match decision {
        Decision::NeedsObject(_) => Decision::NoGrant,
        decision => decision,
    }
}

/// Calls `decide` with the question in the form of the policy engine: the request, and the policies
/// that count for it.
fn with_documents<T>(
    question: &ActionQuestion<'_>,
    decide: impl FnOnce(&Request<'_>, &Documents<'_>) -> T,
) -> T {
    let session = question.requester.session().filter(|_| question.provider.is_none());
    let mut documents = Documents::default();
    if let Some((policy, owner)) = question.trust {
        documents.resource = Some(policy);
        documents.owner = Some(owner);
        documents.is_trust = true;
    }
    if let Some(session) = session {
        documents.identity = &session.permissions.identity;
        documents.boundary = session.permissions.boundary.as_deref();
        documents.session = session.permissions.session.as_deref();
    }
    let facts = ActionFacts(question);
    let party = match (question.provider, session) {
        (Some(arn), _) => Party { kind: PartyKind::Federated, arn, ..Party::anonymous() },
        (None, Some(session)) => party(&session.principal),
        (None, None) => Party::anonymous(),
    };
    let resource = Resource::Arn(question.resource);
    decide(&Request { party, action: question.action, resource, facts: &facts }, &documents)
}

struct ActionFacts<'a, 'q>(&'a ActionQuestion<'q>);

impl Facts for ActionFacts<'_, '_> {
    fn value(&self, key: &Key) -> Value<'_> {
        let (at, tag) = match key {
            Key::Known(at) => (*at, ""),
            Key::Tagged(at, tag) => (*at, &**tag),
            Key::Foreign(name) => return (self.0.own_values)(name, ""),
        };
        let ActionQuestion { requester, values, own_values, .. } = *self.0;
        let own = all_keys().get(usize::from(at)).map_or(Value::Absent, |spec| own_values(spec.name, tag));
        let facts = RequestFacts { requester, object: KnownObject::Missing, values };
        own.or_else(|| match facts.value(key) {
            Value::Unknown => Value::Absent,
            value => value.into_owned(),
        })
    }
}
