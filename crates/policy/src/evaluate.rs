//! The one evaluation of documents: it decides, and tells a recorder what each statement said.

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
    /// The target of the action.
    pub resource: Resource<'a>,
    /// The values of condition keys.
    pub facts: &'a dyn Facts,
}

/// The documents that decide about a request.
#[derive(Clone, Copy, Default)]
pub struct Documents<'a> {
    /// The policies of the requester: its own, those of its groups, or those of its role.
    pub identity: &'a [Arc<Policy>],
    /// The requester's permissions boundary.
    pub boundary: Option<&'a Policy>,
    /// The policies that limit the session, one of which has to allow; `None` if nothing limits it.
    pub session: Option<&'a [Arc<Policy>]>,
    /// The resource's own policy: that of a bucket, or the trust policy of a role.
    pub resource: Option<&'a Policy>,
    /// The account that owns the resource; `None` for what belongs to the requester's.
    pub owner: Option<&'a str>,
    /// True if the policies of identities allow nothing by themselves: the resource is a role that
    /// somebody assumes.
    pub is_trust: bool,
    /// True if what the resource's policy grants to everybody counts neither for the anonymous nor
    /// for other accounts.
    pub no_public: bool,
}

/// The decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is allowed, and not denied.
    Allow,
    /// A statement denies it.
    Deny,
    /// Nothing allows it, and nothing denies it.
    NoGrant,
    /// It depends on the tags of the object.
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

/// The finding about a statement: that it applies, or the first of its elements that does not
/// match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It applies, perhaps. In policies of resources with how it names the requester;
    /// `NotPrincipal` names nobody.
    Applies(Effect, Certainty, Option<Bond>),
    /// It is about other actions.
    OtherAction,
    /// It names others.
    OtherPrincipal,
    /// It is about other resources.
    OtherResource,
    /// The condition with this number does not hold.
    Condition(usize),
    /// It grants something to everybody, of which others than the owner's account have nothing.
    NoPublic,
    /// It does not count for the root of the owner, who may always see and replace the policy.
    Repair,
}

/// Is told of each statement that is looked at.
pub trait Recorder {
    /// True if it wants to know of all statements, also after the decision is clear.
    const WANTS_ALL: bool;

    /// Takes note of a statement: the `statement`-th of the `document`-th of a source.
    fn note(&mut self, source: Source, document: usize, statement: usize, finding: Finding);
}

/// Records nothing.
impl Recorder for () {
    const WANTS_ALL: bool = false;

    fn note(&mut self, _: Source, _: usize, _: usize, _: Finding) {}
}

/// The sums of the statements over all documents of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    /// A statement of any document denies.
    pub denied: Certainty,
    /// The requester's policies allow.
    pub identity: Certainty,
    /// The boundary allows, or there is none.
    pub boundary: Certainty,
    /// The session's policies allow, or there are none.
    pub session: Certainty,
    /// The resource's policy grants it to everybody.
    pub everyone: Certainty,
    /// To the requester's own ARN.
    pub own: Certainty,
    /// To the role, or to the user who federated.
    pub issuer: Certainty,
    /// To the account.
    pub account: Certainty,
}

/// The actions that the root of a bucket's owner may always do.
static REPAIR: LazyLock<[Option<Action>; 3]> = LazyLock::new(|| {
    ["s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"].map(Action::named)
});

/// Decides about a request.
pub fn decide(request: &Request<'_>, documents: &Documents<'_>) -> Verdict {
    evaluate(request, documents, &mut ()).0
}

/// Decides about a request, and records how. The sums are complete if the recorder wants all.
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
    /// Adds up what all documents say; stops at a `Deny` that applies, unless all is wanted.
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

    /// Finds out whether a statement applies to the request.
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
        let is_public = bond == Some(Bond::Everyone) && statement.effect == Effect::Allow;
        if is_public && self.documents.no_public && !is_of_owner(party, self.documents) {
            return Finding::NoPublic;
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

/// True if the requester is of the account that owns the resource.
fn is_of_owner(party: &Party<'_>, documents: &Documents<'_>) -> bool {
    match party.kind {
        PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated => false,
        _ => documents.owner.is_none_or(|owner| owner == party.account),
    }
}

/// Decides by the table of docs/decisions/0039-policies.md, once with what is certain and once with
/// what is possible.
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

/// The row of the table for who asks.
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
    // A key of a user that has a session policy has no ARN of its own that a bucket could name.
    let own = if party.kind == PartyKind::User { own.and(session) } else { own };
    let by_policies = if documents.is_trust { identity.and(account) } else { identity };
    everyone.max(own).max(by_policies.max(issuer).and(limits))
}
