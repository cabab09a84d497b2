//! Decisions by documents, with what decided them, for the audit log
//! (docs/decisions/0057-audit-log.md).

use policy::{
    Bond, Certainty, Documents, Effect, Finding, PartyKind, Policy, Recorder, Request, Source, Sums, Verdict,
    evaluate,
};
use s3_types::NeededFacts;

use crate::decision::{DecidedBy, DecidingStatement, Decision, Explained};
use crate::session::PolicyNames;

/// Decides by documents, and also returns the statements that the decision depends on. It runs the
/// same evaluation as [`policy::decide`], with a recorder.
pub(crate) fn explain(
    request: &Request<'_>,
    documents: &Documents<'_>,
    names: Option<&PolicyNames>,
) -> Explained {
    let is_owners = documents.owner.is_none_or(|owner| owner == request.party.account);
    // To others of the account than its root, a grant to the account says nothing by itself.
    let by_account = documents.is_trust || !is_owners || request.party.kind == PartyKind::Root;
    let mut found = FirstFound { by_account, allows: [None; 4], denies: None };
    let (verdict, sums) = evaluate(request, documents, &mut found);
    let decision = decision(verdict);
    let statement = |place: Place| place.statement(documents, names);
    match verdict {
        Verdict::Allow if request.party.kind == PartyKind::Root && is_owners => {
            Explained::without(decision, DecidedBy::AccountRoot)
        }
        Verdict::Allow => Explained {
            statements: found.allows.into_iter().flatten().filter_map(statement).collect(),
            ..Explained::without(decision, DecidedBy::Statement)
        },
        Verdict::Deny => Explained {
            statements: found.denies.into_iter().filter_map(statement).collect(),
            ..Explained::without(decision, DecidedBy::Statement)
        },
        Verdict::NoGrant | Verdict::NeedsTags => Explained {
            lacking: lacking(sums, request.party.kind, is_owners, documents.is_trust),
            ..Explained::without(decision, DecidedBy::NoStatement)
        },
    }
}

/// Returns the decision that a verdict stands for.
pub(crate) const fn decision(verdict: Verdict) -> Decision {
    match verdict {
        Verdict::Allow => Decision::Allow,
        Verdict::Deny => Decision::Deny,
        Verdict::NoGrant => Decision::NoGrant,
        Verdict::NeedsTags => Decision::NeedsObject(NeededFacts { acl: false, tags: true }),
    }
}

/// Returns the kinds of policies in which a statement that allows is missing, for a request that no
/// statement denies.
fn lacking(sums: Sums, kind: PartyKind, is_owners: bool, is_trust: bool) -> Vec<Source> {
    let some = |all: &[Certainty]| all.iter().any(|one| *one != Certainty::No);
    if matches!(kind, PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated) {
        return vec![Source::Resource];
    }
    let needs_both = !is_owners || is_trust;
    let own = kind == PartyKind::Root || some(&[sums.identity]);
    let named = some(&[sums.everyone, sums.own, sums.issuer]);
    let granted = named || some(&[sums.account]);
    let missing = [
        (Source::Identity, !own && (needs_both || !named)),
        (Source::Resource, needs_both && !granted),
        (Source::Boundary, !some(&[sums.boundary])),
        (Source::Session, !some(&[sums.session])),
    ];
    missing.into_iter().filter(|(_, is_missing)| *is_missing).map(|(source, _)| source).collect()
}

/// The place of a statement: which policy of which source, and which statement in it.
#[derive(Debug, Clone, Copy)]
struct Place {
    source: Source,
    document: usize,
    statement: usize,
}

impl Place {
    fn statement(self, documents: &Documents<'_>, names: Option<&PolicyNames>) -> Option<DecidingStatement> {
        let name = |names: &PolicyNames| match self.source {
            Source::Identity => names.identity.get(self.document).cloned(),
            Source::Boundary => names.boundary.clone(),
            Source::Session | Source::Resource => None,
        };
        let policy: &Policy = match self.source {
            Source::Identity => documents.identity.get(self.document)?,
            Source::Boundary => documents.boundary?,
            Source::Session => documents.session?.get(self.document)?,
            Source::Resource => documents.resource?,
        };
        Some(DecidingStatement {
            source: self.source,
            policy: names.and_then(name),
            document: self.document + 1,
            statement: self.statement + 1,
            sid: policy.statements.get(self.statement)?.sid.clone(),
        })
    }
}

/// Records the first statement that denies, and the first of each source that allows.
struct FirstFound {
    /// True if a grant to an account, in the resource's policy, is enough for this requester.
    by_account: bool,
    allows: [Option<Place>; 4],
    denies: Option<Place>,
}

impl Recorder for FirstFound {
    // The evaluation ends where it does without a recorder.
    const WANTS_ALL: bool = false;

    fn note(&mut self, source: Source, document: usize, statement: usize, finding: Finding) {
        let Finding::Applies(effect, Certainty::Yes, bond) = finding else { return };
        if effect == Effect::Allow && bond == Some(Bond::Account) && !self.by_account {
            return;
        }
        let [identity, boundary, session, resource] = &mut self.allows;
        let first = match (effect, source) {
            (Effect::Deny, _) => &mut self.denies,
            (Effect::Allow, Source::Identity) => identity,
            (Effect::Allow, Source::Boundary) => boundary,
            (Effect::Allow, Source::Session) => session,
            (Effect::Allow, Source::Resource) => resource,
        };
        first.get_or_insert(Place { source, document, statement });
    }
}
