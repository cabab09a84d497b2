//! Applies new options, certificates and keys while requests go on (decision 0020).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use iam::{Account, MasterKeys};
use tokio::runtime::Handle;

use crate::access_log::AccessLog;
use crate::cli::{Cli, Said, Values, sentence};
use crate::clients::Clients;
use crate::config::ServeOptions;
use crate::credentials::{self, Origin, Root};
use crate::gateway::{Gateway, Settings};
use crate::identities::Store;
use crate::ldap;
use crate::line_log::Destination;
use crate::log::{LogFilter, read_filter};
use crate::master_key;
use crate::openid;
use crate::server::Certificates;
use crate::traces::Collector;

/// The options that a reload applies, by their fields in [`ServeOptions`]; those of TLS only if TLS
/// is on.
const TAKEN: [&str; 12] = [
    "access_log",
    "audit_log",
    "config",
    "credentials_file",
    "domain",
    "ldap_bind_password_command",
    "ldap_bind_password_file",
    "log",
    "master_key_command",
    "master_key_file",
    "tls_cert",
    "tls_key",
];

/// The state of a server that a reload compares with and changes.
pub struct Reload {
    /// The options' values: those that the last reload applied, or for options that a reload does
    /// not apply, those at the start.
    said: Said,
    root: Root,
    /// True with `--chown`, which a reload does not change.
    chown: bool,
    parts: Parts,
    /// The runtime for requests to the store of identities.
    runtime: Handle,
}

/// The parts of a server that a reload changes or needs.
pub struct Parts {
    /// The gateway whose settings change.
    pub gateway: Arc<Gateway>,
    /// The account that owns everything, which a reload does not change.
    pub account: Arc<Account>,
    /// The directory in which root's keys may be kept.
    pub state_dir: Option<PathBuf>,
    /// The certificates, if there is TLS.
    pub certificates: Option<Arc<Certificates>>,
    /// The access log, if there is one.
    pub access_log: Option<Arc<AccessLog>>,
    /// The log's filter; `None` if another server in this process owns the log.
    pub log_filter: Option<LogFilter>,
}

/// The result of a reload.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The options that have changed, and were applied.
    pub taken: Vec<String>,
    /// The options that have changed, but have no effect until a restart.
    pub needs_restart: Vec<String>,
}

impl Reload {
    /// Makes the reload of a server that was started in `runtime`, with `said` and these root keys.
    pub fn new(said: Said, root: Root, chown: bool, parts: Parts, runtime: Handle) -> Self {
        Self { said, root, chown, parts, runtime }
    }

    /// Reads everything again and applies it. If anything is wrong, nothing changes.
    pub fn run(&mut self) -> Result<Outcome, String> {
        self.try_to().map_err(|error| Cli::located(&self.said.arguments, error))
    }

    /// Checks the options that only a restart applies, so that a restart with them would not fail.
    fn check_for_restart(options: &ServeOptions) -> Result<(), String> {
        let env = |name: &str| std::env::var(name).ok();
        if let Some(traces) = &options.traces {
            Collector::new(traces, env)?;
        }
        openid::check(options)?;
        Store::find(&options.store, env).map(drop)
    }

    fn try_to(&mut self) -> Result<Outcome, String> {
        let (options, values) = Cli::read_serve(&self.said.arguments).map_err(|error| sentence(&error))?;
        // First all that can fail, with what keeps a server from starting.
        options.check()?;
        Clients::new(options.client_address, &options.trusted_proxy)?;
        let filter = read_filter(&options.log)?;
        let root = self.keys(&options)?;
        let certificates = match &self.parts.certificates {
            Some(certificates) => Some(certificates.prepare(&options.tls_cert, &options.tls_key)?),
            // A restart would fail with what is wrong, and turn TLS on with what is not.
            None => Certificates::read(&options.tls_cert, &options.tls_key).map(|_| None)?,
        };
        let access_log =
            reopened("--access-log", self.parts.access_log.as_ref(), options.access_log.as_ref())?;
        let audit = self.parts.gateway.audit.as_ref();
        let audit_log = reopened("--audit-log", audit, options.audit_log.as_ref())?;
        Self::check_for_restart(&options)?;
        let directory = ldap::find(&options, |name| std::env::var(name).ok())?;
        let master_keys = master_key::find(&(&options).into(), |name| std::env::var(name).ok())?;
        let new_master_keys = self.set_master_keys(master_keys)?;
        self.set_password(directory);
        let mut outcome = self.compare(&values);
        if new_master_keys {
            outcome.taken.push("master keys".to_owned());
        }
        let is_on = self.parts.access_log.is_some();
        Self::note_switch(&mut outcome, "--access-log", is_on, options.access_log.is_some());
        let is_on = self.parts.gateway.audit.is_some();
        Self::note_switch(&mut outcome, "--audit-log", is_on, options.audit_log.is_some());
        if let Some((access_log, file)) = access_log {
            // The same one as well: its file was renamed to begin a new one, mostly.
            access_log.replace(file);
        }
        if let Some((audit_log, file)) = audit_log {
            audit_log.replace(file);
        }
        if let (Some(current), Some((certificates, changed))) = (&self.parts.certificates, certificates) {
            current.replace(certificates);
            if changed {
                outcome.taken.push("certificates".to_owned());
            }
        }
        if let Some(log_filter) = &self.parts.log_filter {
            // The log is gone only when the process is.
            let _ = log_filter.reload(filter);
        }
        if !root.has_keys_of(&self.root) {
            outcome.taken.push("root's keys".to_owned());
        }
        if root.unix_account != self.root.unix_account {
            outcome.taken.push("root's uid and gid".to_owned());
        }
        root.warn_of_chown(self.chown);
        let account = self.parts.account.clone();
        let registry = &self.parts.gateway.registry;
        registry.set_root(&root.identity(&account));
        let identities = registry.clone();
        self.parts.gateway.settings.store(Arc::new(Settings {
            identities,
            account,
            domains: options.domain,
        }));
        self.root = root;
        self.take_values(&values);
        Ok(outcome)
    }

    /// Stores the values of the options that a reload applies.
    fn take_values(&mut self, values: &Values) {
        for name in TAKEN {
            if !self.is_taken(name) {
                continue;
            }
            match values.get(name) {
                Some(value) => drop(self.said.values.insert(name.to_owned(), value.clone())),
                None => drop(self.said.values.remove(name)),
            }
        }
    }

    /// Sets the master keys. Returns true if they differ from the ones before.
    fn set_master_keys(&self, keys: Option<MasterKeys>) -> Result<bool, String> {
        let registry = &self.parts.gateway.registry;
        if registry.has_master_keys(keys.as_ref()) {
            return Ok(false);
        }
        let taken = self.runtime.block_on(registry.set_master_keys(keys));
        taken.map(|()| true).map_err(|error| error.to_string())
    }

    /// Sets the password for the LDAP directory; its other options need a restart.
    fn set_password(&self, directory: Option<ldap::Found>) {
        if let (Some(present), Some(new)) = (&self.parts.gateway.ldap, directory) {
            present.set_password(new.into_password());
        }
    }

    /// True if a reload applies this option. A reload turns TLS neither on nor off.
    fn is_taken(&self, name: &str) -> bool {
        TAKEN.contains(&name) && (self.parts.certificates.is_some() || !name.starts_with("tls_"))
    }

    fn keys(&self, options: &ServeOptions) -> Result<Root, String> {
        let env = |name: &str| std::env::var(name).ok();
        let state_dir = self.parts.state_dir.as_deref();
        if state_dir.is_none() && options.credentials_file.is_none() {
            // Of `null:`, whose keys were made for this run.
            return Ok(Root {
                credential: self.root.credential.clone(),
                unix_account: self.root.unix_account,
                origin: Origin::Given(""),
            });
        }
        credentials::find_again(options.credentials_file.as_deref().map(Path::new), env, state_dir)
    }

    /// Notes that a log was turned on or off, which needs a restart.
    fn note_switch(outcome: &mut Outcome, flag: &str, is_on: bool, is_wanted: bool) {
        if is_on != is_wanted {
            outcome.taken.retain(|taken| taken != flag);
            outcome.needs_restart.push(format!("{flag} (turning it on or off)"));
        }
    }

    fn compare(&self, values: &Values) -> Outcome {
        let mut outcome = Outcome::default();
        let names =
            self.said.values.keys().chain(values.keys().filter(|name| !self.said.values.contains_key(*name)));
        for name in names.filter(|name| self.said.values.get(*name) != values.get(*name)) {
            let flag = if name == "dir" { "DIR".to_owned() } else { format!("--{}", name.replace('_', "-")) };
            let list = if self.is_taken(name) { &mut outcome.taken } else { &mut outcome.needs_restart };
            list.push(flag);
        }
        outcome
    }
}

/// Opens the file of a log again. If the log is off, only checks whether the file could be opened.
fn reopened<'l, L>(
    flag: &str,
    log: Option<&'l L>,
    to: Option<&Destination>,
) -> Result<Option<(&'l L, File)>, String> {
    match (log, to) {
        (Some(log), Some(to)) => Ok(Some((log, to.open(flag)?))),
        (None, Some(to)) => to.check(flag).map(|()| None),
        (_, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn what_is_taken_are_options() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        for name in TAKEN {
            assert!(serve.get_arguments().any(|option| option.get_id() == name), "{name}");
        }
    }
}
