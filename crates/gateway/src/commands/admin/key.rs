//! `slipway admin key`.

use clap::{Args, Subcommand};
use serde_json::Value as Json;

use super::node::Node;
use super::output::{Output, with};
use super::service::{Result, Server};

/// The columns of a list of keys.
pub const COLUMNS: [(&str, &str); 3] =
    [("ACCESS KEY", "AccessKeyId"), ("STATUS", "Status"), ("MADE", "CreateDate")];

/// The commands for access keys.
#[derive(Debug, Clone, Subcommand)]
pub enum KeyCommand {
    /// Make an access key, and print it with its secret, which is shown this once. A user has two
    /// at most
    #[command(after_help = "Example: slipway admin key create ann")]
    Create(OfUser),
    /// List access keys
    #[command(after_help = "Example: slipway admin key list ann")]
    List(OfUser),
    /// Show whose an access key is, and when it was last used
    #[command(after_help = "Example: slipway admin key show AKIAIOSFODNN7EXAMPLE")]
    Show(Which),
    /// Refuse an access key
    #[command(after_help = "Example: slipway admin key disable AKIAIOSFODNN7EXAMPLE")]
    Disable(Which),
    /// Accept an access key again
    #[command(after_help = "Example: slipway admin key enable AKIAIOSFODNN7EXAMPLE")]
    Enable(Which),
    /// Delete an access key
    #[command(after_help = "Example: slipway admin key delete AKIAIOSFODNN7EXAMPLE")]
    Delete(Which),
}

/// A user.
#[derive(Debug, Clone, Args)]
pub struct OfUser {
    /// The user [default: whose key signs]
    pub user: Option<String>,
}

/// A key.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The id of the key
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

/// Asks for the keys of a user.
pub fn keys_of(user: Option<&str>, server: &Server) -> Result<Vec<Node>> {
    let members: Vec<_> = user.map(|user| ("UserName", user)).into_iter().collect();
    server.list("ListAccessKeys", &members, "AccessKeyMetadata")
}

/// Runs a command.
pub fn run(command: &KeyCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        KeyCommand::Create(OfUser { user }) => {
            let key = create(user.as_deref(), server)?;
            secret(&[("user", key.text_of("UserName"))], &key, &key.json(), output);
        }
        KeyCommand::List(OfUser { user }) => {
            let keys = keys_of(user.as_deref(), server)?;
            output.list(&keys, &COLUMNS);
            if let Some(name) = keys.first().map(|key| key.text_of("UserName"))
                && is_disabled(&name, server)
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
    let found = server.iam("GetAccessKeyLastUsed", &[("AccessKeyId", key)])?;
    let last = found.child("AccessKeyLastUsed").cloned().unwrap_or_default();
    let date = last.text_of("LastUsedDate");
    let last_use = if date.is_empty() {
        "never".to_owned()
    } else {
        format!("{date}, {} in {}", last.text_of("ServiceName"), last.text_of("Region"))
    };
    let user = found.text_of("UserName");
    let status = status(key, &user, server);
    let json = with(found.json(), status.iter().map(|status| ("Status", status.as_str().into())));
    let mut shown = status.unwrap_or_default();
    if is_disabled(&user, server) {
        shown.push_str(" (the user is disabled)");
    }
    let lines = [("access key", key.to_owned()), ("user", user), ("status", shown), ("last used", last_use)];
    output.facts(&lines, &json);
    Ok(())
}

/// Asks whether a key is switched off. `None` for who may not see that.
fn status(key: &str, user: &str, server: &Server) -> Option<String> {
    let keys = keys_of((user != iam::ROOT_NAME).then_some(user), server).ok()?;
    let found = keys.iter().find(|there| there.text_of("AccessKeyId") == key)?;
    Some(found.text_of("Status"))
}

/// Asks whether a user is disabled; false for who may not see that.
fn is_disabled(user: &str, server: &Server) -> bool {
    let found = server.iam("GetUser", &[("UserName", user)]);
    found.is_ok_and(|found| found.child("User").is_some_and(|user| user.child("Status").is_some()))
}

/// Changes a key, whosever it is: IAM's actions want its user.
fn change(action: &str, key: &str, more: &[(&str, &str)], server: &Server) -> Result<()> {
    let owner = server.iam("GetAccessKeyLastUsed", &[("AccessKeyId", key)])?.text_of("UserName");
    let mut members = vec![("AccessKeyId", key)];
    // Keys of root have no user; only root asks for them.
    if owner != iam::ROOT_NAME {
        members.push(("UserName", &owner));
    }
    members.extend_from_slice(more);
    server.iam(action, &members).map(|_| ())
}
