//! `slipway admin account`.

use clap::{Args, Subcommand};
use iam_wire::Service;

use super::key::secret;
use super::node::Node;
use super::output::Output;
use super::service::{Failure, Result, Server};

const COLUMNS: [(&str, &str); 7] = [
    ("ACCOUNT", "AccountId"),
    ("NAME", "AccountName"),
    ("ALIAS", "AccountAlias"),
    ("STATUS", "Status"),
    ("USERS", "Users"),
    ("ROLES", "Roles"),
    ("OWNS DIR", "OwnsTree"),
];

/// The commands for accounts.
#[derive(Debug, Clone, Subcommand)]
pub enum AccountCommand {
    /// Create an account, and print the access key of its root user, who may do everything in the
    /// account. Its secret cannot be shown again
    #[command(after_help = "Example: slipway admin account create lab")]
    Create {
        /// The name of the new account, by which people and other commands refer to it
        name: String,
    },
    /// List the accounts, with their ids and names
    #[command(after_help = "Example: slipway admin account list --json")]
    List,
    /// Show an account
    #[command(after_help = "Example: slipway admin account show lab")]
    Show(Which),
    /// Change the name of an account
    #[command(after_help = "Example: slipway admin account rename lab physics")]
    Rename {
        /// The account.
        #[command(flatten)]
        which: Which,
        /// The new name
        name: String,
    },
    /// Refuse all requests with access keys and sessions of an account. Its data is kept. The first
    /// account, which the first start of the gateway created, cannot be disabled
    #[command(after_help = "Example: slipway admin account disable lab")]
    Disable(Which),
    /// Accept the access keys of a disabled account again, and also those sessions that have not
    /// expired
    #[command(after_help = "Example: slipway admin account enable lab")]
    Enable(Which),
    /// Delete an account with its users and roles. The account must be disabled, and must own no
    /// buckets
    #[command(after_help = "Example: slipway admin account delete lab")]
    Delete(Which),
    /// Create another access key for the root user of an account, and print it with its secret,
    /// which cannot be shown again. A root user can have two access keys
    #[command(after_help = "Example: slipway admin account create-key lab")]
    CreateKey(Which),
    /// List the access keys of the root user of an account
    #[command(after_help = "Example: slipway admin account list-keys lab")]
    ListKeys(Which),
    /// Delete an access key of the root user of an account
    #[command(after_help = "Example: slipway admin account delete-key lab AKIAIOSFODNN7EXAMPLE")]
    DeleteKey {
        /// The account.
        #[command(flatten)]
        which: Which,
        /// The id of the access key
        key: String,
    },
}

/// An account.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The account: its id of 12 digits, or its name
    #[arg(value_name = "ACCOUNT")]
    pub account: String,
}

impl Which {
    /// Returns the id of the account.
    pub fn id(&self, server: &Server) -> Result<String> {
        if self.account.len() == 12 && self.account.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(self.account.clone());
        }
        let all = accounts(server)?;
        let mut named =
            all.iter().filter(|account| account.text_of("AccountName").eq_ignore_ascii_case(&self.account));
        // The account of the tree has no name: a script's variable that is not set is not it.
        if self.account.is_empty() {
            return Err(refused("InvalidInput", "an account has a number or a name".to_owned()));
        }
        match (named.next(), named.next()) {
            (Some(found), None) => Ok(found.text_of("AccountId")),
            (None, _) => Err(refused("NoSuchEntity", format!("there is no account {}", self.account))),
            _ => {
                let why = format!("several accounts have the name {}: give a number", self.account);
                Err(refused("InvalidInput", why))
            }
        }
    }
}

fn refused(code: &str, message: String) -> Failure {
    Failure::Refused { code: code.to_owned(), message }
}

fn accounts(server: &Server) -> Result<Vec<Node>> {
    server.list_of(Service::Slipway, "ListAccounts", &[], "Accounts")
}

/// Runs a command.
pub fn run(command: &AccountCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        AccountCommand::Create { name } => {
            let made = server.own("CreateAccount", &[("AccountName", name)])?;
            let (account, key) =
                (made.child("Account").cloned().unwrap_or_default(), made.child("AccessKey").cloned());
            let lines = [("account", account.text_of("AccountId")), ("name", account.text_of("AccountName"))];
            secret(&lines, &key.unwrap_or_default(), &made.json(), output);
        }
        AccountCommand::List => output.list(&accounts(server)?, &COLUMNS),
        AccountCommand::Show(which) => {
            let found = server.own("GetAccount", &[("AccountId", &which.id(server)?)])?;
            show(&found.child("Account").cloned().unwrap_or_default(), output);
        }
        AccountCommand::Rename { which, name } => {
            let id = which.id(server)?;
            server.own("UpdateAccount", &[("AccountId", &id), ("NewAccountName", name)])?;
            output.done(&format!("{id}: has the name {name}"));
        }
        AccountCommand::Disable(which) => {
            let id = which.id(server)?;
            server.own("UpdateAccount", &[("AccountId", &id), ("Status", "Disabled")])?;
            output.done(&format!("{id}: its keys and sessions are refused, by all gateways within a second"));
        }
        AccountCommand::Enable(which) => {
            let id = which.id(server)?;
            server.own("UpdateAccount", &[("AccountId", &id), ("Status", "Active")])?;
            output.done(&format!("{id}: its keys are accepted"));
        }
        AccountCommand::Delete(which) => {
            let id = which.id(server)?;
            server.own("DeleteAccount", &[("AccountId", &id)])?;
            output.done(&format!("{id}: deleted"));
        }
        AccountCommand::CreateKey(which) => {
            let made = server.own("CreateRootAccessKey", &[("AccountId", &which.id(server)?)])?;
            let key = made.child("AccessKey").cloned().unwrap_or_default();
            secret(&[], &key, &key.json(), output);
        }
        AccountCommand::ListKeys(which) => {
            let id = which.id(server)?;
            let members = [("AccountId", id.as_str())];
            let keys =
                server.list_of(Service::Slipway, "ListRootAccessKeys", &members, "AccessKeyMetadata")?;
            output.list(&keys, &super::key::COLUMNS);
        }
        AccountCommand::DeleteKey { which, key } => {
            let id = which.id(server)?;
            server.own("DeleteRootAccessKey", &[("AccountId", &id), ("AccessKeyId", key)])?;
            output.done(&format!("{key}: deleted"));
        }
    }
    Ok(())
}

fn show(account: &Node, output: &Output<'_>) {
    let own = if account.text_of("OwnsTree") == "true" { "yes" } else { "" };
    let lines = [
        ("account", account.text_of("AccountId")),
        ("name", account.text_of("AccountName")),
        ("alias", account.text_of("AccountAlias")),
        ("status", account.text_of("Status")),
        ("canonical id", account.text_of("CanonicalId")),
        ("of the directory", own.to_owned()),
        ("users", account.text_of("Users")),
        ("groups", account.text_of("Groups")),
        ("roles", account.text_of("Roles")),
        ("policies", account.text_of("Policies")),
    ];
    output.facts(&lines, &account.json());
}
