use std::fmt;

use super::limits::PROVIDER_URL_CHARS_MAX;
use crate::account::AccountId;

/// The error for a text that is not the URL of a provider. The sentence is IAM's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidProviderUrl;

impl fmt::Display for InvalidProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invalid Open ID Connect Provider URL")
    }
}

impl std::error::Error for InvalidProviderUrl {}

/// The URL of an OpenID provider without its scheme, as it stands in ARNs and condition keys: a
/// host, with an optional port and path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderUrl(Box<str>);

impl ProviderUrl {
    /// Reads a URL. Its scheme must be `https`; for an address of this machine it may be `http`.
    pub fn new(url: &str) -> Result<Self, InvalidProviderUrl> {
        let (rest, is_secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (rest, true),
            (None, Some(rest)) => (rest, false),
            (None, None) => return Err(InvalidProviderUrl),
        };
        let this = Self::without_scheme(rest)?;
        let is_local = matches!(this.host(), "localhost" | "127.0.0.1" | "[::1]");
        if is_secure || is_local { Ok(this) } else { Err(InvalidProviderUrl) }
    }

    /// Reads a URL without its scheme.
    pub fn without_scheme(text: &str) -> Result<Self, InvalidProviderUrl> {
        let this = Self(text.into());
        let is_short = text.len() <= PROVIDER_URL_CHARS_MAX;
        let is_plain = text.bytes().all(|b| b.is_ascii_graphic() && !b"?#@\"<>\\".contains(&b));
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        let host = this.host();
        let has_host = !host.is_empty() && host.bytes().all(is_host);
        if is_short && is_plain && has_host { Ok(this) } else { Err(InvalidProviderUrl) }
    }

    /// Returns the URL without its scheme.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host without the port.
    pub fn host(&self) -> &str {
        let host = self.0.split('/').next().unwrap_or_default();
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        }
    }
}

impl fmt::Display for ProviderUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The ARN of an OpenID provider: `arn:aws:iam::ACCOUNT:oidc-provider/HOST/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderArn {
    account: AccountId,
    url: ProviderUrl,
}

impl ProviderArn {
    /// Reads an ARN; `None` if it is not the ARN of a provider.
    pub fn new(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("arn:aws:iam::")?;
        let (account, url) = rest.split_once(":oidc-provider/")?;
        Some(Self { account: AccountId::new(account).ok()?, url: ProviderUrl::without_scheme(url).ok()? })
    }

    /// Makes the ARN of a provider of an account.
    pub fn of(account: &AccountId, url: &ProviderUrl) -> Self {
        Self { account: account.clone(), url: url.clone() }
    }

    /// Returns the account.
    pub const fn account(&self) -> &AccountId {
        &self.account
    }

    /// Returns the URL.
    pub const fn url(&self) -> &ProviderUrl {
        &self.url
    }
}

impl fmt::Display for ProviderArn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arn:aws:iam::{}:oidc-provider/{}", self.account, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host() {
        for (good, host) in [
            ("https://idp.lab", "idp.lab"),
            ("https://idp.lab:8443/realms/a", "idp.lab"),
            ("https://idp.lab/a:b", "idp.lab"),
            ("http://localhost:8080/auth/realms/demo", "localhost"),
            ("http://127.0.0.1/", "127.0.0.1"),
            ("http://[::1]:80/", "[::1]"),
            ("https://[2001:db8::1]/x", "[2001:db8::1]"),
        ] {
            let url = ProviderUrl::new(good).unwrap();
            assert_eq!(url.host(), host, "{good}");
            assert!(good.ends_with(url.as_str()));
        }
        let long = format!("https://{}", "a".repeat(256));
        for bad in [
            "",
            "example.org",
            "https://",
            "https:///a",
            "https://:80",
            "http://idp.lab",
            "http://localhost.idp.lab",
            "https://a b",
            "https://user@idp.lab",
            "https://idp.lab?a",
            "https://idp.lab/#a",
            "https://idp.läb",
            "HTTPS://idp.lab",
            &long,
        ] {
            assert_eq!(ProviderUrl::new(bad), Err(InvalidProviderUrl), "{bad}");
        }
    }

    #[test]
    fn the_parts_make_the_arn() {
        let arn = ProviderArn::new("arn:aws:iam::123456789012:oidc-provider/idp.lab/realms/a").unwrap();
        assert_eq!(arn.to_string(), "arn:aws:iam::123456789012:oidc-provider/idp.lab/realms/a");
        assert_eq!((arn.account().as_str(), arn.url().as_str()), ("123456789012", "idp.lab/realms/a"));
        for bad in [
            "",
            "arn:aws:iam::1234:oidc-provider/idp.lab",
            "arn:aws:iam::123456789012:oidc-provider/",
            "arn:aws:iam::123456789012:saml-provider/idp.lab",
        ] {
            assert_eq!(ProviderArn::new(bad), None, "{bad}");
        }
    }
}
