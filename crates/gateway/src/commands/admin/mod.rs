//! `slipway admin`: manages accounts, users, keys, groups, policies and roles with the actions of
//! IAM and our own (docs/decisions/0043-iam-and-sts-on-the-port.md). `aws iam` and boto3 can do the
//! same, except what only Slipway has.

mod account;
mod bucket;
mod common;
mod group;
mod ini;
mod key;
mod node;
mod output;
mod policy;
mod profile;
mod provider;
mod rights;
mod role;
mod service;
mod user;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::account::AccountCommand;
use self::bucket::BucketCommand;
use self::group::GroupCommand;
use self::key::KeyCommand;
use self::output::Output;
pub(super) use self::output::aligned;
use self::policy::PolicyCommand;
use self::profile::ConnectionOptions;
use self::provider::ProviderCommand;
use self::role::RoleCommand;
use self::service::{Failure, Server};
use self::user::UserCommand;
use super::{Console, FAILED, FOUND, OK};

/// Options of `slipway admin`.
#[derive(Debug, Clone, Args)]
pub struct AdminOptions {
    /// The server.
    #[command(flatten)]
    pub connection: ConnectionOptions,

    /// Print JSON in place of tables. Its fields are called as in the answers of AWS's IAM API,
    /// such as UserName
    #[arg(long, global = true)]
    pub json: bool,

    /// The noun and verb of the command.
    #[command(subcommand)]
    pub command: AdminCommand,
}

/// The nouns of `slipway admin`.
#[derive(Debug, Clone, Subcommand)]
pub enum AdminCommand {
    /// Manage the accounts (tenants) of one served directory. Only the gateway's root key may do
    /// this (see --credentials-file)
    #[command(subcommand)]
    Account(AccountCommand),
    /// Show and change which account owns a bucket. Only the gateway's root key may do this (see
    /// --credentials-file)
    #[command(subcommand)]
    Bucket(BucketCommand),
    /// Manage the IAM users of the account to which the signing key belongs
    #[command(subcommand, mut_subcommands(rights::for_users))]
    User(UserCommand),
    /// Manage the access keys of IAM users
    #[command(subcommand)]
    Key(KeyCommand),
    /// Manage groups of IAM users. The policies of a group apply to all users in it
    #[command(subcommand, mut_subcommands(rights::for_groups))]
    Group(GroupCommand),
    /// Manage managed policies, which can be attached to users, groups and roles
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Manage roles, which users and others can assume for a limited time
    #[command(subcommand, mut_subcommands(rights::for_roles))]
    Role(RoleCommand),
    /// Show OpenID providers, whose users can assume roles, and choose the claims that gateways
    /// read from their tokens
    #[command(subcommand)]
    Provider(ProviderCommand),
}

/// Runs a command.
pub fn run(options: &AdminOptions) -> ExitCode {
    let console = Console::new();
    let found = profile::find(&options.connection, &|name| std::env::var(name).ok());
    let server = match found.and_then(Server::new) {
        Ok(server) => server,
        Err(why) => return console.fail(&why),
    };
    let output = Output { console: &console, json: options.json };
    let done = match &options.command {
        AdminCommand::Account(command) => account::run(command, &server, &output),
        AdminCommand::Bucket(command) => bucket::run(command, &server, &output),
        AdminCommand::User(command) => user::run(command, &server, &output),
        AdminCommand::Key(command) => key::run(command, &server, &output),
        AdminCommand::Group(command) => group::run(command, &server, &output),
        AdminCommand::Policy(command) => policy::run(command, &server, &output),
        AdminCommand::Role(command) => role::run(command, &server, &output),
        AdminCommand::Provider(command) => provider::run(command, &server, &output),
    };
    match done {
        Ok(()) => OK.into(),
        Err(failure) => {
            console.complain(&failure.to_string());
            if matches!(failure, Failure::Refused { .. }) { FOUND.into() } else { FAILED.into() }
        }
    }
}
