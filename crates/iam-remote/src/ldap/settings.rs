//! The settings of the directory: its servers, and the entries that count.

use std::fmt;

use s3_client::{ClientCertificate, Trust};

use super::template::Template;

/// The protection of the connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// TLS from the beginning (`ldaps`).
    Tls,
    /// TLS by StartTLS (`ldap`).
    StartTls,
    /// None (`ldap`, if that is allowed).
    None,
}

/// A server of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdapServer {
    host: Box<str>,
    port: u16,
    is_tls: bool,
}

impl LdapServer {
    /// Reads `ldaps://HOST[:PORT]` or `ldap://HOST[:PORT]`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "give a URL such as ldaps://ldap.example or ldap://ldap.example:389".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (is_tls, usual) = match scheme {
            "ldaps" => (true, 636),
            "ldap" => (false, 389),
            _ => return Err(wrong()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            // The colons of an IPv6 address are in brackets.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (rest, usual),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_:".contains(&b);
        if bare.is_empty() || !bare.bytes().all(allowed) || (bare.contains(':') && bare.len() == host.len()) {
            return Err(wrong());
        }
        Ok(Self { host: bare.into(), port, is_tls })
    }

    /// Returns the host: a name or an address.
    pub const fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// True for `ldaps`.
    pub const fn is_tls(&self) -> bool {
        self.is_tls
    }
}

impl fmt::Display for LdapServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "ldaps" } else { "ldap" };
        let is_ipv6 = self.host.contains(':');
        let (open, close) = if is_ipv6 { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

/// The attributes in which an entry has an access key.
#[derive(Debug, Clone)]
pub struct KeyAttributes {
    /// The name of the attribute with the id of the key.
    pub access_key: Box<str>,
    /// The name of the attribute with the secret of the key.
    pub secret_key: Box<str>,
}

/// The settings of the directory: its servers, and the entries that count.
#[derive(Debug, Clone)]
pub struct LdapSettings {
    /// The servers: the first that can be reached is asked.
    pub servers: Vec<LdapServer>,
    /// True if passwords may go to servers of `ldap://` without TLS.
    pub in_clear: bool,
    /// The certificates that are trusted.
    pub trust: Trust,
    /// The gateway's own certificate.
    pub certificate: Option<ClientCertificate>,
    /// The DN that searches are made as. Without it they are made as the certificate's owner, or
    /// else as anybody.
    pub bind_dn: Option<Box<str>>,
    /// The DN below which people are.
    pub base: Box<str>,
    /// The filter for people who may log in, with the place [`super::USER`].
    pub user_filter: Template,
    /// The attribute with the name of somebody here.
    pub name_attribute: Box<str>,
    /// The attributes with access keys; `None` if no entry has one.
    pub keys: Option<KeyAttributes>,
    /// The DN below which groups are.
    pub group_base: Box<str>,
    /// Which groups somebody is in, with the places [`super::DN`] and [`super::USER`].
    pub group_filter: Template,
    /// The number of wrong passwords that are sent for an entry in
    /// [`crate::limits::WRONG_PASSWORDS_TIME`].
    pub attempts: usize,
    /// The present second since 1970, for entries that expire.
    pub now: fn() -> i64,
}

impl LdapSettings {
    /// Returns how passwords are protected on the way to a server.
    pub const fn protection(&self, server: &LdapServer) -> Protection {
        match (server.is_tls, self.in_clear) {
            (true, _) => Protection::Tls,
            (false, false) => Protection::StartTls,
            (false, true) => Protection::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers() {
        for (text, shown) in [
            ("ldaps://dc1.lab", "ldaps://dc1.lab:636"),
            ("ldap://dc1.lab/", "ldap://dc1.lab:389"),
            ("ldap://127.0.0.1:1389", "ldap://127.0.0.1:1389"),
            ("ldaps://[::1]", "ldaps://[::1]:636"),
            ("ldaps://[::1]:1636", "ldaps://[::1]:1636"),
        ] {
            assert_eq!(LdapServer::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "dc1.lab",
            "http://dc1.lab",
            "ldap://",
            "ldap://a:b",
            "ldap://a:99999",
            "ldap://a/dc=lab",
            "ldap://user@a",
            "ldapi:///run/ldapi",
            "ldap://::1",
        ] {
            assert!(LdapServer::parse(text).is_err(), "{text}");
        }
    }
}
