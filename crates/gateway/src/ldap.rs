//! The LDAP directory through which people log in: its options and its password.

use std::sync::Arc;

use iam::{Registry, SecretText};
use iam_remote::ldap::{KeyAttributes, Ldap, LdapServer, LdapSettings, check};
use iam_remote::{ClientCertificate, Trust};
use s3_types::Timestamp;
use zeroize::Zeroizing;

use crate::config::ServeOptions;
use crate::master_key;
use crate::secret_text::{of_command, of_file};

/// The environment variable that may have the password itself.
pub const VARIABLE: &str = "SLIPWAY_LDAP_BIND_PASSWORD";
/// The name of the password in messages about its sources.
const WHAT: &str = "the password of --ldap-bind-dn";

/// The settings of the directory that the options name, checked as far as that is possible without
/// a request to it. [`Found::open`] makes the directory.
#[derive(Debug)]
pub struct Found {
    settings: LdapSettings,
    password: Option<SecretText>,
}

impl Found {
    /// Makes the directory, and sets it in the registry, which asks it about sessions. Its settings
    /// are tried meanwhile: a directory that is away for a moment keeps no server from starting.
    pub fn open(self, registry: &Registry) -> Result<Arc<Ldap>, String> {
        let ldap = Arc::new(Ldap::new(self.settings, self.password)?);
        registry.set_directory(ldap.clone());
        tokio::spawn(try_settings(ldap.clone()));
        Ok(ldap)
    }

    /// Returns the password, which a reload applies.
    pub fn into_password(self) -> Option<SecretText> {
        self.password
    }
}

/// Tries the settings, and logs the reason if nobody can log in with them.
async fn try_settings(ldap: Arc<Ldap>) {
    match ldap.try_settings().await {
        Ok(()) => tracing::debug!("the LDAP directory answers, and shows its entries to this server"),
        Err(why) => tracing::warn!(
            why,
            "--ldap-server: the LDAP directory was tried at the start, and nobody can log in by it as long as this is so"
        ),
    }
}

/// Refuses options with which no login could succeed, or that have no effect.
fn check_use(options: &ServeOptions, env: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    let ldap = &options.ldap;
    if ldap.ldap_in_clear && ldap.ldap_server.iter().all(LdapServer::is_tls) {
        return Err(
            "--ldap-in-clear has no effect on servers of ldaps://, which always use TLS: leave it out, or \
                    name a server of ldap:// by --ldap-server"
                .to_owned(),
        );
    }
    let has_master_key = options.master_key_file.is_some()
        || options.master_key_command.is_some()
        || env(master_key::VARIABLE).is_some_and(|text| !text.is_empty());
    if has_master_key {
        return Ok(());
    }
    let advice = "make one by slipway master-key new FILE, and give it by --master-key-file";
    if ldap.ldap_access_key_attribute.is_none() {
        return Err(format!(
            "--ldap-server needs a master key, with which the sessions of logins are encrypted: {advice}"
        ));
    }
    tracing::warn!(
        "--ldap-server: nobody can log in with a password, since no master key is given (requests signed with access \
         keys in LDAP entries are accepted): {advice}"
    );
    Ok(())
}

/// Checks the options about the directory, and reads the files that they name. Returns `None` if no
/// directory is named.
pub fn find(options: &ServeOptions, env: impl Fn(&str) -> Option<String>) -> Result<Option<Found>, String> {
    if options.ldap.ldap_server.is_empty() {
        return Ok(None);
    }
    let settings = settings(options)?;
    check(&settings).map_err(|why| {
        format!("--ldap-server: {why}: give files with certificates (PEM) by --ldap-ca, --ldap-client-cert and --ldap-client-key")
    })?;
    let password = password(options, &env)?;
    match (&settings.bind_dn, &password) {
        (Some(_), None) => Err(format!(
            "--ldap-bind-dn needs its password: give --ldap-bind-password-file, --ldap-bind-password-command or \
             {VARIABLE}"
        )),
        (None, Some(_)) => Err(format!("{WHAT} has no effect without --ldap-bind-dn: give that as well")),
        _ => {
            check_use(options, &env)?;
            Ok(Some(Found { settings, password }))
        }
    }
}

fn settings(options: &ServeOptions) -> Result<LdapSettings, String> {
    let ldap = &options.ldap;
    let base = ldap.ldap_base.as_deref().filter(|base| !base.is_empty());
    let base = base.ok_or("--ldap-server needs --ldap-base: name the entry below which people are")?;
    let certificate = match (&ldap.ldap_client_cert, &ldap.ldap_client_key) {
        (Some(chain), Some(key)) => Some(ClientCertificate { chain: chain.clone(), key: key.clone() }),
        (None, None) => None,
        _ => {
            return Err(
                "--ldap-client-cert and --ldap-client-key belong together: give both, or none".to_owned()
            );
        }
    };
    // An empty one would be a bind as nobody.
    if ldap.ldap_bind_dn.as_deref() == Some("") {
        return Err("--ldap-bind-dn is empty: name an entry, or leave it out".to_owned());
    }
    let keys = key_attributes(options)?;
    Ok(LdapSettings {
        servers: ldap.ldap_server.clone(),
        in_clear: ldap.ldap_in_clear,
        trust: Trust { ca: ldap.ldap_ca.clone(), insecure: false },
        certificate,
        bind_dn: ldap.ldap_bind_dn.as_deref().map(Into::into),
        base: base.into(),
        user_filter: ldap.ldap_user_filter.clone(),
        name_attribute: ldap.ldap_name_attribute.as_str().into(),
        keys,
        group_base: ldap.ldap_group_base.as_deref().unwrap_or(base).into(),
        group_filter: ldap.ldap_group_filter.clone(),
        attempts: ldap.ldap_attempts,
        now: || Timestamp::now().as_second(),
    })
}

/// Checks the attributes with access keys.
fn key_attributes(options: &ServeOptions) -> Result<Option<KeyAttributes>, String> {
    let ldap = &options.ldap;
    let (access_key, secret_key) = match (&ldap.ldap_access_key_attribute, &ldap.ldap_secret_key_attribute) {
        (Some(access_key), Some(secret_key)) => (access_key, secret_key),
        (None, None) => return Ok(None),
        _ => {
            return Err(
                "--ldap-access-key-attribute and --ldap-secret-key-attribute belong together: give both, or none"
                    .to_owned(),
            );
        }
    };
    if access_key.eq_ignore_ascii_case(secret_key) {
        return Err("--ldap-access-key-attribute and --ldap-secret-key-attribute are the same".to_owned());
    }
    // What directories keep there is a digest, mostly, by which no signature can be checked.
    if secret_key.eq_ignore_ascii_case("userPassword") {
        return Err(
            "--ldap-secret-key-attribute cannot be userPassword: passwords are no secret keys".to_owned()
        );
    }
    if ldap.ldap_bind_dn.is_none() && ldap.ldap_client_cert.is_none() {
        return Err(
            "--ldap-secret-key-attribute needs --ldap-bind-dn or --ldap-client-cert: secrets that anybody may read \
             are none"
                .to_owned(),
        );
    }
    Ok(Some(KeyAttributes { access_key: access_key.as_str().into(), secret_key: secret_key.as_str().into() }))
}

/// Reads the password: from the file, from the output of the command, or from the environment.
fn password(
    options: &ServeOptions,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<SecretText>, String> {
    let ldap = &options.ldap;
    let (text, whence) = match (&ldap.ldap_bind_password_file, &ldap.ldap_bind_password_command) {
        (Some(_), Some(_)) => {
            return Err(
                "--ldap-bind-password-file and --ldap-bind-password-command contradict each other: leave out one of \
                 the two"
                    .to_owned(),
            );
        }
        (Some(file), None) => {
            let whence = format!("--ldap-bind-password-file {}", file.display());
            (of_file(file, WHAT).map_err(|why| format!("{whence}: {why}"))?, whence)
        }
        (None, Some(command)) => {
            let whence = format!("--ldap-bind-password-command {command}");
            (of_command(command, WHAT).map_err(|why| format!("{whence}: {why}"))?, whence)
        }
        (None, None) => match env(VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => (Zeroizing::new(text), VARIABLE.to_owned()),
            None => return Ok(None),
        },
    };
    // A line, as an editor or echo writes it.
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains('\n') {
        return Err(format!("{whence}: it has to have one line, {WHAT}"));
    }
    Ok(Some(SecretText::new(Zeroizing::new(line.to_owned()))))
}
