//! The policies of a user, group or role: attached policies and inline policies.

use std::path::PathBuf;

use clap::{Args, Command, Subcommand};

use super::common::{arn_of, document, gone};
use super::node::Node;
use super::output::{Output, array, joined};
use super::service::{Failure, Result, Server};

/// The kind of an entity that has policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A user.
    User,
    /// A group.
    Group,
    /// A role.
    Role,
}

impl Holder {
    /// Returns the word for this kind in the names of actions.
    pub const fn word(self) -> &'static str {
        match self {
            Self::User => "User",
            Self::Group => "Group",
            Self::Role => "Role",
        }
    }

    /// Returns the parameter of actions that names the entity.
    pub const fn parameter(self) -> &'static str {
        match self {
            Self::User => "UserName",
            Self::Group => "GroupName",
            Self::Role => "RoleName",
        }
    }

    /// Returns the word for this kind in the command line.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Group => "group",
            Self::Role => "role",
        }
    }
}

/// The words in the help texts of [`RightsCommand`] that stand for each kind of holder.
const ANY: &str = "a user, group or role";
/// The same words after "the".
const THE_ONE: &str = "the user, group or role";
/// The beginning of the examples of [`RightsCommand`].
const EXAMPLE: &str = "slipway admin user ";
/// The user in these examples.
const NAME: &str = " ann ";

/// Names groups in the help of a command of `slipway admin group`.
pub fn for_groups(command: Command) -> Command {
    worded(command, Holder::Group, " staff ")
}

/// Names roles in the help of a command of `slipway admin role`.
pub fn for_roles(command: Command) -> Command {
    worded(command, Holder::Role, " reader ")
}

/// Names users in the help of a command of `slipway admin user`.
pub fn for_users(command: Command) -> Command {
    worded(command, Holder::User, NAME)
}

/// Replaces the words for all kinds of holders by those for one kind, since its reader looks for
/// that one. Texts without these words stay.
fn worded(command: Command, of: Holder, name: &str) -> Command {
    let noun = of.noun();
    let said =
        |text: String| text.replace(ANY, &format!("a {noun}")).replace(THE_ONE, &format!("the {noun}"));
    let about = command.get_about().map(|text| said(text.to_string()));
    let example = command.get_after_help().map(|text| match text.to_string().split_once(EXAMPLE) {
        Some((before, words)) => format!("{before}slipway admin {noun} {}", words.replace(NAME, name)),
        None => text.to_string(),
    });
    let command = command.mut_args(|arg| match arg.get_help().map(|text| said(text.to_string())) {
        Some(help) => arg.help(help),
        None => arg,
    });
    match (about, example) {
        (Some(about), Some(example)) => command.about(about).after_help(example),
        _ => command,
    }
}

/// The commands for policies of a user, group or role.
#[derive(Debug, Clone, Subcommand)]
pub enum RightsCommand {
    /// Attach a managed policy to a user, group or role
    #[command(after_help = "Example: slipway admin user attach ann AmazonS3ReadOnlyAccess")]
    Attach(Managed),
    /// Detach a managed policy from a user, group or role
    #[command(after_help = "Example: slipway admin user detach ann AmazonS3ReadOnlyAccess")]
    Detach(Managed),
    /// Add an inline policy to a user, group or role, or replace the inline policy of the same name
    #[command(after_help = "Example: slipway admin user put-policy ann home home.json")]
    PutPolicy {
        /// The name of the user, group or role
        name: String,
        /// The name of the inline policy
        policy: String,
        /// The file with the policy document; `-` is standard input
        file: PathBuf,
    },
    /// Print the document of an inline policy of a user, group or role
    #[command(after_help = "Example: slipway admin user show-policy ann home")]
    ShowPolicy(Own),
    /// Delete an inline policy of a user, group or role
    #[command(after_help = "Example: slipway admin user delete-policy ann home")]
    DeletePolicy(Own),
}

/// A managed policy, attached to an entity.
#[derive(Debug, Clone, Args)]
pub struct Managed {
    /// The name of the user, group or role
    pub name: String,
    /// The managed policy, by name or ARN
    pub policy: String,
}

/// An inline policy of an entity.
#[derive(Debug, Clone, Args)]
pub struct Own {
    /// The name of the user, group or role
    pub name: String,
    /// The name of the inline policy
    pub policy: String,
}

/// Runs a command.
pub fn run(command: &RightsCommand, of: Holder, server: &Server, output: &Output<'_>) -> Result<()> {
    let (word, parameter) = (of.word(), of.parameter());
    match command {
        RightsCommand::Attach(Managed { name, policy }) => {
            let arn = attach(of, name, policy, server)?;
            output.done(&format!("{name}: has {arn}"));
        }
        RightsCommand::Detach(Managed { name, policy }) => {
            let arn = arn_of(policy, server)?;
            let detached =
                server.iam(&format!("Detach{word}Policy"), &[(parameter, name), ("PolicyArn", &arn)]);
            detached.map_err(|failure| with_advice(failure, of, name))?;
            output.done(&format!("{name}: no longer has {arn}"));
        }
        RightsCommand::PutPolicy { name, policy, file } => {
            let text = document(file)?;
            let members = [
                (parameter, name.as_str()),
                ("PolicyName", policy.as_str()),
                ("PolicyDocument", text.as_str()),
            ];
            server.iam(&format!("Put{word}Policy"), &members)?;
            output.done(&format!("{name}: has its own policy {policy}"));
        }
        RightsCommand::ShowPolicy(Own { name, policy }) => {
            let found =
                server.iam(&format!("Get{word}Policy"), &[(parameter, name), ("PolicyName", policy)])?;
            if output.json {
                output.document(&found.json());
            } else {
                output.console.say_lines(&found.text_of("PolicyDocument"));
            }
        }
        RightsCommand::DeletePolicy(Own { name, policy }) => {
            server.iam(&format!("Delete{word}Policy"), &[(parameter, name), ("PolicyName", policy)])?;
            output.done(&format!("{name}: no longer has its own policy {policy}"));
        }
    }
    Ok(())
}

/// Adds to the error of a policy that is not attached where to look: it may well exist.
fn with_advice(failure: Failure, of: Holder, name: &str) -> Failure {
    match failure {
        Failure::Refused { code, message } if code == "NoSuchEntity" => {
            let noun = of.noun();
            let message =
                format!("{message} `slipway admin {noun} show {name}` shows which policies {name} has");
            Failure::Refused { code, message }
        }
        other => other,
    }
}

/// Attaches a policy, which is given by its name or its ARN, and returns the ARN.
pub fn attach(of: Holder, name: &str, policy: &str, server: &Server) -> Result<String> {
    let arn = arn_of(policy, server)?;
    server.iam(&format!("Attach{}Policy", of.word()), &[(of.parameter(), name), ("PolicyArn", &arn)])?;
    Ok(arn)
}

/// The policies that a user, group or role has.
pub struct Rights {
    /// The attached managed policies.
    pub attached: Vec<Node>,
    /// The names of the inline policies.
    pub own: Vec<Node>,
}

impl Rights {
    /// Requests the policies of an entity.
    pub fn of(of: Holder, name: &str, server: &Server) -> Result<Self> {
        let (word, members) = (of.word(), [(of.parameter(), name)]);
        Ok(Self {
            attached: server.list(&format!("ListAttached{word}Policies"), &members, "AttachedPolicies")?,
            own: server.list(&format!("List{word}Policies"), &members, "PolicyNames")?,
        })
    }

    /// Returns the lines that show the policies.
    pub fn lines(&self) -> [(&'static str, String); 2] {
        let own: Vec<&str> = self.own.iter().map(|name| name.text.as_str()).collect();
        [("policies", joined(&self.attached, "PolicyName")), ("own policies", own.join(", "))]
    }

    /// Returns the JSON members that show the policies.
    pub fn json(&self) -> [(&'static str, serde_json::Value); 2] {
        [("AttachedPolicies", array(&self.attached)), ("PolicyNames", array(&self.own))]
    }

    /// Detaches and deletes all policies. One that is gone meanwhile is not an error.
    pub fn take(&self, of: Holder, name: &str, server: &Server) -> Result<()> {
        let (word, parameter) = (of.word(), of.parameter());
        for policy in &self.attached {
            let arn = policy.text_of("PolicyArn");
            gone(server.iam(&format!("Detach{word}Policy"), &[(parameter, name), ("PolicyArn", &arn)]))?;
        }
        for policy in &self.own {
            let members = [(parameter, name), ("PolicyName", policy.text.as_str())];
            gone(server.iam(&format!("Delete{word}Policy"), &members))?;
        }
        Ok(())
    }
}

/// Adds a hint to the error if a user, group or role cannot be deleted because something still
/// belongs to it.
pub fn with_hint(deleted: Result<Node>, of: Holder, name: &str) -> Result<()> {
    deleted.map(|_| ()).map_err(|failure| match failure {
        Failure::Refused { code, message } if code == "DeleteConflict" => {
            let noun = of.noun();
            let message =
                format!("{message} `slipway admin {noun} delete --all {name}` deletes those as well");
            Failure::Refused { code, message }
        }
        other => other,
    })
}
