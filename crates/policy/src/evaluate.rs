//! The evaluation of documents, which decides about a request and tells a recorder what each
//! statement has to do with the decision.

use std::sync::{Arc, LazyLock};

use crate::catalogue::Action;
use crate::document::{Effect, Policy, Statement};
use crate::facts::{Certainty, Facts};
use crate::party::{Party, PartyKind};
use crate::principals::Bond;
use crate::resources::{Resource, Subject};

/// A request for permission.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The requester.
    pub party: Party<'a>,
    /// The action.
    pub action: Action,
    /// The resource that the action is done with.
    pub resource: Resource<'a>,
    /// The values of condition keys.
    pub facts: &'a dyn Facts,
}

/// The documents that decide about a request.
#[derive(Clone, Copy, Default)]
pub struct Documents<'a> {
    /// The policies of the requester: those of a user and its groups, or those of a role.
    pub identity: &'a [Arc<Policy>],
    /// The requester's permissions boundary.
    pub boundary: Option<&'a Policy>,
    /// The policies that limit the session, one of which has to allow the action: an empty list
    /// allows nothing. `None` if nothing limits the session.
    pub session: Option<&'a [Arc<Policy>]>,
    /// The resource's own policy: that of a bucket, or the trust policy of a role.
    pub resource: Option<&'a Policy>,
    /// The id of the account that owns the resource; `None` if it is the requester's account.
    pub owner: Option<&'a str>,
    /// True if the resource is a role that the requester wants to assume: then policies of
    /// identities are not enough to allow it.
    pub is_trust: bool,
    /// True if nothing that the resource's policy allows has an effect for anonymous requesters and
    /// other accounts.
    pub is_restricted: bool,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The action is allowed, and not denied.
    Allow,
    /// A statement denies the action.
    Deny,
    /// No statement allows the action, and none denies it.
    NoGrant,
    /// The decision depends on the tags of the object.
    NeedsTags,
}

/// The source of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// [`Documents::identity`].
    Identity,
    /// [`Documents::boundary`].
    Boundary,
    /// [`Documents::session`].
    Session,
    /// [`Documents::resource`].
    Resource,
}

/// The result for one statement: that it applies, or the first of its elements that does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The statement applies. The values are its effect, whether it is certain that the statement
    /// applies and, in policies of resources, how the statement names the requester (`None` for
    /// `NotPrincipal`).
    Applies(Effect, Certainty, Option<Bond>),
    /// The statement's actions do not include the requested one.
    OtherAction,
    /// The statement's principals do not include the requester.
    OtherPrincipal,
    /// The statement's resources do not include the requested one.
    OtherResource,
    /// The condition with this number (from 0) does not hold.
    Condition(usize),
    /// The statement allows something, which has no effect for anonymous requesters and those of
    /// other accounts than the owner's ([`Documents::is_restricted`]).
    Restricted,
    /// The statement would apply, but has no effect for the root of the owner's account, which may
    /// always read, replace and delete the policy.
    Repair,
}

/// A recorder, which gets the result for each statement that is evaluated.
pub trait Recorder {
    /// True if the recorder needs the results of all statements, also after the decision is clear.
    const WANTS_ALL: bool;

    /// Records the result for the statement with the number `statement` in the document with the
    /// number `document` of a source, both from 0.
    fn note(&mut self, source: Source, document: usize, statement: usize, finding: Finding);
}

/// A recorder that records nothing.
impl Recorder for () {
    const WANTS_ALL: bool = false;

    fn note(&mut self, _: Source, _: usize, _: usize, _: Finding) {}
}

/// The summary of all statements: for each source, whether its statements allow the action, and
/// whether any statement denies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// A statement of some document denies the action.
    pub denied: Certainty,
    /// The requester's policies allow the action.
    pub identity: Certainty,
    /// The boundary allows the action, or there is none.
    pub boundary: Certainty,
    /// The session's policies allow the action, or nothing limits the session.
    pub session: Certainty,
    /// The resource's policy grants the action to everybody.
    pub everyone: Certainty,
    /// The resource's policy grants the action to the requester's own ARN.
    pub own: Certainty,
    /// The resource's policy grants the action to the requester's role, or to the user who asked
    /// for the federated session.
    pub issuer: Certainty,
    /// The resource's policy grants the action to the requester's account.
    pub account: Certainty,
}

/// The actions that the root of a bucket owner's account may always do.
static REPAIR: LazyLock<[Option<Action>; 3]> = LazyLock::new(|| {
    ["s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"].map(Action::named)
});

/// Decides about a request.
pub fn decide(request: &Request<'_>, documents: &Documents<'_>) -> Verdict {
    evaluate(request, documents, &mut ()).0
}

/// Decides about a request, and records the results for statements. The returned sums are complete
/// only if the recorder wants all statements.
pub fn evaluate<R: Recorder>(
    request: &Request<'_>,
    documents: &Documents<'_>,
    recorder: &mut R,
) -> (Verdict, Sums) {
    let subject = Subject::new(request.resource);
    let mut evaluation = Evaluation { request, documents, subject, recorder, sums: Sums::NOTHING };
    evaluation.run();
    let sums = evaluation.sums;
    (verdict(sums, &request.party, documents), sums)
}

struct Evaluation<'e, R> {
    request: &'e Request<'e>,
    documents: &'e Documents<'e>,
    subject: Subject<'e>,
    recorder: &'e mut R,
    sums: Sums,
}

impl Sums {
    const NOTHING: Self = Self {
        denied: Certainty::No,
        identity: Certainty::No,
        boundary: Certainty::No,
        session: Certainty::No,
        everyone: Certainty::No,
        own: Certainty::No,
        issuer: Certainty::No,
        account: Certainty::No,
    };
}

impl<R: Recorder> Evaluation<'_, R> {
    /// Evaluates the statements of all documents. It stops at a `Deny` that applies, unless the
    /// recorder wants all.
    fn run(&mut self) {
        let documents = self.documents;
        if documents.boundary.is_none() {
            self.sums.boundary = Certainty::Yes;
        }
        if documents.session.is_none() {
            self.sums.session = Certainty::Yes;
        }
        let of_identity = documents.identity.iter().enumerate();
        let of_session = documents.session.unwrap_or_default().iter().enumerate();
        let one = |source| move |(number, policy): (usize, _)| (source, number, policy);
        let all = (documents.resource.into_iter().enumerate().map(one(Source::Resource)))
            .chain(documents.boundary.into_iter().enumerate().map(one(Source::Boundary)))
            .chain(of_session.map(|(number, policy)| (Source::Session, number, &**policy)))
            .chain(of_identity.map(|(number, policy)| (Source::Identity, number, &**policy)));
        for (source, number, policy) in all {
            for (at, statement) in policy.statements.iter().enumerate() {
                let finding = self.find(source, statement);
                self.recorder.note(source, number, at, finding);
                self.add(source, finding);
                if !R::WANTS_ALL && self.sums.denied == Certainty::Yes {
                    return;
                }
            }
        }
    }

    /// Determines whether a statement applies to the request.
    fn find(&self, source: Source, statement: &Statement) -> Finding {
        let Request { party, action, facts, .. } = self.request;
        if !statement.actions.has(*action) {
            return Finding::OtherAction;
        }
        let mut bond = None;
        if let (Source::Resource, Some(principals)) = (source, &statement.principals) {
            if principals.not {
                // As AWS has it, this spares nobody who has a boundary.
                let spares = self.documents.boundary.is_none() && principals.has_chain(party);
                if spares {
                    return Finding::OtherPrincipal;
                }
            } else {
                bond = principals.bond(party);
                if bond.is_none() {
                    return Finding::OtherPrincipal;
                }
            }
        }
        let mut applies = Certainty::Yes;
        if let Some(resources) = &statement.resources {
            let patterns = resources.patterns.iter();
            let any = Certainty::any(patterns.map(|pattern| pattern.matches(&self.subject, *facts)));
            applies = if resources.not { any.inverted() } else { any };
            if applies == Certainty::No {
                return Finding::OtherResource;
            }
        }
        for (number, condition) in statement.conditions.iter().enumerate() {
            applies = applies.and(condition.holds(*facts));
            if applies == Certainty::No {
                return Finding::Condition(number);
            }
        }
        if source == Source::Resource && self.is_repair() {
            return Finding::Repair;
        }
        let is_grant = source == Source::Resource && statement.effect == Effect::Allow;
        if is_grant && self.documents.is_restricted && !is_of_owner(party, self.documents) {
            return Finding::Restricted;
        }
        Finding::Applies(statement.effect, applies, bond)
    }

    fn is_repair(&self) -> bool {
        let Request { party, action, .. } = self.request;
        party.kind == PartyKind::Root && REPAIR.contains(&Some(*action)) && is_of_owner(party, self.documents)
    }

    fn add(&mut self, source: Source, finding: Finding) {
        let Finding::Applies(effect, certainty, bond) = finding else { return };
        let sums = &mut self.sums;
        let place = match (effect, source, bond) {
            (Effect::Deny, ..) => &mut sums.denied,
            (Effect::Allow, Source::Identity, _) => &mut sums.identity,
            (Effect::Allow, Source::Boundary, _) => &mut sums.boundary,
            (Effect::Allow, Source::Session, _) => &mut sums.session,
            (Effect::Allow, Source::Resource, Some(Bond::Everyone)) => &mut sums.everyone,
            (Effect::Allow, Source::Resource, Some(Bond::Own)) => &mut sums.own,
            (Effect::Allow, Source::Resource, Some(Bond::Issuer)) => &mut sums.issuer,
            (Effect::Allow, Source::Resource, Some(Bond::Account)) => &mut sums.account,
            // A policy of a resource names somebody.
            (Effect::Allow, Source::Resource, None) => return,
        };
        *place = (*place).max(certainty);
    }
}

/// True if the requester belongs to the account that owns the resource.
fn is_of_owner(party: &Party<'_>, documents: &Documents<'_>) -> bool {
    match party.kind {
        PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated => false,
        _ => documents.owner.is_none_or(|owner| owner == party.account),
    }
}

/// Decides by the table in docs/decisions/0039-policies.md. If it depends on the tags of the
/// object, the verdict is `NeedsTags`.
fn verdict(sums: Sums, party: &Party<'_>, documents: &Documents<'_>) -> Verdict {
    if sums.denied == Certainty::Yes {
        return Verdict::Deny;
    }
    let allowed = allowed(sums, party, documents);
    match (allowed, sums.denied) {
        (Certainty::No, _) => Verdict::NoGrant,
        (Certainty::Yes, Certainty::No) => Verdict::Allow,
        _ => Verdict::NeedsTags,
    }
}

/// Returns whether the action is allowed, by the row of the table for the requester's kind.
fn allowed(sums: Sums, party: &Party<'_>, documents: &Documents<'_>) -> Certainty {
    let Sums { everyone, own, issuer, account, boundary, session, .. } = sums;
    let limits = boundary.and(session);
    let identity = match party.kind {
        PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated => return everyone.max(own),
        PartyKind::Root => Certainty::Yes,
        PartyKind::User | PartyKind::RoleSession | PartyKind::FederatedUser => sums.identity,
    };
    if !is_of_owner(party, documents) {
        let granted = everyone.max(own).max(issuer).max(account);
        return identity.and(limits).and(granted);
    }
    // A grant to a user's own ARN is limited by the session policy of the user's key.
    let own = if party.kind == PartyKind::User { own.and(session) } else { own };
    let by_policies = if documents.is_trust { identity.and(account) } else { identity };
    everyone.max(own).max(by_policies.max(issuer).and(limits))
}
