//! The forms of ARNs, which are checked before anything is looked up.

/// True for a text of six parts, separated by colons, of which the first is `arn`, and the
/// partition, the service and the resource are not empty. STS answers `X is invalid` for other
/// texts (recorded).
pub(crate) fn is_arn(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    matches!(parts[..], ["arn", partition, service, _, _, resource]
        if !partition.is_empty() && !service.is_empty() && !resource.is_empty())
}

/// True for the ARN of a policy.
pub(crate) fn is_policy_arn(text: &str) -> bool {
    is_arn(text) && text.splitn(6, ':').nth(5).is_some_and(|resource| resource.starts_with("policy/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_has_six_parts() {
        for good in ["arn:aws:iam::123456789012:role/a", "arn:a:b:::c", "arn:aws:iam::aws:policy/a:b"] {
            assert!(is_arn(good), "{good}");
        }
        // Recorded of STS, but the first.
        for bad in [
            "",
            "nothing-valid-in-here",
            "arn::b:::something/test-role",
            "arn:a::::something/test-role",
            "arn:a:::something/test-role",
            "arn:a:a::aaaaaaaaaa:",
        ] {
            assert!(!is_arn(bad), "{bad}");
        }
        assert!(is_policy_arn("arn:aws:iam::aws:policy/a"));
        assert!(!is_policy_arn("arn:aws:iam::123456789012:not_a_policy/invalid"));
    }
}
