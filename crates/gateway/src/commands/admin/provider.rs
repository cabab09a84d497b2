//! `slipway admin provider`.

use clap::{Args, Subcommand};

use super::node::Node;
use super::output::{Output, with};
use super::service::{Failure, Result, Server};

const COLUMNS: [(&str, &str); 1] = [("PROVIDER", "Arn")];

/// The commands for OpenID providers.
#[derive(Debug, Clone, Subcommand)]
pub enum ProviderCommand {
    /// List the OpenID providers. To add one, use `aws iam create-open-id-connect-provider`
    #[command(after_help = "Example: slipway admin provider list")]
    List,
    /// Show an OpenID provider, with the claims that gateways read from its tokens. Only the
    /// gateway's root key may do this (see --credentials-file)
    #[command(after_help = "Example: slipway admin provider show idp.example.org/realms/lab")]
    Show(Which),
    /// Set the claims that gateways read from the tokens of an OpenID provider: one that names the
    /// roles that a person may assume (--role), and one that names the system user that the person
    /// acts as on the file system (--posix). The setting of an option that is not given is removed.
    /// Only the gateway's root key may do this (see --credentials-file)
    #[command(
        after_help = "Example: slipway admin provider set-claims idp.example.org/realms/lab --role groups \\\n             \
                      --posix preferred_username"
    )]
    SetClaims {
        /// The provider.
        #[command(flatten)]
        which: Which,
        /// The claim that names the roles that a person may assume: one role or a list, by name or
        /// ARN. Other roles cannot be assumed with the token; those that are named must also trust
        /// the provider in their trust policies. Without this option, trust policies alone decide
        #[arg(long, value_name = "CLAIM")]
        role: Option<String>,
        /// The claim that names a system user. The person's session accesses files as this system
        /// user, unless a uid and gid are stored for its role. The option has an effect only if the
        /// gateway runs with its option impersonate or chown
        #[arg(long, value_name = "CLAIM")]
        posix: Option<String>,
    },
}

/// A provider.
#[derive(Debug, Clone, Args)]
pub struct Which {
    /// The OpenID provider, by URL (with or without https://) or ARN
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
