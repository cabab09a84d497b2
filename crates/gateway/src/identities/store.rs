//! Stores of identities beside the tree: what they are asked with, and whether they can be used.

use std::path::PathBuf;
use std::sync::Arc;

use iam::{Documents, StoreError};
use iam_remote::{Bucket, Credentials, SecretsOf, StorePlace, Trust};
use serde::Deserialize;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::only_read::OnlyRead;
use super::options::{StoreOptions, VARIABLE};
use crate::limits::IDENTITIES_TRIAL_TIME_MAX;
use crate::secret_text;
use crate::state_dir::Access;
use crate::text::line_of;

/// What the text is, in errors.
const CONTENT: &str = "secrets of the store of identities";

/// Where the text with secrets is.
#[derive(Clone)]
enum Source {
    File(PathBuf),
    Command(String),
    Variable(Zeroizing<String>),
}

impl Source {
    fn of(options: &StoreOptions, env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        match (&options.identities_credentials_file, &options.identities_credentials_command) {
            (Some(_), Some(_)) => Err("--identities-credentials-file and --identities-credentials-command contradict \
                                       each other: leave out one of the two"
                .to_owned()),
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

    /// Finds the text, and takes it apart.
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

/// A store that was named, whose secrets were found. It was not asked anything yet.
#[derive(Debug)]
pub enum Store {
    /// A bucket.
    Bucket(Bucket),
}

impl Store {
    /// Finds the store that the options name, if they name one: reads what it is asked with, and
    /// the certificates by which it is trusted.
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
            StorePlace::Vault(_) => Err("--identities: Vault is not there yet".to_owned()),
        }
    }

    /// Tries whether the store can be used as one of several gateways has to.
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
        }
    }
}

#[cfg(test)]
mod tests;
