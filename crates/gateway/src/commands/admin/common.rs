//! The functions that several commands of `slipway admin` share.

use std::io::Read as _;
use std::path::Path;

use iam_wire::limits::FORM_BYTES_MAX;

use super::node::Node;
use super::service::{Failure, Result, Server};
use crate::commands::shown;

/// Finds the ARN of a policy by its name, or by its path and name, among the policies of the
/// account and the built-in ones. It is an error if both have one of that name: whoever attaches a
/// policy must get the one that is meant.
pub fn arn_of(policy: &str, server: &Server) -> Result<String> {
    if policy.starts_with("arn:") {
        return Ok(policy.to_owned());
    }
    let mut found = Vec::new();
    for scope in ["Local", "AWS"] {
        let all = server.list("ListPolicies", &[("Scope", scope)], "Policies")?;
        found.extend(all.iter().filter(|there| is_named(there, policy)).map(|there| there.text_of("Arn")));
    }
    match &found[..] {
        [] => {
            let message = format!("there is no policy {policy}: `slipway admin policy list` shows all");
            Err(Failure::Refused { code: "NoSuchEntity".to_owned(), message })
        }
        [arn] => Ok(arn.clone()),
        all => {
            let message =
                format!("several policies have the name {policy}: give the ARN of one: {}", all.join(" or "));
            Err(Failure::Refused { code: "InvalidInput".to_owned(), message })
        }
    }
}

/// True if a policy has this name, or this path and name. Names are compared without case, as IAM
/// does.
fn is_named(there: &Node, name: &str) -> bool {
    if !name.contains('/') {
        return there.text_of("PolicyName").eq_ignore_ascii_case(name);
    }
    let arn = there.text_of("Arn");
    arn.split_once(":policy/").is_some_and(|(_, of)| of.eq_ignore_ascii_case(name.trim_start_matches('/')))
}

/// Fails if one of these policies, which are to be attached to something new, does not exist.
pub fn find_all(policies: &[String], server: &Server) -> Result<()> {
    for policy in policies {
        let arn = arn_of(policy, server)?;
        if arn == *policy {
            unless_denied(server.iam("GetPolicy", &[("PolicyArn", &arn)]))?;
        }
    }
    Ok(())
}

/// Treats the error that something does not exist as success, for deletions.
pub fn gone(removed: Result<Node>) -> Result<()> {
    match removed {
        Err(failure) if failure.is_missing() => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Returns nothing in place of what the requester may not see. Other failures stay.
pub fn unless_denied<T: Default>(found: Result<T>) -> Result<T> {
    match found {
        Err(Failure::Refused { code, .. }) if code == "AccessDenied" => Ok(T::default()),
        other => other,
    }
}

/// Returns a tag as `KEY=VALUE`.
pub fn tag(tag: &Node) -> String {
    format!("{}={}", tag.text_of("Key"), tag.text_of("Value"))
}

/// Reads a policy document from a file; `-` is standard input.
pub fn document(path: &Path) -> Result<String> {
    let mut text = String::new();
    // More than any form may have; what is too long is refused by the server, in its words.
    let most = 2 * FORM_BYTES_MAX as u64;
    let read = if path == Path::new("-") {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::NotAsked(format!("{}: {error}", shown(path)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_named_with_their_path_or_without() {
        let members = [("PolicyName", "OwnBuckets"), ("Arn", "arn:aws:iam::aws:policy/slipway/OwnBuckets")];
        let children =
            members.map(|(name, text)| Node { name: name.into(), text: text.into(), ..Node::default() });
        let there = Node { children: children.into(), ..Node::default() };
        for name in ["OwnBuckets", "ownbuckets", "slipway/OwnBuckets", "/slipway/ownbuckets"] {
            assert!(is_named(&there, name), "{name}");
        }
        for other in ["", "/", "Buckets", "policy/slipway/OwnBuckets", "/OwnBuckets", "slipway/"] {
            assert!(!is_named(&there, other), "{other}");
        }
    }

    #[test]
    fn only_a_refused_permission_is_left_out() {
        let refused = |code: &str| Failure::Refused { code: code.to_owned(), message: String::new() };
        assert_eq!(unless_denied::<Vec<u8>>(Err(refused("AccessDenied"))), Ok(Vec::new()));
        assert_eq!(unless_denied(Ok(1)), Ok(1));
        for failure in [refused("Throttling"), Failure::NotAsked("no answer".to_owned())] {
            assert_eq!(unless_denied::<u8>(Err(failure.clone())), Err(failure));
        }
    }
}
