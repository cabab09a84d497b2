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
    /// List all buckets of the served directory, each with the account that owns it
    #[command(after_help = "Example: slipway admin bucket list")]
    List,
    /// Make another account the owner of a bucket. The bucket policy stays as it is, and so do the
    /// owners of files on the file system
    #[command(after_help = "Example: slipway admin bucket owner data lab")]
    Owner {
        /// The name of the bucket
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
