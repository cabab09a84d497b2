//! The options that name the store of identities and its credentials, for `slipway serve` and the
//! commands that read identities.

use std::path::PathBuf;

use clap::Args;
use iam_remote::StorePlace;

/// The environment variable that may have the text of the credentials itself.
pub const VARIABLE: &str = "SLIPWAY_IDENTITIES_CREDENTIALS";

/// Options about the store of identities.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreOptions {
    /// The store that holds users, groups, roles and policies, in place of DIR/.slipway/iam. Give
    /// vault:https://HOST:PORT/MOUNT/PATH for Vault or OpenBao (KV engine, version 2), or
    /// s3:https://HOST:PORT/BUCKET/PREFIX for a bucket of another S3 server. Give the same store to
    /// all gateways and commands that work on one directory. Several directories may share a store;
    /// to have the same users, they must have the same account id, given before their first start
    #[arg(long, value_name = "URL", env = "SLIPWAY_IDENTITIES", value_parser = StorePlace::parse)]
    pub identities: Option<StorePlace>,

    /// A TOML file with the credentials for the store that --identities names. For a bucket, the
    /// file contains access_key and secret_key. For Vault and OpenBao it contains one of: token;
    /// token_file; role_id and secret_id (AppRole); kubernetes_role. It must be accessible to its
    /// owner only (mode 0600); if it belongs to the system's root, its group may read it as well
    /// (0640). It is read again when the store refuses the credentials. The variable
    /// SLIPWAY_IDENTITIES_CREDENTIALS may hold the content in place of a file
    #[arg(long, value_name = "FILE", env = "SLIPWAY_IDENTITIES_CREDENTIALS_FILE")]
    pub identities_credentials_file: Option<PathBuf>,

    /// A command that prints what the file of --identities-credentials-file would contain: a
    /// program and its arguments, separated by spaces. It is run without a shell, and must finish
    /// within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_IDENTITIES_CREDENTIALS_COMMAND")]
    pub identities_credentials_command: Option<String>,

    /// Trust the certificate authorities in this PEM file, in place of the system's, for
    /// connections to the store that --identities names
    #[arg(long, value_name = "FILE", env = "SLIPWAY_IDENTITIES_CA")]
    pub identities_ca: Option<PathBuf>,
}

impl StoreOptions {
    /// Refuses options about a store if none is named.
    pub fn check(&self) -> Result<(), String> {
        if self.identities.is_some() {
            return Ok(());
        }
        let given = [
            (self.identities_credentials_file.is_some(), "--identities-credentials-file"),
            (self.identities_credentials_command.is_some(), "--identities-credentials-command"),
            (self.identities_ca.is_some(), "--identities-ca"),
        ];
        match given.into_iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, flag)) => Err(format!(
                "{flag} has no effect without --identities: give --identities as well, or leave out {flag}"
            )),
        }
    }
}
