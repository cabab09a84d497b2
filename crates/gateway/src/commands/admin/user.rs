//! `slipway admin user`.

use clap::Subcommand;

use super::common::{arn_of, gone, tag};
use super::key::{COLUMNS as KEY_COLUMNS, create, keys_of, secret};
use super::node::Node;
use super::output::{Output, array, joined, with, with_status};
use super::rights::{Holder, Rights, RightsCommand, attach, with_hint};
use super::service::{Failure, Result, Server};

const COLUMNS: [(&str, &str); 4] =
    [("NAME", "UserName"), ("PATH", "Path"), ("ID", "UserId"), ("MADE", "CreateDate")];

/// The commands for users.
#[derive(Debug, Clone, Subcommand)]
pub enum UserCommand {
    /// Make a user, who may do nothing until a policy says so
    #[command(after_help = "Example: slipway admin user create ann --policy AmazonS3ReadOnlyAccess --key")]
    Create {
        /// The name
        name: String,
        /// An IAM path such as /sales/, which is part of the ARN
        #[arg(long, default_value = "/")]
        path: String,
        /// A group that the user is put in. May be repeated, as --policy may
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// The name or the ARN of a managed policy that the user is given
        #[arg(long, value_name = "POLICY")]
        policy: Vec<String>,
        /// Make an access key, too, and print it with its secret, which is shown this once
        #[arg(long)]
        key: bool,
    },
    /// List the users
    #[command(after_help = "Example: slipway admin user list")]
    List {
        /// Those whose path begins so
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Show a user with keys, groups and policies
    #[command(after_help = "Example: slipway admin user show ann")]
    Show {
        /// The name
        name: String,
    },
    /// Give a user another name
    #[command(after_help = "Example: slipway admin user rename ann anna")]
    Rename {
        /// The name
        name: String,
        /// The new name
        new_name: String,
    },
    /// Delete a user
    #[command(after_help = "Example: slipway admin user delete --all ann")]
    Delete {
        /// The name
        name: String,
        /// Delete its keys and policies as well, and take it out of its groups
        #[arg(long)]
        all: bool,
    },
    /// Refuse all keys and sessions of a user. Only with the key that the server was started with
    #[command(after_help = "Example: slipway admin user disable ann")]
    Disable {
        /// The name
        name: String,
    },
    /// Accept the keys of a user again
    #[command(after_help = "Example: slipway admin user enable ann")]
    Enable {
        /// The name
        name: String,
    },
    /// Limit what a user's policies allow by a managed policy, its permissions boundary
    #[command(after_help = "Example: slipway admin user set-boundary ann AmazonS3FullAccess")]
    SetBoundary {
        /// The name
        name: String,
        /// The name or the ARN of the policy
        policy: String,
    },
    /// Take its permissions boundary from a user
    #[command(after_help = "Example: slipway admin user delete-boundary ann")]
    DeleteBoundary {
        /// The name
        name: String,
    },
    /// Say whom a user is on the file system, where servers act as their users. Only with
    /// the key that the server was started with
    #[command(after_help = "Example: slipway admin user set-posix ann 1001:100:27,44")]
    SetPosix {
        /// The name
        name: String,
        /// UID:GID, UID:GID:GROUP,GROUP or the name of an account of the system
        identity: String,
    },
    /// Take away what was said by set-posix
    #[command(after_help = "Example: slipway admin user delete-posix ann")]
    DeletePosix {
        /// The name
        name: String,
    },
    /// The commands about policies.
    #[command(flatten)]
    Rights(RightsCommand),
}

/// Runs a command.
pub fn run(command: &UserCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        UserCommand::Create { name, path, group, policy, key } => {
            return make(name, path, (group, policy), *key, server, output);
        }
        UserCommand::List { path } => {
            let users = server.list("ListUsers", &[("PathPrefix", path)], "Users")?;
            output.list(&users, &with_status(&users, &COLUMNS));
        }
        UserCommand::Show { name } => show(name, server, output)?,
        UserCommand::Rename { name, new_name } => {
            server.iam("UpdateUser", &[("UserName", name), ("NewUserName", new_name)])?;
            output.done(&format!("{name}: has the name {new_name}"));
        }
        UserCommand::Delete { name, all } => {
            if *all {
                take_all(name, server)?;
            }
            with_hint(server.iam("DeleteUser", &[("UserName", name)]), Holder::User, name)?;
            output.done(&format!("{name}: deleted"));
        }
        UserCommand::Disable { name } => {
            server.own("SetDisabled", &[("UserName", name), ("Disabled", "true")])?;
            output
                .done(&format!("{name}: its keys and sessions are refused, by all gateways within a second"));
        }
        UserCommand::Enable { name } => {
            server.own("SetDisabled", &[("UserName", name), ("Disabled", "false")])?;
            output.done(&format!("{name}: its keys are accepted"));
        }
        UserCommand::SetBoundary { name, policy } => {
            let arn = arn_of(policy, server)?;
            server.iam("PutUserPermissionsBoundary", &[("UserName", name), ("PermissionsBoundary", &arn)])?;
            output.done(&format!("{name}: has the boundary {arn}"));
        }
        UserCommand::DeleteBoundary { name } => {
            server.iam("DeleteUserPermissionsBoundary", &[("UserName", name)])?;
            output.done(&format!("{name}: has no boundary"));
        }
        UserCommand::SetPosix { name, identity } => {
            server.own("SetPosixIdentity", &[("UserName", name), ("Identity", identity)])?;
            output.done(&format!("{name}: is {identity} on the file system"));
        }
        UserCommand::DeletePosix { name } => {
            server.own("SetPosixIdentity", &[("UserName", name)])?;
            output.done(&format!("{name}: has no identity of its own on the file system"));
        }
        UserCommand::Rights(command) => return super::rights::run(command, Holder::User, server, output),
    }
    Ok(())
}

/// Makes a user with policies, groups and a key. If a policy or a group fails, the user stays, and
/// the message says what is missing. If the key fails, the user is deleted again.
fn make(
    name: &str,
    path: &str,
    (groups, policies): (&[String], &[String]),
    has_key: bool,
    server: &Server,
    output: &Output<'_>,
) -> Result<()> {
    // What is not there is found out before anything is made.
    for policy in policies {
        arn_of(policy, server)?;
    }
    for group in groups {
        server.iam("GetGroup", &[("GroupName", group), ("MaxItems", "1")])?;
    }
    let made = server.iam("CreateUser", &[("UserName", name), ("Path", path)])?;
    let user = made.child("User").cloned().unwrap_or_default();
    for policy in policies {
        attach(Holder::User, name, policy, server)?;
    }
    for group in groups {
        server.iam("AddUserToGroup", &[("GroupName", group), ("UserName", name)])?;
    }
    let lines = [("user", user.text_of("UserName")), ("arn", user.text_of("Arn"))];
    if has_key {
        let key = create(Some(name), server).map_err(|failure| unmade(name, failure, server))?;
        secret(&lines, &key, &with(user.json(), [("AccessKey", key.json())]), output);
    } else {
        output.facts(&lines, &user.json());
    }
    Ok(())
}

/// Deletes a user that was just made, since its key could not be made. Returns the failure with a
/// remark about this.
fn unmade(name: &str, failure: Failure, server: &Server) -> Failure {
    let deleted = take_all(name, server).and_then(|()| server.iam("DeleteUser", &[("UserName", name)]));
    let what = match deleted {
        Ok(_) => format!("The user {name} was not made"),
        Err(why) => format!("The user {name} was made without a key, and could not be deleted: {why}"),
    };
    match failure {
        Failure::Refused { code, message } => Failure::Refused { code, message: format!("{message} {what}") },
        Failure::NotAsked(why) => Failure::NotAsked(format!("{why}. {what}")),
    }
}

fn show(name: &str, server: &Server, output: &Output<'_>) -> Result<()> {
    let user = server.iam("GetUser", &[("UserName", name)])?.child("User").cloned().unwrap_or_default();
    let groups = server.list("ListGroupsForUser", &[("UserName", name)], "Groups")?;
    let (rights, keys) = (Rights::of(Holder::User, name, server)?, keys_of(Some(name), server)?);
    let shown = |key: &Node| format!("{} ({})", key.text_of(KEY_COLUMNS[0].1), key.text_of("Status"));
    let boundary = user.child("PermissionsBoundary").cloned().unwrap_or_default();
    let tags: Vec<String> = user.members("Tags").iter().map(tag).collect();
    let mut lines = vec![
        ("user", user.text_of("UserName")),
        ("arn", user.text_of("Arn")),
        ("id", user.text_of("UserId")),
        ("made", user.text_of("CreateDate")),
        ("status", user.text_of("Status")),
        ("posix", user.text_of("PosixIdentity")),
        ("tags", tags.join(", ")),
        ("keys", keys.iter().map(shown).collect::<Vec<_>>().join(", ")),
        ("groups", joined(&groups, "GroupName")),
    ];
    lines.extend(rights.lines());
    lines.push(("boundary", boundary.text_of("PermissionsBoundaryArn")));
    let more = [("AccessKeys", array(&keys)), ("Groups", array(&groups))];
    output.facts(&lines, &with(with(user.json(), more), rights.json()));
    Ok(())
}

/// Deletes and detaches everything that keeps a user from being deleted.
fn take_all(name: &str, server: &Server) -> Result<()> {
    let of = [("UserName", name)];
    for key in keys_of(Some(name), server)? {
        let id = key.text_of("AccessKeyId");
        gone(server.iam("DeleteAccessKey", &[("UserName", name), ("AccessKeyId", &id)]))?;
    }
    Rights::of(Holder::User, name, server)?.take(Holder::User, name, server)?;
    for group in server.list("ListGroupsForUser", &of, "Groups")? {
        let group = group.text_of("GroupName");
        gone(server.iam("RemoveUserFromGroup", &[("GroupName", &group), ("UserName", name)]))?;
    }
    Ok(())
}
