use clap::{Parser, Subcommand};

use crate::commands::admin::AdminOptions;
use crate::commands::bench::BenchOptions;
use crate::commands::fsck::FsckOptions;
use crate::commands::import::ImportCommand;
use crate::commands::man::ManOptions;
use crate::commands::master_key::MasterKeyCommand;
use crate::commands::plan::PlanOptions;
use crate::commands::policy::PolicyCommand;
use crate::commands::ready::ReadyOptions;
use crate::commands::rehash::RehashOptions;
use crate::commands::stat::StatOptions;
use crate::commands::sweep::SweepOptions;
use crate::commands::top::TopOptions;
use crate::commands::upgrade::UpgradeOptions;
use crate::config::ServeOptions;
use crate::version;

/// An S3 server whose storage is the file system you already have.
#[derive(Debug, Parser)]
#[command(name = "slipway", version = version::LONG, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `slipway`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a directory over S3
    Serve(Box<ServeOptions>),
    /// Show what S3 knows of files and directories
    Stat(StatOptions),
    /// Compute ETags and checksums of files that other programs made or changed: those at and below
    /// each PATH, which may be a bucket, or the directory that is served
    Rehash(RehashOptions),
    /// Check a tree for damage and leftovers of crashes, and repair it (--repair). Safe while the
    /// tree is served. Exit status: 0 no problems, or all repaired; 1 problems remain; 2 could not
    /// check
    Fsck(FsckOptions),
    /// Import the metadata that another S3 server left in its tree
    #[command(subcommand)]
    Import(ImportCommand),
    /// Remove leftovers of crashes from a directory, without serving it
    Sweep(SweepOptions),
    /// Upgrade the format of a directory that earlier versions served, so that all features of this
    /// version work in it. Earlier versions cannot open it afterwards. Optional: without it,
    /// everything works as before. Stop all its gateways first. Exit status: 0 upgraded, nothing to
    /// upgrade, or only shown; 2 not upgraded
    Upgrade(UpgradeOptions),
    /// Measure an S3 server, this or another. Exit status: 0 measured; 1 measured with errors, or
    /// interrupted; 2 could not measure
    Bench(Box<BenchOptions>),
    /// Predict whether a storage system suffices for a load: space, which failures it survives,
    /// rates and what limits them, gateways, cost. Exit status: 0 it fits; 1 it does not; 2
    /// could not predict it
    Plan(Box<PlanOptions>),
    /// Make and change accounts, users, keys, groups, policies and roles at a gateway, with the
    /// keys and profiles of the AWS CLI. Exit status: 0 done; 1 the gateway refused it; 2 it
    /// could not be asked, or the command line is wrong
    Admin(Box<AdminOptions>),
    /// Check and explain AWS policy documents in files, as the server decides
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Make the master key that secrets of users' access keys are encrypted with, change it, or
    /// give up a lost one
    #[command(subcommand)]
    MasterKey(MasterKeyCommand),
    /// Ask a gateway's --ops-listen whether it is ready to serve. Exit status: 0 it is; 1 it is
    /// not, or does not answer; 2 the command line is wrong
    Ready(ReadyOptions),
    /// Show live what gateways do, from their --ops-listen. Exit status: 0 if, when it ended, all
    /// gateways answered; 1 if some did not; 2 if none answered
    Top(TopOptions),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    Man(ManOptions),
}
