//! The check of policy documents for the account model, by the crate `policy`.

use policy::{Fault, Kind, Malformed, Policy};

use crate::model::{PolicyCheck, PolicyFault, PolicyUse};

/// Checks documents with the crate `policy`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Language;

const fn kind_of(used_as: PolicyUse) -> Kind<'static> {
    match used_as {
        PolicyUse::Managed => Kind::Managed,
        PolicyUse::User => Kind::User,
        PolicyUse::Group => Kind::Group,
        PolicyUse::Role => Kind::Role,
        PolicyUse::Session => Kind::Session,
        PolicyUse::Trust => Kind::Trust,
    }
}

/// Returns the sentence of IAM's for a malformed policy. The one for a trust policy that is not
/// JSON was recorded in February 2026 (UpdateAssumeRolePolicy, CreateRole).
fn sentence(used_as: PolicyUse, why: &Malformed) -> String {
    let is_json =
        !matches!(why.fault, Fault::Json(_) | Fault::NotAnObject | Fault::TooDeep | Fault::Duplicate(_));
    if used_as == PolicyUse::Trust && !is_json {
        return "This policy contains invalid Json".to_owned();
    }
    let told = why.iam_message();
    // IAM says no more. Whoever wrote the document looks for the place.
    if told == SYNTAX { format!("{told} ({why})") } else { told }
}

/// The sentence for all faults that have none of their own.
const SYNTAX: &str = "Syntax errors in policy.";

impl PolicyCheck for Language {
    fn check(&self, used_as: PolicyUse, document: &str) -> Result<usize, PolicyFault> {
        match Policy::parse(document.as_bytes(), kind_of(used_as)) {
            Ok(policy) => Ok(policy.size),
            Err(Malformed { fault: Fault::TooLong { .. }, .. }) => Err(PolicyFault::TooLong),
            Err(why) => Err(PolicyFault::Malformed(sentence(used_as, &why))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BUILT_IN;

    const USES: [PolicyUse; 6] = [
        PolicyUse::Managed,
        PolicyUse::User,
        PolicyUse::Group,
        PolicyUse::Role,
        PolicyUse::Session,
        PolicyUse::Trust,
    ];

    #[test]
    fn every_built_in_document_is_a_policy() {
        for policy in BUILT_IN {
            let compiled = Policy::parse(policy.document.as_bytes(), Kind::Managed).unwrap();
            assert!(compiled.inert.is_empty() && !compiled.needs_object(), "{}", policy.arn);
            assert_eq!(Language.check(PolicyUse::Managed, policy.document), Ok(policy.document.len()));
        }
    }

    #[test]
    fn a_document_is_checked_as_what_it_is_for() {
        let identity =
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#;
        let trust = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"123456789012"},"Action":"sts:AssumeRole"}]}"#;
        for used_as in USES {
            let is_trust = used_as == PolicyUse::Trust;
            assert_eq!(Language.check(used_as, identity).is_ok(), !is_trust, "{used_as:?}");
            assert_eq!(Language.check(used_as, trust).is_ok(), is_trust, "{used_as:?}");
            // White space does not count, and the limits of both crates are the same.
            let spaced = format!(" {} ", identity.replace("\":", "\" : "));
            if !is_trust {
                assert_eq!(Language.check(used_as, &spaced), Language.check(used_as, identity));
            }
            assert_eq!(kind_of(used_as).size_max(), used_as.chars_max(), "{used_as:?}");
            let long = identity.replace("s3:*", &format!("s3:{}", "*".repeat(used_as.chars_max())));
            assert_eq!(Language.check(used_as, &long), Err(PolicyFault::TooLong), "{used_as:?}");
        }
    }

    #[test]
    fn refusals_are_sentences_of_iam() {
        let refused = |used_as, document: &str| match Language.check(used_as, document) {
            Err(PolicyFault::Malformed(why)) => why,
            other => panic!("{document}: {other:?}"),
        };
        // UpdateAssumeRolePolicy, recorded.
        let trust = |more: &str, action: &str| {
            format!(
                r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Principal":{{"AWS":"123456789012"}},"Action":"{action}"{more}}}]}}"#
            )
        };
        for (document, why) in [
            ("{", "This policy contains invalid Json"),
            ("not json", "This policy contains invalid Json"),
            (&*trust("", "s3:GetObject"), "AssumeRole policy may only specify STS AssumeRole actions."),
            (&*trust(r#","Resource":"*""#, "sts:AssumeRole"), "Has prohibited field Resource"),
        ] {
            assert_eq!(refused(PolicyUse::Trust, document), why, "{document}");
        }
        let place = refused(PolicyUse::Managed, "{");
        assert!(place.starts_with("Syntax errors in policy. (line 1, column "), "{place}");
    }
}
