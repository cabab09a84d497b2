//! `slipway admin group`.

use clap::Subcommand;
use iam_wire::Service;

use super::common::{gone, unless_denied};
use super::output::{Output, array, joined, with};
use super::rights::{Holder, Rights, RightsCommand, with_hint};
use super::service::{Result, Server};

const COLUMNS: [(&str, &str); 4] =
    [("NAME", "GroupName"), ("PATH", "Path"), ("ID", "GroupId"), ("MADE", "CreateDate")];

/// The commands for groups.
#[derive(Debug, Clone, Subcommand)]
pub enum GroupCommand {
    /// Create a group
    #[command(after_help = "Example: slipway admin group create staff")]
    Create {
        /// The name of the new group
        name: String,
        /// The IAM path of the group, such as /sales/, which becomes part of the ARN
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// List the groups
    #[command(after_help = "Example: slipway admin group list")]
    List {
        /// List only the groups whose IAM path begins with this text; all paths begin with /
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Show a group, with its users and policies
    #[command(after_help = "Example: slipway admin group show staff")]
    Show {
        /// The name of the group
        name: String,
    },
    /// Change the name of a group
    #[command(after_help = "Example: slipway admin group rename staff people")]
    Rename {
        /// The present name of the group
        name: String,
        /// The new name
        new_name: String,
    },
    /// Delete a group. A group that still has users or policies is deleted only with --all
    #[command(after_help = "Example: slipway admin group delete --all staff")]
    Delete {
        /// The name of the group
        name: String,
        /// First remove all users from the group, delete its inline policies, and detach its
        /// managed policies
        #[arg(long)]
        all: bool,
    },
    /// Add users to a group
    #[command(after_help = "Example: slipway admin group add staff ann bob")]
    Add {
        /// The name of the group
        name: String,
        /// The names of the users to add
        #[arg(required = true)]
        users: Vec<String>,
    },
    /// Remove users from a group
    #[command(after_help = "Example: slipway admin group remove staff bob")]
    Remove {
        /// The name of the group
        name: String,
        /// The names of the users to remove
        #[arg(required = true)]
        users: Vec<String>,
    },
    /// Apply the policies of an IAM group also to the people in a group of the LDAP directory, in
    /// their sessions (from AssumeRoleWithLDAPIdentity) and with access keys that the LDAP
    /// directory stores. An IAM group can be linked to one LDAP group: a further call replaces the
    /// link. Only the gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin group directory staff cn=staff,ou=groups,dc=lab")]
    Directory {
        /// The name of the IAM group whose policies apply
        name: String,
        /// The DN of the group in the LDAP directory. If it is left out, an existing link is
        /// removed
        dn: Option<String>,
    },
    /// The commands about policies.
    #[command(flatten)]
    Rights(RightsCommand),
}

/// Runs a command.
pub fn run(command: &GroupCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        GroupCommand::Create { name, path } => {
            let made = server.iam("CreateGroup", &[("GroupName", name), ("Path", path)])?;
            let group = made.child("Group").cloned().unwrap_or_default();
            output.facts(
                &[("group", group.text_of("GroupName")), ("arn", group.text_of("Arn"))],
                &group.json(),
            );
        }
        GroupCommand::List { path } => {
            output.list(&server.list("ListGroups", &[("PathPrefix", path)], "Groups")?, &COLUMNS);
        }
        GroupCommand::Show { name } => show(name, server, output)?,
        GroupCommand::Rename { name, new_name } => {
            server.iam("UpdateGroup", &[("GroupName", name), ("NewGroupName", new_name)])?;
            output.done(&format!("{name}: has the name {new_name}"));
        }
        GroupCommand::Delete { name, all } => {
            if *all {
                for user in server.list("GetGroup", &[("GroupName", name)], "Users")? {
                    let user = user.text_of("UserName");
                    gone(server.iam("RemoveUserFromGroup", &[("GroupName", name), ("UserName", &user)]))?;
                }
                Rights::of(Holder::Group, name, server)?.take(Holder::Group, name, server)?;
            }
            with_hint(server.iam("DeleteGroup", &[("GroupName", name)]), Holder::Group, name)?;
            output.done(&format!("{name}: deleted"));
        }
        GroupCommand::Add { name, users } => {
            for user in users {
                server.iam("AddUserToGroup", &[("GroupName", name), ("UserName", user)])?;
                output.done(&format!("{user}: is in {name}"));
            }
        }
        GroupCommand::Remove { name, users } => {
            for user in users {
                server.iam("RemoveUserFromGroup", &[("GroupName", name), ("UserName", user)])?;
                output.done(&format!("{user}: is no longer in {name}"));
            }
        }
        GroupCommand::Directory { name, dn: Some(dn) } => {
            server.own("SetGroupOfDirectory", &[("GroupName", name), ("DirectoryGroup", dn)])?;
            output.done(&format!("{name}: its policies are those of the directory's {dn}"));
        }
        GroupCommand::Directory { name, dn: None } => {
            server.own("SetGroupOfDirectory", &[("GroupName", name)])?;
            output.done(&format!("{name}: is no group of the directory any more"));
        }
        GroupCommand::Rights(command) => return super::rights::run(command, Holder::Group, server, output),
    }
    Ok(())
}

fn show(name: &str, server: &Server, output: &Output<'_>) -> Result<()> {
    let found = server.iam("GetGroup", &[("GroupName", name), ("MaxItems", "1")])?;
    let group = found.child("Group").cloned().unwrap_or_default();
    let users = server.list("GetGroup", &[("GroupName", name)], "Users")?;
    let rights = Rights::of(Holder::Group, name, server)?;
    let mut lines = vec![
        ("group", group.text_of("GroupName")),
        ("arn", group.text_of("Arn")),
        ("id", group.text_of("GroupId")),
        ("made", group.text_of("CreateDate")),
        ("users", joined(&users, "UserName")),
    ];
    // For the administrator alone; others are not told.
    let of_directory = server.list_of(Service::Slipway, "ListGroupsOfDirectory", &[], "Groups");
    let (of_directory, name) = (unless_denied(of_directory)?, group.text_of("GroupName"));
    if let Some(named) = of_directory.iter().find(|one| one.text_of("GroupName") == name) {
        lines.push(("directory", named.text_of("DirectoryGroup")));
    }
    lines.extend(rights.lines());
    output.facts(&lines, &with(with(group.json(), [("Users", array(&users))]), rights.json()));
    Ok(())
}
