//! The options about the LDAP directory.

use std::path::PathBuf;

use clap::Args;
use iam_remote::ldap::{DN, LdapServer, Template, USER};

use crate::values::{switch, whole};

/// Options about the LDAP directory.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_field_names, reason = "flags have the names of the fields")]
pub struct LdapOptions {
    /// Let people of this LDAP directory log in with their passwords, by
    /// AssumeRoleWithLDAPIdentity, an action that MinIO has added to STS. The URL is
    /// ldaps://HOST[:PORT], or ldap://HOST[:PORT] for a connection that StartTLS encrypts. May be
    /// given several times: the first server that can be reached is used. Example: --ldap-server
    /// ldaps://ldap.lab.example --ldap-base dc=lab,dc=example --ldap-bind-dn
    /// cn=slipway,dc=lab,dc=example --ldap-bind-password-file /etc/slipway/ldap-password
    #[arg(long, value_name = "URL", env = "SLIPWAY_LDAP_SERVER", value_delimiter = ',', value_parser = LdapServer::parse)]
    pub ldap_server: Vec<LdapServer>,

    /// Do not encrypt connections to an ldap:// URL of --ldap-server (no StartTLS). Anyone who can
    /// listen to the network then learns the passwords. Use it only for an LDAP server on this
    /// machine or on a separate, trusted network
    #[arg(long, env = "SLIPWAY_LDAP_IN_CLEAR", value_parser = switch)]
    pub ldap_in_clear: bool,

    /// Trust the certificate authorities in this PEM file, in place of the system's, when the
    /// gateway connects to --ldap-server. The file is read again for each connection
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CA")]
    pub ldap_ca: Option<PathBuf>,

    /// The client certificate (PEM) that the gateway presents to --ldap-server. Without
    /// --ldap-bind-dn, the gateway also binds by this certificate (SASL EXTERNAL), so that it
    /// searches the directory as the entry to which the server maps the certificate
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CLIENT_CERT")]
    pub ldap_client_cert: Option<PathBuf>,

    /// The private key (PEM) that belongs to --ldap-client-cert
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_CLIENT_KEY")]
    pub ldap_client_key: Option<PathBuf>,

    /// The DN that the gateway binds (logs in) with to search the LDAP directory. This entry needs
    /// read access to the entries of people and groups (their uidNumber, gidNumber and the
    /// attributes that other options about LDAP name), and to nothing else. Without this option,
    /// the gateway binds by --ldap-client-cert; without that too, it searches anonymously
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_BIND_DN")]
    pub ldap_bind_dn: Option<String>,

    /// A file with the password of --ldap-bind-dn. It must be accessible to its owner only (mode
    /// 0600); if it belongs to the system's root, its group may read it as well (0640). A reload
    /// (SIGHUP) reads it again. The variable SLIPWAY_LDAP_BIND_PASSWORD may hold the password in
    /// place of a file
    #[arg(long, value_name = "FILE", env = "SLIPWAY_LDAP_BIND_PASSWORD_FILE")]
    pub ldap_bind_password_file: Option<PathBuf>,

    /// A command that prints the password of --ldap-bind-dn: a program and its arguments, separated
    /// by spaces. The gateway runs it without a shell, at its start and at each reload (SIGHUP). It
    /// must finish within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_LDAP_BIND_PASSWORD_COMMAND")]
    pub ldap_bind_password_command: Option<String>,

    /// The DN of the LDAP entry below which people are searched for, such as
    /// ou=people,dc=lab,dc=example. --ldap-server needs this option
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_BASE")]
    pub ldap_base: Option<String>,

    /// The LDAP filter that finds the entry of a person who logs in; {user} stands for the name
    /// that was typed. During a session, the gateway checks once a minute that the entry still
    /// exists and still matches the filter, except for the name; otherwise it refuses the session.
    /// For Active Directory: (&(objectClass=user)(sAMAccountName={user}))
    #[arg(long, value_name = "FILTER", env = "SLIPWAY_LDAP_USER_FILTER", default_value = "(uid={user})", value_parser = user_filter)]
    pub ldap_user_filter: Template,

    /// The LDAP attribute with the name of a person. Policies, ARNs and logs use this name, in the
    /// directory's spelling, whatever spelling was typed at the login. For Active Directory:
    /// sAMAccountName
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_NAME_ATTRIBUTE", default_value = "uid", value_parser = attribute)]
    pub ldap_name_attribute: String,

    /// The LDAP attribute with the id of a person's S3 access key, if the directory stores such
    /// keys. A request that is signed with the key has the same rights as the person has after a
    /// login. Give --ldap-secret-key-attribute as well. The directory should have an equality index
    /// for the attribute, since it is searched often
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_ACCESS_KEY_ATTRIBUTE", value_parser = attribute)]
    pub ldap_access_key_attribute: Option<String>,

    /// The LDAP attribute with the secret of the access key that --ldap-access-key-attribute names;
    /// the directory stores the secret unencrypted. Set the directory's access rules so that only
    /// --ldap-bind-dn can read this attribute
    #[arg(long, value_name = "NAME", env = "SLIPWAY_LDAP_SECRET_KEY_ATTRIBUTE", value_parser = attribute)]
    pub ldap_secret_key_attribute: Option<String>,

    /// The DN of the LDAP entry below which groups are searched for. Without this option, they are
    /// searched for below --ldap-base
    #[arg(long, value_name = "DN", env = "SLIPWAY_LDAP_GROUP_BASE")]
    pub ldap_group_base: Option<String>,

    /// The LDAP filter that finds the groups of a person: {dn} stands for the DN of the person's
    /// entry, {user} for the person's name (--ldap-name-attribute). For each group that is found,
    /// the gateway searches again, to find the groups that contain this group: then {dn} stands for
    /// the DN of the group, and what the filter says about {user} matches nothing
    #[arg(
        long,
        value_name = "FILTER",
        env = "SLIPWAY_LDAP_GROUP_FILTER",
        default_value = "(|(member={dn})(uniqueMember={dn})(memberUid={user}))",
        value_parser = group_filter
    )]
    pub ldap_group_filter: Template,

    /// The number of wrong passwords of a person that the gateway sends to the LDAP directory
    /// within 15 minutes. After that it refuses the person's logins itself, so that the directory
    /// does not lock the person out. Each gateway counts separately, so that two gateways together
    /// may send twice as many
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
