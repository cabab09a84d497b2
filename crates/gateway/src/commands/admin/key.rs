//! `slipway admin key`.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use iam_wire::Service;
use s3_types::Timestamp;
use serde_json::Value as Json;

use super::common::{document, unless_denied};
use super::node::Node;
use super::output::{Output, with};
use super::service::{Failure, Result, Server};

/// The columns of a list of keys: title, and member of the answer.
pub const COLUMNS: [(&str, &str); 3] =
    [("ACCESS KEY", "AccessKeyId"), ("STATUS", "Status"), ("MADE", "CreateDate")];

/// The columns of a list of all keys of a user, including service keys.
const ALL_COLUMNS: [(&str, &str); 5] =
    [COLUMNS[0], COLUMNS[1], COLUMNS[2], ("ENDS", "Expires"), ("DESCRIPTION", "Description")];

/// The commands for access keys.
#[derive(Debug, Clone, Subcommand)]
pub enum KeyCommand {
    /// Create an access key for a user, and print it with its secret, which cannot be shown again.
    /// A key with a policy, an expiry time or a description is a service key. A user can have 2
    /// ordinary keys and 100 service keys
    #[command(after_help = "Example: slipway admin key create ann --policy backup.json --expires 90d")]
    Create(Create),
    /// List the access keys of a user
    #[command(after_help = "Example: slipway admin key list ann")]
    List(OfUser),
    /// Show an access key: its user, its last use, and for a service key also its policy and expiry
    /// time
    #[command(after_help = "Example: slipway admin key show AKIAIOSFODNN7EXAMPLE")]
    Show(Which),
    /// Refuse requests that are signed with an access key, until it is enabled again
    #[command(after_help = "Example: slipway admin key disable AKIAIOSFODNN7EXAMPLE")]
    Disable(Which),
    /// Accept requests that are signed with a disabled access key again
    #[command(after_help = "Example: slipway admin key enable AKIAIOSFODNN7EXAMPLE")]
    Enable(Which),
    /// Delete an access key
    #[command(after_help = "Example: slipway admin key delete AKIAIOSFODNN7EXAMPLE")]
    Delete(Which),
}

/// A user.
#[derive(Debug, Clone, Args)]
pub struct OfUser {
    /// The name of the user [default: the user whose key signs the request, which may also be the
    /// root user of an account]
    pub user: Option<String>,
}

/// A key that is to be made.
#[derive(Debug, Clone, Args)]
pub struct Create {
    /// The name of the user [default: the user whose key signs the request, which may also be the
    /// root user of an account]
    pub user: Option<String>,
    /// A file with a policy that limits the key: a request must be allowed both by this policy and
    /// by the policies of the user. `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The time from which the key is refused: a time such as 2027-01-31T12:00:00Z, a date such as
    /// 2027-01-31 (its beginning in UTC), or a period from now in weeks, days, hours, minutes or
    /// seconds (w, d, h, m, s), such as 90d
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub expires: Option<Timestamp>,
    /// A text that describes the purpose of the key
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
}

/// Reads a time, which must be in the future.
fn when(text: &str) -> std::result::Result<Timestamp, String> {
    let wrong = || "not a time, a date, or a number with w, d, h, m or s".to_owned();
    if let Some(time) = text.parse().ok().or_else(|| format!("{text}T00:00:00Z").parse().ok()) {
        return Ok(time);
    }
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "w" => 7 * 86_400,
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        "s" => 1,
        _ => return Err(wrong()),
    };
    let count: i64 = digits.parse().ok().filter(|count| *count > 0).ok_or_else(wrong)?;
    let from_now = count.checked_mul(seconds).and_then(|add| Timestamp::now().as_second().checked_add(add));
    from_now.and_then(|second| Timestamp::from_second(second).ok()).ok_or_else(wrong)
}

/// A key.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The id of the access key
    #[arg(value_name = "KEY")]
    pub key: String,
}

/// Prints a new key with its secret.
pub fn secret(lines: &[(&str, String)], key: &Node, json: &Json, output: &Output<'_>) {
    let of_key = [("access key", key.text_of("AccessKeyId")), ("secret key", key.text_of("SecretAccessKey"))];
    let lines: Vec<_> = lines.iter().cloned().chain(of_key).collect();
    output.facts(&lines, json);
}

/// Makes a key of a user.
pub fn create(user: Option<&str>, server: &Server) -> Result<Node> {
    let members: Vec<_> = user.map(|user| ("UserName", user)).into_iter().collect();
    let made = server.iam("CreateAccessKey", &members)?;
    Ok(made.child("AccessKey").cloned().unwrap_or_default())
}

/// Requests the keys of a user.
pub fn keys_of(user: Option<&str>, server: &Server) -> Result<Vec<Node>> {
    let members: Vec<_> = user.map(|user| ("UserName", user)).into_iter().collect();
    server.list("ListAccessKeys", &members, "AccessKeyMetadata")
}

/// Makes a service key.
fn create_service(new: &Create, server: &Server) -> Result<Node> {
    let policy = new.policy.as_deref().map(document).transpose()?;
    let expires = new.expires.map(|time| time.to_string());
    let members = [
        ("UserName", new.user.as_deref()),
        ("PolicyDocument", policy.as_deref()),
        ("Expires", expires.as_deref()),
        ("Description", new.description.as_deref()),
    ];
    let members: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let made = server.own("CreateServiceKey", &members)?;
    Ok(made.child("ServiceKey").cloned().unwrap_or_default())
}

/// Requests the service keys of a user.
fn service_keys_of(user: Option<&str>, server: &Server) -> Result<Vec<Node>> {
    let members: Vec<_> = user.map(|user| ("UserName", user)).into_iter().collect();
    server.list_of(Service::Slipway, "ListServiceKeys", &members, "ServiceKeyMetadata")
}

/// Requests all keys of a user, and for service keys also their other members.
fn all_keys_of(user: Option<&str>, server: &Server) -> Result<Vec<Node>> {
    let id = |key: &Node| key.text_of("AccessKeyId");
    let of_services = service_keys_of(user, server)?;
    let mut of_services: HashMap<_, _> = of_services.into_iter().map(|key| (id(&key), key)).collect();
    let all = keys_of(user, server)?;
    Ok(all.into_iter().map(|key| of_services.remove(&id(&key)).unwrap_or(key)).collect())
}

/// Runs a command.
pub fn run(command: &KeyCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        KeyCommand::Create(new) => {
            let is_of_service = new.policy.is_some() || new.expires.is_some() || new.description.is_some();
            let key = if is_of_service {
                create_service(new, server)?
            } else {
                create(new.user.as_deref(), server)?
            };
            secret(&[("user", key.text_of("UserName"))], &key, &key.json(), output);
        }
        KeyCommand::List(OfUser { user }) => {
            let keys = all_keys_of(user.as_deref(), server)?;
            output.list(&keys, &ALL_COLUMNS);
            if let Some(name) = keys.first().map(|key| key.text_of("UserName"))
                && is_disabled(&name, server)?
            {
                output.done(&format!("{name} is disabled: all its keys are refused"));
            }
        }
        KeyCommand::Show(Which { key }) => show(key, server, output)?,
        KeyCommand::Disable(Which { key }) => {
            change("UpdateAccessKey", key, &[("Status", "Inactive")], server)?;
            output.done(&format!("{key}: refused, by all gateways within a second"));
        }
        KeyCommand::Enable(Which { key }) => {
            change("UpdateAccessKey", key, &[("Status", "Active")], server)?;
            output.done(&format!("{key}: accepted"));
        }
        KeyCommand::Delete(Which { key }) => {
            change("DeleteAccessKey", key, &[], server)?;
            output.done(&format!("{key}: deleted"));
        }
    }
    Ok(())
}

fn show(key: &str, server: &Server, output: &Output<'_>) -> Result<()> {
    let found = last_used(key, server)?;
    let last = found.child("AccessKeyLastUsed").cloned().unwrap_or_default();
    let date = last.text_of("LastUsedDate");
    let last_use = if date.is_empty() {
        "never".to_owned()
    } else {
        format!("{date}, {} in {}", last.text_of("ServiceName"), last.text_of("Region"))
    };
    let user = found.text_of("UserName");
    // Nothing more for who may not see the user's keys.
    let named = Some(&*user).filter(|user| *user != iam::ROOT_NAME);
    let all = unless_denied(all_keys_of(named, server))?;
    let there = all.iter().find(|there| there.text_of("AccessKeyId") == key).cloned().unwrap_or_default();
    let mut status = there.text_of("Status");
    if is_disabled(&user, server)? {
        status.push_str(" (the user is disabled)");
    }
    let lines = [
        ("access key", key.to_owned()),
        ("user", user),
        ("status", status),
        ("made", there.text_of("CreateDate")),
        ("ends", there.text_of("Expires")),
        ("last used", last_use),
        ("description", there.text_of("Description")),
    ];
    // Of several lines, often.
    let policy = there.text_of("PolicyDocument");
    let Json::Object(more) = there.json() else {
        output.facts(&lines, &found.json());
        return Ok(());
    };
    let own = ["Status", "CreateDate", "Expires", "Description", "PolicyDocument"];
    let more = own.into_iter().filter_map(|name| Some((name, more.get(name)?.clone())));
    output.facts(&lines, &with(found.json(), more));
    if !output.json && !policy.is_empty() {
        output.console.say_lines(&policy);
    }
    Ok(())
}

/// Requests whether a user is disabled; false if the requester may not see that.
fn is_disabled(user: &str, server: &Server) -> Result<bool> {
    if user == iam::ROOT_NAME {
        return Ok(false);
    }
    let found = unless_denied(server.iam("GetUser", &[("UserName", user)]))?;
    Ok(found.child("User").is_some_and(|user| user.child("Status").is_some()))
}

/// Requests the owner and the last use of a key. IAM answers the same for a key that does not exist
/// and for one that the requester may not see; to the root of an account, it is the former.
fn last_used(key: &str, server: &Server) -> Result<Node> {
    server.iam("GetAccessKeyLastUsed", &[("AccessKeyId", key)]).map_err(|failure| {
        let caller = if failure.is_denied() { server.caller().ok() } else { None };
        let Some(root) = caller.filter(|caller| caller.text_of("Arn").ends_with(":root")) else {
            return failure;
        };
        let message = if key == server.access_key() {
            format!(
                "{key} is the key that the server was started with: it is changed where it is kept, such as in the \
                 file of --credentials-file"
            )
        } else {
            format!("there is no access key {key} in the account {}", root.text_of("Account"))
        };
        Failure::Refused { code: "NoSuchEntity".to_owned(), message }
    })
}

/// Changes a key of any owner. It requests the key's owner first, since IAM's actions need the
/// user.
fn change(action: &str, key: &str, more: &[(&str, &str)], server: &Server) -> Result<()> {
    let owner = last_used(key, server)?.text_of("UserName");
    let mut members = vec![("AccessKeyId", key)];
    // Keys of root have no user; only root asks for them.
    if owner != iam::ROOT_NAME {
        members.push(("UserName", &owner));
    }
    members.extend_from_slice(more);
    server.iam(action, &members).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_keys_end() {
        let from_now = |text| when(text).unwrap().as_second() - Timestamp::now().as_second();
        for (text, seconds) in [("30s", 30), ("5m", 300), ("2h", 7_200), ("90d", 7_776_000), ("1w", 604_800)]
        {
            assert!((seconds - 2..=seconds).contains(&from_now(text)), "{text}");
        }
        assert_eq!(when("2027-01-31").unwrap().to_string(), "2027-01-31T00:00:00Z");
        assert_eq!(when("2027-01-31T12:00:00+01:00").unwrap().to_string(), "2027-01-31T11:00:00Z");
        for wrong in
            ["", "d", "0d", "-1d", "1.5h", "90", "tomorrow", "\u{e9}", "99999999999999d", "2027-02-30"]
        {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }
}
