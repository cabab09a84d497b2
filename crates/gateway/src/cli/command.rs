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
use crate::commands::versions::VersionsCommand;
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
    /// Serve a directory over S3. A process that does so is called a gateway
    Serve(Box<ServeOptions>),
    /// Show files and directories as S3 clients see them: with keys, ETags, checksums and metadata
    Stat(StatOptions),
    /// Compute the ETags and checksums of files that other programs made or changed. PATH is a
    /// file, a directory with everything below it, a bucket, or the whole served directory
    Rehash(RehashOptions),
    /// Check a served directory for damage and for leftovers of crashes, and repair it (--repair).
    /// Gateways may go on serving it. Exit status: 0 no problems, or all repaired; 1 problems
    /// remain; 2 the check could not be made
    Fsck(FsckOptions),
    /// Import the metadata and users that another S3 server left in a directory
    #[command(subcommand)]
    Import(ImportCommand),
    /// Remove the temporary files that crashes left in a served directory, as gateways do regularly
    Sweep(SweepOptions),
    /// List, prune and restore the versions of objects in buckets that keep them
    #[command(subcommand)]
    Versions(VersionsCommand),
    /// Upgrade the on-disk format of a directory that earlier versions served, so that all features
    /// of this version can be used in it. Earlier versions cannot open it afterwards. The upgrade
    /// is optional: without it, everything works as before. Stop all gateways of the directory
    /// first. Exit status: 0 upgraded, or there is nothing to upgrade, or --dry-run showed what to
    /// do; 2 not upgraded
    Upgrade(UpgradeOptions),
    /// Measure the performance of an S3 server: this one or any other. Exit status: 0 measured; 1
    /// measured with errors, or interrupted; 2 could not measure
    Bench(Box<BenchOptions>),
    /// Predict whether a storage system is sufficient for a load. The prediction covers its space,
    /// the failures that it survives, its request rates and what limits them, the number of
    /// gateways, and its cost. Exit status: 0 it is sufficient; 1 it is not; 2 no prediction could
    /// be made
    Plan(Box<PlanOptions>),
    /// Manage the accounts, users, access keys, groups, policies and roles of a running gateway.
    /// Requests are signed with a profile of the AWS CLI. Exit status: 0 done; 1 the gateway
    /// refused the request; 2 the gateway could not be reached, or the command line is wrong
    Admin(Box<AdminOptions>),
    /// Check AWS policy documents, and explain what they allow, by the same rules as a gateway
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Manage the master key, which encrypts the secrets of users' access keys: make one, change
    /// it, or deactivate access keys whose master key is lost
    #[command(subcommand)]
    MasterKey(MasterKeyCommand),
    /// Ask a gateway whether it is ready to serve, at the address that its option ops-listen gives.
    /// Exit status: 0 it is ready; 1 it is not ready, or does not answer; 2 the command line is
    /// wrong
    Ready(ReadyOptions),
    /// Show live figures of gateways, such as request rates and latencies, from the addresses that
    /// their option ops-listen gives. Exit status: 0 all gateways answered the last time they were
    /// asked; 1 some did not; 2 none did
    Top(TopOptions),
    /// Print a completion script for a shell
    Completions {
        /// The shell that the script is for
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    Man(ManOptions),
}
