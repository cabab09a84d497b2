//! `slipway admin provider`.

use clap::{Args, Subcommand};

use super::node::Node;
use super::output::{Output, with};
use super::service::{Failure, Result, Server};

const COLUMNS: [(&str, &str); 1] = [("PROVIDER", "Arn")];

/// The commands for OpenID providers.
#[derive(Debug, Clone, Subcommand)]
pub enum ProviderCommand {
    /// List the providers; `aws iam create-open-id-connect-provider` makes one
    #[command(after_help = "Example: slipway admin provider list")]
    List,
    /// Show a provider with its claims. Only with the key that the server was started with
    #[command(after_help = "Example: slipway admin provider show idp.example.org/realms/lab")]
    Show(Which),
    /// Say which claims of a provider's tokens name the roles that somebody may have, and whom they
    /// are on the file system; a claim that is not given is none. Only with the key that the server
    /// was started with
    #[command(
        after_help = "Example: slipway admin provider set-claims idp.example.org/realms/lab --role groups \\\n             \
                      --posix preferred_username"
    )]
    SetClaims {
        /// The provider.
        #[command(flatten)]
        which: Which,
        /// The claim with a role or a list of roles, by name or ARN: others cannot be had
        #[arg(long, value_name = "CLAIM")]
        role: Option<String>,
        /// The claim with the name of an account of the system
        #[arg(long, value_name = "CLAIM")]
        posix: Option<String>,
    },
}

/// A provider.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The URL of the provider, or its ARN
    #[arg(value_name = "PROVIDER")]
    pub provider: String,
}

impl Which {
    /// Returns the ARN of the provider, which may be given by its URL.
    fn arn(&self, server: &Server) -> Result<String> {
        if self.provider.starts_with("arn:") {
            return Ok(self.provider.clone());
        }
        let url = self.provider.strip_prefix("https://").or_else(|| self.provider.strip_prefix("http://"));
        let ending = format!(":oidc-provider/{}", url.unwrap_or(&self.provider));
        let found =
            providers(server)?.iter().map(|one| one.text_of("Arn")).find(|arn| arn.ends_with(&ending));
        found.ok_or_else(|| Failure::Refused {
            code: "NoSuchEntity".to_owned(),
            message: format!(
                "there is no provider {}: `slipway admin provider list` shows all",
                self.provider
            ),
        })
    }
}

fn providers(server: &Server) -> Result<Vec<Node>> {
    let all = server.iam("ListOpenIDConnectProviders", &[])?;
    Ok(all.members("OpenIDConnectProviderList").to_vec())
}

/// Runs a command.
pub fn run(command: &ProviderCommand, server: &Server, output: &Output<'_>) -> Result<()> {
    match command {
        ProviderCommand::List => output.list(&providers(server)?, &COLUMNS),
        ProviderCommand::Show(which) => show(&which.arn(server)?, server, output)?,
        ProviderCommand::SetClaims { which, role, posix } => {
            let arn = which.arn(server)?;
            let mut members = vec![("OpenIDConnectProviderArn", arn.as_str())];
            members.extend(role.as_deref().map(|claim| ("RoleClaim", claim)));
            members.extend(posix.as_deref().map(|claim| ("PosixClaim", claim)));
            server.own("SetOpenIDConnectProviderClaims", &members)?;
            let said = |claim: &Option<String>| claim.clone().unwrap_or_else(|| "no claim".to_owned());
            output.done(&format!(
                "{arn}: roles by {}, accounts of the system by {}",
                said(role),
                said(posix)
            ));
        }
    }
    Ok(())
}

fn show(arn: &str, server: &Server, output: &Output<'_>) -> Result<()> {
    let members = [("OpenIDConnectProviderArn", arn)];
    let found = server.iam("GetOpenIDConnectProvider", &members)?;
    let claims = server.own("GetOpenIDConnectProviderClaims", &members)?;
    let clients: Vec<_> = found.members("ClientIDList").iter().map(|id| id.text.clone()).collect();
    let lines = [
        ("provider", found.text_of("Url")),
        ("arn", arn.to_owned()),
        ("made", found.text_of("CreateDate")),
        ("client ids", clients.join(", ")),
        ("claim for roles", claims.text_of("RoleClaim")),
        ("claim for accounts", claims.text_of("PosixClaim")),
    ];
    let own = ["RoleClaim", "PosixClaim"].map(|name| (name, claims.text_of(name)));
    let own = own.into_iter().filter(|(_, claim)| !claim.is_empty());
    output.facts(&lines, &with(found.json(), own.map(|(name, claim)| (name, claim.into()))));
    Ok(())
}
