//! The reasons why the documents, taken together, come to a decision: the tables of
//! docs/decisions/0039-policies.md in sentences.

use ::policy::{Certainty, PartyKind, Sums, Verdict};

/// The circumstances that a decision depends on besides the documents.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The kind of the principal.
    pub kind: PartyKind,
    /// True if the resource belongs to the principal's account.
    pub is_owners: bool,
    /// True if the resource is a role, of which the trust policy has to allow something.
    pub is_trust: bool,
    /// A phrase about what else has to allow it, as [`limits`] says it.
    pub limits: &'static str,
}

fn holds(certainty: Certainty) -> bool {
    certainty == Certainty::Yes
}

fn may_hold(certainty: Certainty) -> bool {
    certainty != Certainty::No
}

/// Says why.
pub fn reason(verdict: Verdict, sums: Sums, case: Case) -> String {
    match verdict {
        Verdict::Deny => "a statement denies it, which counts more than all that allow it".to_owned(),
        Verdict::NeedsTags => {
            "it depends on the object's tags: give one with --condition s3:ExistingObjectTag/KEY=VALUE"
                .to_owned()
        }
        Verdict::Allow => allowed(sums, case),
        Verdict::NoGrant => not_allowed(sums, case),
    }
}

const fn own(case: Case) -> &'static str {
    match case.kind {
        PartyKind::Root => "the root of an account may do everything that nothing denies",
        _ => "the principal's own policies allow it",
    }
}

const fn resources(case: Case) -> &'static str {
    if case.is_trust { "trust policy" } else { "resource policy" }
}

/// Says that what limits the principal allows something too.
pub const fn limits(has_boundary: bool, has_session: bool) -> &'static str {
    match (has_boundary, has_session) {
        (false, false) => "",
        (true, false) => ", and the boundary does",
        (false, true) => ", and the session policies do",
        (true, true) => ", and the boundary and the session policies do",
    }
}

fn allowed(sums: Sums, case: Case) -> String {
    let (own, of, limits) = (own(case), resources(case), case.limits);
    if !case.is_owners && !is_stranger(case.kind) {
        return format!("{own}{limits}, and the {of} does: the resource belongs to another account");
    }
    if holds(sums.everyone) {
        return format!("the {of} allows it to everybody");
    }
    let is_named = holds(sums.own) && (case.kind != PartyKind::User || holds(sums.session));
    if is_named {
        return format!("the {of} allows it to the principal by name");
    }
    if case.is_trust && holds(sums.account) {
        return format!("{own}{limits}, and the {of} does, to the account");
    }
    if holds(sums.identity) || case.kind == PartyKind::Root {
        return format!("{own}{limits}");
    }
    format!("the {of} allows it to the role, or to the user who federated{limits}")
}

/// True for who has no policies of its own.
const fn is_stranger(kind: PartyKind) -> bool {
    matches!(kind, PartyKind::Anonymous | PartyKind::Service | PartyKind::Federated)
}

fn not_allowed(sums: Sums, case: Case) -> String {
    let of = resources(case);
    if is_stranger(case.kind) {
        return format!(
            "no statement of the {of} allows it to everybody, and nothing else counts for the anonymous"
        );
    }
    let own = case.kind == PartyKind::Root || may_hold(sums.identity);
    let granted = [sums.everyone, sums.own, sums.issuer, sums.account].into_iter().any(may_hold);
    let limiting = [(sums.boundary, "the boundary does not"), (sums.session, "the session policies do not")];
    let limiting = limiting.into_iter().filter(|(allows, _)| !may_hold(*allows));
    let mut missing: Vec<String> = limiting.map(|(_, what)| what.to_owned()).collect();
    if !case.is_owners {
        if !own {
            missing.insert(0, "the principal's own policies do not".to_owned());
        }
        if !granted {
            missing.push(format!("the {of} does not"));
        }
        let missing = missing.join(", ");
        return format!(
            "the resource belongs to another account, so that both sides have to allow it: {missing}"
        );
    }
    if case.is_trust && !granted {
        return "the trust policy has to allow it, and does not".to_owned();
    }
    let is_by_name = may_hold(sums.issuer) || may_hold(sums.own);
    if own || is_by_name {
        return format!("other policies allow it, but {}", missing.join(", "));
    }
    if granted {
        return format!(
            "the {of} allows it to the account only, whose principals need policies of their own"
        );
    }
    "no statement allows it".to_owned()
}

#[cfg(test)]
mod tests {
    use ::policy::Certainty::{No, Yes};

    use super::*;

    const NOTHING: Sums = Sums {
        denied: No,
        identity: No,
        boundary: Yes,
        session: Yes,
        everyone: No,
        own: No,
        issuer: No,
        account: No,
    };
    const USER: Case = Case { kind: PartyKind::User, is_owners: true, is_trust: false, limits: "" };

    #[test]
    fn what_is_missing_is_said() {
        let of = |sums: Sums, case: Case| reason(Verdict::NoGrant, sums, case);
        assert_eq!(of(NOTHING, USER), "no statement allows it");
        let limited = Sums { identity: Yes, boundary: No, session: No, ..NOTHING };
        assert_eq!(
            of(limited, USER),
            "other policies allow it, but the boundary does not, the session policies do not"
        );
        let other = Case { is_owners: false, ..USER };
        assert!(
            of(NOTHING, other)
                .ends_with(": the principal's own policies do not, the resource policy does not")
        );
        assert!(of(Sums { identity: Yes, ..NOTHING }, other).ends_with(": the resource policy does not"));
        assert!(
            of(Sums { account: Yes, ..NOTHING }, other).ends_with(": the principal's own policies do not")
        );
        assert!(of(Sums { account: Yes, ..NOTHING }, USER).contains("to the account only"));
        let own = Sums { own: Yes, session: No, ..NOTHING };
        assert_eq!(of(own, USER), "other policies allow it, but the session policies do not");
        let role = Case { is_trust: true, ..USER };
        assert!(of(Sums { identity: Yes, ..NOTHING }, role).starts_with("the trust policy has to"));
        let anonymous = Case { kind: PartyKind::Anonymous, ..USER };
        assert!(of(NOTHING, anonymous).contains("the anonymous"));
    }

    #[test]
    fn what_allows_is_said() {
        let of = |sums: Sums, case: Case| reason(Verdict::Allow, sums, case);
        let identity = Sums { identity: Yes, ..NOTHING };
        assert_eq!(of(identity, USER), "the principal's own policies allow it");
        assert_eq!(
            of(identity, Case { limits: limits(true, true), ..USER }),
            "the principal's own policies allow it, and the boundary and the session policies do"
        );
        assert!(of(NOTHING, Case { kind: PartyKind::Root, ..USER }).starts_with("the root"));
        assert!(of(Sums { everyone: Yes, ..NOTHING }, USER).ends_with("to everybody"));
        assert!(of(Sums { own: Yes, ..NOTHING }, USER).ends_with("by name"));
        assert!(
            of(Sums { issuer: Yes, ..NOTHING }, Case { kind: PartyKind::RoleSession, ..USER })
                .contains("the role")
        );
        assert!(
            of(Sums { identity: Yes, account: Yes, ..NOTHING }, Case { is_owners: false, ..USER })
                .ends_with("belongs to another account")
        );
        let role = Case { is_trust: true, ..USER };
        assert!(of(Sums { identity: Yes, account: Yes, ..NOTHING }, role).ends_with("to the account"));
    }
}
