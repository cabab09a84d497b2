//! The options about the LDAP directory.

use std::path::PathBuf;

use clap::Args;
use iam_remote::ldap::{DN, LdapServer, Template, USER};

use crate::values::{switch, whole};

/// Options about the LDAP directory.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "flags have the names of the fields")]
pub struct LdapOptions {
    /// Let people of an LDAP directory log in by AssumeRoleWithLDAPIdentity: ldaps://HOST[:PORT],
    /// or ldap://HOST[:PORT], with which TLS is begun by StartTLS. May be given several times: the
    /// first server that can be reached is asked. Example: --ldap-server ldaps://ldap.lab.example
    /// --ldap-base dc=lab,dc=example --ldap-bind-dn cn=slipway,dc=lab,dc=example
    /// --ldap-bind-password-file /etc/slipway/ldap-password
    #[arg(long, value_name = "URL", env = "SLIPWAY_LDAP_SERVER", value_delimiter = ',', value_parser = LdapServer::parse)]
    pub ldap_server: Vec<LdapServer>,

    /// Send passwords to servers of ldap:// without TLS: whoever can listen to the network learns
    /// them. Only for a server on this machine or on a separate, trusted network
    #[arg(long, env = "SLIPWAY_LDAP_IN_CLEAR", value_parser = switch)]
    pub ldap_in_clear: bool,

    /// A file with certificates (PEM) of the authorities that are trusted for --ldap-server, in
    /// place of the system's. It is read again for each connection
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CA")]
    pub ldap_ca: Option<PathBuf>,

    /// The certificate (PEM) that the gateway shows to servers of --ldap-server. Without
    /// --ldap-bind-dn, searches are made as its owner (SASL EXTERNAL)
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CLIENT_CERT")]
    pub ldap_client_cert: Option<PathBuf>,

    /// The private key (PEM) of --ldap-client-cert
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CLIENT_KEY")]
    pub ldap_client_key: Option<PathBuf>,

    /// The DN that searches are made as; it needs to read people, groups and their ids, and nothing
    /// else. Without it, and without --ldap-client-cert, searches are anonymous
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_BIND_DN")]
    pub ldap_bind_dn: Option<String>,

    /// A file with the password of --ldap-bind-dn, readable by its owner only as
    /// --credentials-file. The password may also be in SLIPWAY_LDAP_BIND_PASSWORD. A reload reads
    /// it again
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_BIND_PASSWORD_FILE")]
    pub ldap_bind_password_file: Option<PathBuf>,

    /// A program, and its arguments separated by spaces, that prints the password of
    /// --ldap-bind-dn. It is run in the same way as that of --master-key-command
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_LDAP_BIND_PASSWORD_COMMAND")]
    pub ldap_bind_password_command: Option<String>,

    /// The entry below which people are
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_BASE")]
    pub ldap_base: Option<String>,

    /// The search filter for the entry of a user who logs in with the name {user}. It is asked
    /// again for each session once a minute, with * for {user}: a user who is no longer found has
    /// no sessions any more. Active Directory: (&(objectClass=user)(sAMAccountName={user}))
    #[arg(long, value_name = "FILTER", env = "SLIPWAY_LDAP_USER_FILTER", default_value = "(uid={user})", value_parser = user_filter)]
    pub ldap_user_filter: Template,

    /// The attribute with the user's name as policies and logs have it, however it was typed at the
    /// login. Active Directory: sAMAccountName
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_NAME_ATTRIBUTE", default_value = "uid", value_parser = attribute)]
    pub ldap_name_attribute: String,

    /// The attribute with an access key, for entries that have one: a request that it signs is one
    /// of whoever has the entry, with the rights of the groups as after a login. It needs
    /// --ldap-secret-key-attribute, and an index (equality) in the directory
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_ACCESS_KEY_ATTRIBUTE", value_parser = attribute)]
    pub ldap_access_key_attribute: Option<String>,

    /// The attribute with the secret of --ldap-access-key-attribute, in the clear. Let the
    /// directory show it to --ldap-bind-dn alone
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_SECRET_KEY_ATTRIBUTE", value_parser = attribute)]
    pub ldap_secret_key_attribute: Option<String>,

    /// The entry below which groups are looked for; without it, they are below --ldap-base
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_GROUP_BASE")]
    pub ldap_group_base: Option<String>,

    /// The search filter for the groups of a user, with {dn} for the user's DN and {user} for the
    /// name. To find the groups that contain a group, the search is repeated with the group's DN
    #[arg(
        long,
        value_name = "FILTER",
        env = "SLIPWAY_LDAP_GROUP_FILTER",
        default_value = "(|(member={dn})(uniqueMember={dn})(memberUid={user}))",
        value_parser = group_filter
    )]
    pub ldap_group_filter: Template,

    /// How many wrong passwords of a user are sent to the directory in 15 minutes; more are refused
    /// here, so that the directory does not lock the user out. N gateways send N times as many
    #[arg(long, value_name = "N", env = "SLIPWAY_LDAP_ATTEMPTS", default_value = "3", value_parser = whole::<usize, 1, 1_000>)]
    pub ldap_attempts: usize,
}

fn user_filter(text: &str) -> Result<Template, String> {
    Template::new(text, &[USER])
}

fn group_filter(text: &str) -> Result<Template, String> {
    Template::new(text, &[DN, USER])
}

fn attribute(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let is_one = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.bytes().all(allowed);
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("expected the name of an attribute, such as uid".to_owned())
    }
}
