//! `slipway admin policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use iam::model::limits::VERSIONS_MAX;

use super::common::{arn_of, document, gone};
use super::node::Node;
use super::output::{Output, array, joined, with};
use super::service::{Failure, Result, Server};

const COLUMNS: [(&str, &str); 4] = [
    ("NAME", "PolicyName"),
    ("ATTACHED", "AttachmentCount"),
    ("VERSION", "DefaultVersionId"),
    ("ARN", "Arn"),
];
const VERSION_COLUMNS: [(&str, &str); 3] =
    [("VERSION", "VersionId"), ("COUNTS", "IsDefaultVersion"), ("MADE", "CreateDate")];

/// The commands for managed policies.
#[derive(Debug, Clone, Subcommand)]
pub enum PolicyCommand {
    /// Create a managed policy from a policy document
    #[command(after_help = "Example: slipway admin policy create readers readers.json")]
    Create {
        /// The name of the new policy
        name: String,
        /// The file with the policy document; `-` is standard input
        file: PathBuf,
        /// The IAM path of the policy, such as /sales/, which becomes part of the ARN
        #[arg(long, default_value = "/")]
        path: String,
        /// A text that describes the purpose of the policy
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the managed policies
    #[command(after_help = "Example: slipway admin policy list --own")]
    List {
        /// List only the policies that were created in the account, without the built-in ones
        #[arg(long)]
        own: bool,
    },
    /// Show a managed policy: its document, and the users, groups and roles to which it is attached
    #[command(after_help = "Example: slipway admin policy show AmazonS3ReadOnlyAccess")]
    Show {
        /// The policy.
        #[command(flatten)]
        which: Which,
        /// The version whose document is shown, such as v2 [default: the version in effect]
        #[arg(long)]
        version: Option<String>,
    },
    /// Replace the document of a managed policy by a new version, which takes effect at once. A
    /// policy keeps five versions: if it has five already, the oldest one that is not in effect is
    /// deleted
    #[command(after_help = "Example: slipway admin policy update readers readers.json")]
    Update {
        /// The policy.
        #[command(flatten)]
        which: Which,
        /// The file with the new policy document; `-` is standard input
        file: PathBuf,
    },
    /// List the versions of a managed policy
    #[command(after_help = "Example: slipway admin policy versions readers")]
    Versions(Which),
    /// Put another version of a managed policy into effect
    #[command(after_help = "Example: slipway admin policy set-version readers v1")]
    SetVersion {
        /// The policy.
        #[command(flatten)]
        which: Which,
        /// The version to put into effect, such as v1
        version: String,
    },
    /// Delete a managed policy. A policy that is attached, or has several versions, is deleted only
    /// with --all
    #[command(after_help = "Example: slipway admin policy delete --all readers")]
    Delete {
        /// The policy.
        #[command(flatten)]
        which: Which,
        /// First detach the policy from all users, groups and roles, and delete its other versions
        #[arg(long)]
        all: bool,
    },
}

/// A policy.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The managed policy, by name or ARN
    #[arg(value_name = "POLICY")]
    pub policy: String,
}

/// Runs a command.
pub fn run(command: &PolicyCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        PolicyCommand::Create { name, file, path, description } => {
            let text = document(file)?;
            let mut members = vec![("PolicyName", name.as_str()), ("PolicyDocument", &text), ("Path", path)];
            members.extend(description.as_deref().map(|text| ("Description", text)));
            let made = server.iam("CreatePolicy", &members)?.child("Policy").cloned().unwrap_or_default();
            let lines = [("policy", made.text_of("PolicyName")), ("arn", made.text_of("Arn"))];
            output.facts(&lines, &made.json());
        }
        PolicyCommand::List { own } => {
            let scope = if *own { "Local" } else { "All" };
            output.list(&server.list("ListPolicies", &[("Scope", scope)], "Policies")?, &COLUMNS);
        }
        PolicyCommand::Show { which, version } => {
            show(&arn_of(&which.policy, server)?, version.as_deref(), server, output)?;
        }
        PolicyCommand::Update { which, file } => {
            let (arn, text) = (arn_of(&which.policy, server)?, document(file)?);
            let version = update(&arn, &text, server)?;
            output.done(&format!("{arn}: {version} counts"));
        }
        PolicyCommand::Versions(which) => {
            output.list(&versions(&arn_of(&which.policy, server)?, server)?, &VERSION_COLUMNS);
        }
        PolicyCommand::SetVersion { which, version } => {
            let arn = arn_of(&which.policy, server)?;
            server.iam("SetDefaultPolicyVersion", &[("PolicyArn", &arn), ("VersionId", version)])?;
            output.done(&format!("{arn}: {version} counts"));
        }
        PolicyCommand::Delete { which, all } => {
            let arn = arn_of(&which.policy, server)?;
            if *all {
                take_all(&arn, server)?;
            }
            server.iam("DeletePolicy", &[("PolicyArn", &arn)]).map_err(|failure| match failure {
                Failure::Refused { code, message } if code == "DeleteConflict" => {
                    let hint = format!(
                        "{message} `slipway admin policy delete --all {}` takes it from all who have it",
                        which.policy
                    );
                    Failure::Refused { code, message: hint }
                }
                other => other,
            })?;
            output.done(&format!("{arn}: deleted"));
        }
    }
    Ok(())
}

fn versions(arn: &str, server: &Server) -> Result<Vec<Node>> {
    server.list("ListPolicyVersions", &[("PolicyArn", arn)], "Versions")
}

/// Makes a new version that is the default, and returns its id. If there are too many versions, the
/// oldest that is not the default is deleted. This happens only after the server has accepted the
/// new document, up to the limit.
fn update(arn: &str, text: &str, server: &Server) -> Result<String> {
    let members = [("PolicyArn", arn), ("PolicyDocument", text), ("SetAsDefault", "true")];
    let made = match server.iam("CreatePolicyVersion", &members) {
        Err(Failure::Refused { code, message }) if code == "LimitExceeded" => {
            let there = versions(arn, server)?;
            let oldest = there.iter().rev().find(|one| one.text_of("IsDefaultVersion") != "true");
            let Some(oldest) = oldest.filter(|_| there.len() >= VERSIONS_MAX) else {
                return Err(Failure::Refused { code, message });
            };
            let id = oldest.text_of("VersionId");
            server.iam("DeletePolicyVersion", &[("PolicyArn", arn), ("VersionId", &id)])?;
            server.iam("CreatePolicyVersion", &members)
        }
        made => made,
    }?;
    Ok(made.child("PolicyVersion").map(|version| version.text_of("VersionId")).unwrap_or_default())
}

/// The lists of users, groups and roles that a policy is attached to: the list's name, the member
/// with the name, and the word in actions.
const HOLDERS: [(&str, &str, &str); 3] = [
    ("PolicyUsers", "UserName", "User"),
    ("PolicyGroups", "GroupName", "Group"),
    ("PolicyRoles", "RoleName", "Role"),
];

fn show(arn: &str, version: Option<&str>, server: &Server, output: &Output<'_>) -> Result<()> {
    let policy = server.iam("GetPolicy", &[("PolicyArn", arn)])?.child("Policy").cloned().unwrap_or_default();
    let id = version.map_or_else(|| policy.text_of("DefaultVersionId"), str::to_owned);
    let found = server.iam("GetPolicyVersion", &[("PolicyArn", arn), ("VersionId", &id)])?;
    let version = found.child("PolicyVersion").cloned().unwrap_or_default();
    let mut held = Vec::new();
    for (list, name, _) in HOLDERS {
        let holders = server.list("ListEntitiesForPolicy", &[("PolicyArn", arn)], list)?;
        held.push((list, joined(&holders, name), array(&holders)));
    }
    let lines = [
        ("policy", policy.text_of("PolicyName")),
        ("arn", policy.text_of("Arn")),
        ("id", policy.text_of("PolicyId")),
        ("made", policy.text_of("CreateDate")),
        ("description", policy.text_of("Description")),
        ("version", id),
        ("users", held[0].1.clone()),
        ("groups", held[1].1.clone()),
        ("roles", held[2].1.clone()),
    ];
    let more = held.into_iter().map(|(list, _, json)| (list, json));
    let json = with(with(policy.json(), [("PolicyVersion", version.json())]), more);
    output.facts(&lines, &json);
    if !output.json {
        output.console.say_lines(&version.text_of("Document"));
    }
    Ok(())
}

/// Detaches a policy, and deletes its versions except the default, so that it can be deleted. Fails
/// before any change if it is the boundary of something.
fn take_all(arn: &str, server: &Server) -> Result<()> {
    let holders = |list, usage| {
        server.list("ListEntitiesForPolicy", &[("PolicyArn", arn), ("PolicyUsageFilter", usage)], list)
    };
    for (list, name, _) in HOLDERS {
        if let Some(holder) = holders(list, "PermissionsBoundary")?.first() {
            // Without its boundary it may do more: that is for somebody to decide.
            let holder = holder.text_of(name);
            let message = format!("{arn} is the boundary of {holder}: give that another one first");
            return Err(Failure::Refused { code: "DeleteConflict".to_owned(), message });
        }
    }
    for (list, name, word) in HOLDERS {
        for holder in holders(list, "PermissionsPolicy")? {
            let holder = holder.text_of(name);
            gone(server.iam(&format!("Detach{word}Policy"), &[(name, &holder), ("PolicyArn", arn)]))?;
        }
    }
    for version in versions(arn, server)? {
        if version.text_of("IsDefaultVersion") != "true" {
            let id = version.text_of("VersionId");
            gone(server.iam("DeletePolicyVersion", &[("PolicyArn", arn), ("VersionId", &id)]))?;
        }
    }
    Ok(())
}
