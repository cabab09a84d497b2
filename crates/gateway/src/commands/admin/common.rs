//! The functions that several commands of `slipway admin` share.

use std::io::Read as _;
use std::path::Path;

use iam_wire::limits::FORM_BYTES_MAX;

use super::node::Node;
use super::service::{Failure, Result, Server};
use crate::commands::shown;

/// Finds the ARN of a policy by its name, first among the policies of the account and then among
/// the built-in ones.
pub fn arn_of(policy: &str, server: &Server) -> Result<String> {
    if policy.starts_with("arn:") {
        return Ok(policy.to_owned());
    }
    for scope in ["Local", "AWS"] {
        let all = server.list("ListPolicies", &[("Scope", scope)], "Policies")?;
        let found = all.iter().find(|there| there.text_of("PolicyName").eq_ignore_ascii_case(policy));
        if let Some(found) = found {
            return Ok(found.text_of("Arn"));
        }
    }
    let message = format!("there is no policy {policy}: `slipway admin policy list` shows all");
    Err(Failure::Refused { code: "NoSuchEntity".to_owned(), message })
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
    fn only_a_refused_permission_is_left_out() {
        let refused = |code: &str| Failure::Refused { code: code.to_owned(), message: String::new() };
        assert_eq!(unless_denied::<Vec<u8>>(Err(refused("AccessDenied"))), Ok(Vec::new()));
        assert_eq!(unless_denied(Ok(1)), Ok(1));
        for failure in [refused("Throttling"), Failure::NotAsked("no answer".to_owned())] {
            assert_eq!(unless_denied::<u8>(Err(failure.clone())), Err(failure));
        }
    }
}
