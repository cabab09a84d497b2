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
    /// The store of users, roles and policies, in place of DIR/.slipway/iam: Vault or OpenBao, as
    /// secrets (vault:https://HOST:PORT/MOUNT/PATH, a KV engine of version 2), or a bucket of
    /// another S3 server (s3:https://HOST:PORT/BUCKET/PREFIX). All gateways of DIR have to name the
    /// same store; gateways of several directories may share one
    #[arg(long, value_name = "URL", env = "SLIPWAY_IDENTITIES", value_parser = StorePlace::parse)]
    pub identities: Option<StorePlace>,

    /// A TOML file with the credentials for the store of --identities, readable by its owner only
    /// as --credentials-file: for a bucket access_key and secret_key; for Vault token, token_file,
    /// role_id and secret_id (AppRole), or kubernetes_role. The text may also be in
    /// SLIPWAY_IDENTITIES_CREDENTIALS. It is read again when the store refuses the credentials
    #[arg(long, value_name = "FILE", env = "SLIPWAY_IDENTITIES_CREDENTIALS_FILE")]
    pub identities_credentials_file: Option<PathBuf>,

    /// A program, and its arguments separated by spaces, that prints what the file of
    /// --identities-credentials-file would contain. It is run without a shell, and must finish
    /// within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_IDENTITIES_CREDENTIALS_COMMAND")]
    pub identities_credentials_command: Option<String>,

    /// A file with certificates (PEM) of the authorities that are trusted for the store of
    /// --identities, in place of the system's
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
