//! `slipway admin role`.

use std::path::PathBuf;

use clap::Subcommand;
use s3_types::Timestamp;
use serde_json::json;

use super::common::{document, find_all, tag};
use super::output::{Output, with, with_status};
use super::rights::{Holder, Rights, RightsCommand, attach, with_hint};
use super::service::{Failure, Result, Server};
use crate::values::whole;

/// The name of the inline policy with which AWS's console revokes sessions.
const REVOKED: &str = "AWSRevokeOlderSessions";
const COLUMNS: [(&str, &str); 4] =
    [("NAME", "RoleName"), ("PATH", "Path"), ("ID", "RoleId"), ("MADE", "CreateDate")];

/// The commands for roles.
#[derive(Debug, Clone, Subcommand)]
pub enum RoleCommand {
    /// Create a role
    #[command(
        after_help = "Example: slipway admin role create reader trust.json --policy AmazonS3ReadOnlyAccess"
    )]
    Create {
        /// The name of the new role
        name: String,
        /// The file with the trust policy, which says who may assume the role; `-` is standard
        /// input
        trust: PathBuf,
        /// The IAM path of the role, such as /sales/, which becomes part of the ARN
        #[arg(long, default_value = "/")]
        path: String,
        /// The longest time in seconds that a session of the role may last, from 3600 to 43200
        /// [default: 3600]
        #[arg(long, value_name = "SECONDS", value_parser = whole::<u32, 3_600, 43_200>)]
        max_session: Option<u32>,
        /// A text that describes the purpose of the role
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// A managed policy to attach to the role, by name or ARN. May be given several times
        #[arg(long, value_name = "POLICY")]
        policy: Vec<String>,
    },
    /// List the roles
    #[command(after_help = "Example: slipway admin role list")]
    List {
        /// List only the roles whose IAM path begins with this text; all paths begin with /
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Show a role, with its policies and its trust policy
    #[command(after_help = "Example: slipway admin role show reader")]
    Show {
        /// The name of the role
        name: String,
    },
    /// Replace the trust policy of a role, which says who may assume it. Sessions that exist
    /// already stay valid
    #[command(after_help = "Example: slipway admin role set-trust reader trust.json")]
    SetTrust {
        /// The name of the role
        name: String,
        /// The file with the new trust policy; `-` is standard input
        trust: PathBuf,
    },
    /// Delete a role. A role that still has policies is deleted only with --all
    #[command(after_help = "Example: slipway admin role delete --all reader")]
    Delete {
        /// The name of the role
        name: String,
        /// First delete the role's inline policies, and detach its managed policies
        #[arg(long)]
        all: bool,
    },
    /// Refuse all requests with sessions of a role. Only the gateway's root key may do this (see
    /// --credentials-file)
    #[command(after_help = "Example: slipway admin role disable reader")]
    Disable {
        /// The name of the role
        name: String,
    },
    /// Accept sessions of a disabled role again, also earlier ones that have not expired. Only the
    /// gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin role enable reader")]
    Enable {
        /// The name of the role
        name: String,
    },
    /// Refuse the existing sessions of a role, by adding an inline policy that denies everything to
    /// sessions issued before now. Sessions that are issued later are valid
    #[command(after_help = "Example: slipway admin role revoke-sessions reader")]
    RevokeSessions {
        /// The name of the role
        name: String,
    },
    /// Set the uid, gid and groups with which sessions of a role access files. They have an effect
    /// only if the gateway runs with its option impersonate or chown. Such a gateway refuses a uid
    /// below its option uid-min, and a system user that its machine does not know. Only the
    /// gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin role set-posix reader 1001:100:27,44")]
    SetPosix {
        /// The name of the role
        name: String,
        /// The identity on the file system: UID:GID, or UID:GID:GROUP,GROUP with supplementary
        /// groups, or the name of a system user. The gateway looks up this user's uid, gid and
        /// groups when requests come, and uses each answer for a minute
        identity: String,
    },
    /// Remove the uid, gid and groups that set-posix stored for a role. Only the gateway's root key
    /// may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin role delete-posix reader")]
    DeletePosix {
        /// The name of the role
        name: String,
    },
    /// The commands about policies.
    #[command(flatten)]
    Rights(RightsCommand),
}

/// Runs a command.
pub fn run(command: &RoleCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        RoleCommand::Create { name, trust, path, max_session, description, policy } => {
            let (trust, seconds) = (document(trust)?, max_session.map(|seconds| seconds.to_string()));
            let mut members =
                vec![("RoleName", name.as_str()), ("AssumeRolePolicyDocument", &trust), ("Path", path)];
            members.extend(seconds.as_deref().map(|seconds| ("MaxSessionDuration", seconds)));
            members.extend(description.as_deref().map(|text| ("Description", text)));
            // What is not there is found out before the role is made.
            find_all(policy, server)?;
            let made = server.iam("CreateRole", &members)?.child("Role").cloned().unwrap_or_default();
            for policy in policy {
                attach(Holder::Role, name, policy, server)?;
            }
            output.facts(&[("role", made.text_of("RoleName")), ("arn", made.text_of("Arn"))], &made.json());
        }
        RoleCommand::List { path } => {
            let roles = server.list("ListRoles", &[("PathPrefix", path)], "Roles")?;
            output.list(&roles, &with_status(&roles, &COLUMNS));
        }
        RoleCommand::Show { name } => show(name, server, output)?,
        RoleCommand::SetTrust { name, trust } => {
            let trust = document(trust)?;
            server.iam("UpdateAssumeRolePolicy", &[("RoleName", name), ("PolicyDocument", &trust)])?;
            output.done(&format!("{name}: has another trust policy"));
        }
        RoleCommand::Delete { name, all } => {
            if *all {
                spare_own_role(name, server)?;
                Rights::of(Holder::Role, name, server)?.take(Holder::Role, name, server)?;
            }
            with_hint(server.iam("DeleteRole", &[("RoleName", name)]), Holder::Role, name)?;
            output.done(&format!("{name}: deleted"));
        }
        RoleCommand::Disable { name } => {
            server.own("SetDisabled", &[("RoleName", name), ("Disabled", "true")])?;
            output.done(&format!("{name}: its sessions are refused, by all gateways within a second"));
        }
        RoleCommand::Enable { name } => {
            server.own("SetDisabled", &[("RoleName", name), ("Disabled", "false")])?;
            output.done(&format!("{name}: its sessions are accepted"));
        }
        RoleCommand::RevokeSessions { name } => {
            let before = revoke_sessions(name, Timestamp::now(), server)?;
            output.done(&format!(
                "{name}: sessions from before {before} are refused, by all gateways within a second"
            ));
        }
        RoleCommand::SetPosix { name, identity } => {
            server.own("SetPosixIdentity", &[("RoleName", name), ("Identity", identity)])?;
            output.done(&format!("{name}: is {identity} on the file system"));
        }
        RoleCommand::DeletePosix { name } => {
            server.own("SetPosixIdentity", &[("RoleName", name)])?;
            output.done(&format!("{name}: has no identity of its own on the file system"));
        }
        RoleCommand::Rights(command) => return super::rights::run(command, Holder::Role, server, output),
    }
    Ok(())
}

/// Puts the policy with which AWS's console revokes sessions; it replaces an earlier one. Sessions
/// that were issued before the returned time are revoked. This is the next full second, since the
/// times of sessions are in whole seconds.
///
/// Source: "Revoke IAM role temporary security credentials" in the IAM User Guide.
fn revoke_sessions(name: &str, now: Timestamp, server: &Server) -> Result<Timestamp> {
    let before = Timestamp::from_second(now.as_second().saturating_add(1)).unwrap_or(now);
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Deny", "Action": ["*"], "Resource": ["*"],
            "Condition": { "DateLessThan": { "aws:TokenIssueTime": before.to_string() } },
        }],
    });
    let policy = policy.to_string();
    let members = [("RoleName", name), ("PolicyName", REVOKED), ("PolicyDocument", &policy)];
    server.iam("PutRolePolicy", &members)?;
    Ok(before)
}

/// Fails if the session that signs is one of the role: without the role's policies it could not
/// delete the rest.
fn spare_own_role(name: &str, server: &Server) -> Result<()> {
    let arn = server.caller()?.text_of("Arn");
    let role = arn.split_once(":assumed-role/").and_then(|(_, session)| session.split('/').next());
    if !role.is_some_and(|role| role.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let message = format!(
        "{arn}, who signs this command, is a session of {name}: give the key of a user, or of root. Nothing was deleted"
    );
    Err(Failure::Refused { code: "DeleteConflict".to_owned(), message })
}

fn show(name: &str, server: &Server, output: &Output<'_>) -> Result<()> {
    let role = server.iam("GetRole", &[("RoleName", name)])?.child("Role").cloned().unwrap_or_default();
    let rights = Rights::of(Holder::Role, name, server)?;
    let boundary = role.child("PermissionsBoundary").cloned().unwrap_or_default();
    let tags: Vec<String> = role.members("Tags").iter().map(tag).collect();
    let mut lines = vec![
        ("role", role.text_of("RoleName")),
        ("arn", role.text_of("Arn")),
        ("id", role.text_of("RoleId")),
        ("made", role.text_of("CreateDate")),
        ("status", role.text_of("Status")),
        ("posix", role.text_of("PosixIdentity")),
        ("description", role.text_of("Description")),
        ("longest session", format!("{} s", role.text_of("MaxSessionDuration"))),
        ("tags", tags.join(", ")),
    ];
    lines.extend(rights.lines());
    lines.push(("boundary", boundary.text_of("PermissionsBoundaryArn")));
    output.facts(&lines, &with(role.json(), rights.json()));
    if !output.json {
        output.console.say_lines(&role.text_of("AssumeRolePolicyDocument"));
    }
    Ok(())
}
