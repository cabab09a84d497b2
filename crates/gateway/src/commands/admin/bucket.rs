//! `slipway admin bucket`.

use clap::Subcommand;
use iam_wire::Service;

use super::account::Which;
use super::output::Output;
use super::service::{Result, Server};

const COLUMNS: [(&str, &str); 5] = [
    ("BUCKET", "BucketName"),
    ("OWNER", "AccountId"),
    ("NAME", "AccountName"),
    ("MADE", "CreateDate"),
    ("CLOSED", "Closed"),
];

/// The commands for buckets.
#[derive(Debug, Clone, Subcommand)]
pub enum BucketCommand {
    /// List all buckets of the directory, with the accounts that own them
    #[command(after_help = "Example: slipway admin bucket list")]
    List,
    /// Give a bucket to another account. Its policy stays, and files belong on the file system to
    /// whom they did
    #[command(after_help = "Example: slipway admin bucket owner data lab")]
    Owner {
        /// The bucket
        bucket: String,
        /// The account.
        #[command(flatten)]
        account: Which,
    },
}

/// Runs a command.
pub fn run(command: &BucketCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        BucketCommand::List => {
            output.list(&server.list_of(Service::Slipway, "ListBucketOwners", &[], "Buckets")?, &COLUMNS);
        }
        BucketCommand::Owner { bucket, account } => {
            let id = account.id(server)?;
            server.own("SetBucketOwner", &[("BucketName", bucket), ("AccountId", &id)])?;
            output.done(&format!("{bucket}: owned by {id}"));
        }
    }
    Ok(())
}
