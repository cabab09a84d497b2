//! The option `--oidc-ca`: the certificate authorities that are trusted for OpenID providers.

use iam_remote::{OpenId, Trust};

use crate::config::ServeOptions;

fn trust(options: &ServeOptions) -> Trust {
    Trust { ca: options.oidc_ca.clone(), insecure: false }
}

/// Checks the file of certificates that the option names.
pub fn check(options: &ServeOptions) -> Result<(), String> {
    iam_remote::check(&trust(options)).map_err(|error| {
        format!(
            "--oidc-ca: {error}: give a file with certificates (PEM) of authorities, or leave out --oidc-ca"
        )
    })
}

/// Makes the verifier of tokens of OpenID providers.
pub fn open(options: &ServeOptions) -> OpenId {
    OpenId::new(trust(options))
}
