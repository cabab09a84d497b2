//! `slipway admin user`.

use clap::Subcommand;

use super::common::{arn_of, find_all, gone, tag};
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
    /// Create a user, who has no permissions until a policy grants some
    #[command(after_help = "Example: slipway admin user create ann --policy AmazonS3ReadOnlyAccess --key")]
    Create {
        /// The name of the new user
        name: String,
        /// The IAM path of the user, such as /sales/, which becomes part of the ARN
        #[arg(long, default_value = "/")]
        path: String,
        /// A group to which the user is added. May be given several times
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// A managed policy to attach to the user, by name or ARN. May be given several times
        #[arg(long, value_name = "POLICY")]
        policy: Vec<String>,
        /// Also create an access key for the user, and print it with its secret, which cannot be
        /// shown again
        #[arg(long)]
        key: bool,
    },
    /// List the users
    #[command(after_help = "Example: slipway admin user list")]
    List {
        /// List only the users whose IAM path begins with this text; all paths begin with /
        #[arg(long, default_value = "/")]
        path: String,
    },
    /// Show a user, with the user's access keys, groups and policies
    #[command(after_help = "Example: slipway admin user show ann")]
    Show {
        /// The name of the user
        name: String,
    },
    /// Change the name of a user
    #[command(after_help = "Example: slipway admin user rename ann anna")]
    Rename {
        /// The present name of the user
        name: String,
        /// The new name
        new_name: String,
    },
    /// Delete a user. A user who still has access keys, policies or groups is deleted only with
    /// --all
    #[command(after_help = "Example: slipway admin user delete --all ann")]
    Delete {
        /// The name of the user
        name: String,
        /// First delete the user's access keys and inline policies, detach the managed policies,
        /// and remove the user from all groups
        #[arg(long)]
        all: bool,
    },
    /// Refuse all requests with a user's access keys and sessions. Only the gateway's root key may
    /// do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin user disable ann")]
    Disable {
        /// The name of the user
        name: String,
    },
    /// Accept the access keys of a disabled user again, and also those sessions that have not
    /// expired. Only the gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin user enable ann")]
    Enable {
        /// The name of the user
        name: String,
    },
    /// Set a user's permissions boundary: a managed policy that limits what the user's other
    /// policies allow
    #[command(after_help = "Example: slipway admin user set-boundary ann AmazonS3FullAccess")]
    SetBoundary {
        /// The name of the user
        name: String,
        /// The managed policy to use as the boundary, by name or ARN
        policy: String,
    },
    /// Remove a user's permissions boundary
    #[command(after_help = "Example: slipway admin user delete-boundary ann")]
    DeleteBoundary {
        /// The name of the user
        name: String,
    },
    /// Set the uid, gid and groups with which a user's requests access files. They have an effect
    /// only if the gateway runs with its option impersonate or chown. Such a gateway refuses a uid
    /// below its option uid-min, and a system user that its machine does not know. Only the
    /// gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin user set-posix ann 1001:100:27,44")]
    SetPosix {
        /// The name of the user
        name: String,
        /// The identity on the file system: UID:GID, or UID:GID:GROUP,GROUP with supplementary
        /// groups, or the name of a system user. The gateway looks up this user's uid, gid and
        /// groups when requests come, and uses each answer for a minute
        identity: String,
    },
    /// Remove the uid, gid and groups that set-posix stored for a user. Only the gateway's root key
    /// may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin user delete-posix ann")]
    DeletePosix {
        /// The name of the user
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
                spare_own_key(name, server)?;
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
    find_all(policies, server)?;
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

/// Fails if the user who is to be deleted owns the access key that signs this command's requests:
/// once this key is deleted, the command could delete nothing else of the user.
fn spare_own_key(name: &str, server: &Server) -> Result<()> {
    let own = server.access_key();
    if keys_of(Some(name), server)?.iter().all(|key| key.text_of("AccessKeyId") != own) {
        return Ok(());
    }
    let message = format!(
        "the access key {own} signs this command, and is one of {name}: give the key of another user, or of root. \
         Nothing was deleted"
    );
    Err(Failure::Refused { code: "DeleteConflict".to_owned(), message })
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
