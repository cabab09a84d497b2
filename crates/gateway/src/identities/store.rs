//! Stores of identities outside the tree: their credentials, and a check whether they can be used.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use iam::{Documents, StoreError};
use iam_remote::{Bucket, Credentials, SecretsOf, StorePlace, Trust, Vault, VaultLogin};
use serde::Deserialize;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::only_read::OnlyRead;
use super::options::{StoreOptions, VARIABLE};
use crate::limits::IDENTITIES_TRIAL_TIME_MAX;
use crate::secret_text;
use crate::state_dir::Access;
use crate::text::{line_of, unreadable};

/// The name of the text with credentials, in errors.
const CONTENT: &str = "secrets of the store of identities";

/// The source of the text with credentials.
#[derive(Clone)]
enum Source {
    File(PathBuf),
    Command(String),
    Variable(Zeroizing<String>),
}

impl Source {
    fn of(options: &StoreOptions, env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        match (&options.identities_credentials_file, &options.identities_credentials_command) {
            (Some(_), Some(_)) => {
                Err("--identities-credentials-file and --identities-credentials-command contradict \
                                       each other: leave out one of the two"
                    .to_owned())
            }
            (Some(file), None) => Ok(Self::File(file.clone())),
            (None, Some(command)) => Ok(Self::Command(command.clone())),
            (None, None) => match env(VARIABLE).filter(|text| !text.is_empty()) {
                Some(text) => Ok(Self::Variable(Zeroizing::new(text))),
                None => Err(format!(
                    "--identities: what the store is asked with is missing: give it by --identities-credentials-file, \
                     {VARIABLE} or --identities-credentials-command"
                )),
            },
        }
    }

    fn whence(&self) -> String {
        match self {
            Self::File(path) => format!("--identities-credentials-file {}", path.display()),
            Self::Command(command) => format!("--identities-credentials-command {command}"),
            Self::Variable(_) => VARIABLE.to_owned(),
        }
    }

    /// Reads the text, and parses it with `take`.
    fn read<T>(&self, take: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        let text = match self {
            Self::File(path) => secret_text::of_file(path, CONTENT),
            Self::Command(command) => secret_text::of_command(command, CONTENT),
            Self::Variable(text) => Ok(text.clone()),
        };
        text.and_then(|text| take(&text)).map_err(|why| format!("{}: {why}", self.whence()))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BucketText {
    access_key: String,
    secret_key: Zeroizing<String>,
    session_token: Option<Zeroizing<String>>,
}

fn bucket_keys(text: &str, region: &str) -> Result<Credentials, String> {
    let keys: BucketText = toml::from_str(text).map_err(|e| {
        // The parser's own message would quote the line, and with it the secret.
        let line = line_of(text, e.span().map_or(0, |span| span.start));
        format!(
            "line {line}: expected access_key = \"…\" and secret_key = \"…\", optionally session_token = \"…\", and \
             nothing else"
        )
    })?;
    Ok(Credentials {
        access_key: keys.access_key,
        secret_key: keys.secret_key,
        security_token: keys.session_token,
        region: region.to_owned(),
    })
}

/// The form of the credentials for Vault, for errors.
const VAULT_FORM: &str = "token = \"…\", token_file = \"…\", role_id = \"…\" (and secret_id = \"…\"), or \
                          kubernetes_role = \"…\" (and jwt_file = \"…\"), optionally auth_mount = \"…\"";
/// The file in which Kubernetes puts a service account's token.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct VaultText {
    token: Option<Zeroizing<String>>,
    token_file: Option<PathBuf>,
    role_id: Option<String>,
    secret_id: Option<Zeroizing<String>>,
    kubernetes_role: Option<String>,
    jwt_file: Option<PathBuf>,
    auth_mount: Option<String>,
}

fn vault_login(text: &str) -> Result<VaultLogin, String> {
    let login: VaultText = toml::from_str(text).map_err(|e| {
        // As above.
        let line = line_of(text, e.span().map_or(0, |span| span.start));
        format!("line {line}: expected {VAULT_FORM}, and nothing else")
    })?;
    let mount = |default: &str| login.auth_mount.clone().unwrap_or_else(|| default.to_owned());
    match login {
        VaultText { token: Some(ref token), token_file: None, .. } if login.is_token_alone() => {
            Ok(VaultLogin::Token(token.clone()))
        }
        VaultText { token: None, token_file: Some(ref path), .. } if login.is_token_alone() => {
            let text = secret_text::of_file(path, "a token");
            let text = text.map_err(|why| format!("token_file {}: {why}", path.display()))?;
            Ok(VaultLogin::Token(Zeroizing::new(text.trim().to_owned())))
        }
        VaultText {
            role_id: Some(ref role_id),
            ref secret_id,
            token: None,
            token_file: None,
            kubernetes_role: None,
            jwt_file: None,
            ..
        } => Ok(VaultLogin::AppRole {
            mount: mount("approle"),
            role_id: role_id.clone(),
            secret_id: secret_id.clone(),
        }),
        VaultText {
            kubernetes_role: Some(ref role),
            ref jwt_file,
            token: None,
            token_file: None,
            role_id: None,
            secret_id: None,
            ..
        } => {
            let path = jwt_file.clone().unwrap_or_else(|| PathBuf::from(SERVICE_ACCOUNT));
            let jwt = fs::read_to_string(&path).map(Zeroizing::new);
            let jwt = jwt.map_err(|e| format!("jwt_file {}: {}", path.display(), unreadable(&e)))?;
            let jwt = Zeroizing::new(jwt.trim().to_owned());
            Ok(VaultLogin::Kubernetes { mount: mount("kubernetes"), role: role.clone(), jwt })
        }
        _ => Err(format!("expected one of: {VAULT_FORM}")),
    }
}

impl VaultText {
    /// True if no setting belongs to another way to log in.
    fn is_token_alone(&self) -> bool {
        self.role_id.is_none()
            && self.secret_id.is_none()
            && self.kubernetes_role.is_none()
            && self.jwt_file.is_none()
            && self.auth_mount.is_none()
    }
}

/// A store that the options name, with its credentials. No request was sent to it yet.
#[derive(Debug)]
pub enum Store {
    /// A bucket.
    Bucket(Bucket),
    /// A KV engine of Vault.
    Vault(Vault),
}

impl Store {
    /// Makes the store that the options name; `None` if they name none. It reads the credentials
    /// and the file of trusted certificates.
    pub fn find(
        options: &StoreOptions,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        options.check()?;
        let Some(place) = &options.identities else { return Ok(None) };
        let source = Source::of(options, env)?;
        let trust = Trust { ca: options.identities_ca.clone(), insecure: false };
        let bad_trust = |why: String| format!("--identities-ca: {why}");
        match place.clone() {
            StorePlace::Bucket(place) => {
                let region = place.region.clone();
                let find = move || source.read(|text| bucket_keys(text, &region));
                find()?;
                let bucket = Bucket::new(place, &trust, SecretsOf::new(find)).map_err(bad_trust)?;
                Ok(Some(Self::Bucket(bucket)))
            }
            StorePlace::Vault(place) => {
                let find = move || source.read(vault_login);
                find()?;
                let vault = Vault::new(place, &trust, SecretsOf::new(find)).map_err(bad_trust)?;
                Ok(Some(Self::Vault(vault)))
            }
        }
    }

    /// Checks that the store can be used together with other gateways, and returns it.
    pub async fn open(self, access: Access) -> Result<Arc<dyn Documents>, StoreError> {
        let trial = timeout(IDENTITIES_TRIAL_TIME_MAX, self.tried(access)).await;
        let store = trial.unwrap_or_else(|_| {
            let seconds = IDENTITIES_TRIAL_TIME_MAX.as_secs();
            Err(StoreError::Unavailable(format!("it could not be tried within {seconds} s").into()))
        })?;
        Ok(match access {
            Access::Keep => store,
            Access::Read => Arc::new(OnlyRead(store)),
        })
    }

    async fn tried(self, access: Access) -> Result<Arc<dyn Documents>, StoreError> {
        match self {
            Self::Bucket(bucket) => {
                if matches!(access, Access::Keep) {
                    let mut number = [0; 8];
                    aws_lc_rs::rand::fill(&mut number)
                        .map_err(|_| StoreError::Unavailable("no random numbers are available".into()))?;
                    bucket.check_conditions(u64::from_be_bytes(number)).await?;
                }
                Ok(Arc::new(bucket))
            }
            Self::Vault(vault) => {
                vault.check().await?;
                Ok(Arc::new(vault))
            }
        }
    }
}

#[cfg(test)]
mod tests;
