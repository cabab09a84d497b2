//! Finds the server and the access key for requests, as the AWS CLI finds them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use s3_client::{Credentials, Trust};

use super::ini::{self, Settings};
use crate::credentials;

/// The region that requests to IAM are signed for, as by the AWS CLI; every gateway accepts it.
const REGION: &str = "us-east-1";
/// The settings with which a profile gets its keys from elsewhere; none of them is supported here.
const OTHER_SOURCES: [&str; 6] = [
    "role_arn",
    "sso_session",
    "sso_start_url",
    "credential_process",
    "credential_source",
    "web_identity_token_file",
];

/// The options that say which server is asked, and as whom.
#[derive(Debug, Clone, Args)]
pub struct ConnectionOptions {
    /// The URL of the gateway to manage, such as https://s3.lab.example [default: the variable
    /// AWS_ENDPOINT_URL_IAM, or else AWS_ENDPOINT_URL, or else endpoint_url of the profile]
    #[arg(long, value_name = "URL", global = true)]
    pub endpoint_url: Option<String>,

    /// The profile of the AWS CLI with the access key that signs the requests [default: the key in
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or else the profile that AWS_PROFILE names, or
    /// else the profile "default"]
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,

    /// Sign the requests with the access_key and secret_key in this TOML file, in place of the key
    /// of a profile. The option is meant for the gateway's root key. This is the key that the
    /// gateway was given at its start, in a file like this or in SLIPWAY_ROOT_ACCESS_KEY, or else
    /// the key that it generated at its first start: this one is in the served directory, in the
    /// file .slipway/credentials.toml. Some commands accept only the root key, and refuse all
    /// others, also those of administrators and of other accounts' root users
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "profile")]
    pub credentials_file: Option<PathBuf>,

    /// A PEM file with the certificate authorities to trust [default: the file that AWS_CA_BUNDLE
    /// names, or else ca_bundle of the profile, or else the system's authorities]
    #[arg(long, value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,

    /// Accept any certificate of the gateway, without checking it
    #[arg(long, global = true, conflicts_with = "ca")]
    pub insecure: bool,
}

/// The server, and the credentials for requests to it.
#[derive(Debug)]
pub struct Found {
    /// The URL of the server.
    pub url: String,
    /// The certificate authorities that are trusted.
    pub trust: Trust,
    /// The access key with its secret.
    pub credentials: Credentials,
    /// The source of the access key, for messages.
    pub source: String,
}

/// A function that returns an environment variable. One that is empty counts as missing.
type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// The configuration files of the AWS CLI.
struct Files {
    credentials: BTreeMap<String, Settings>,
    config: BTreeMap<String, Settings>,
}

impl Files {
    fn read(env: Env<'_>) -> Result<Self, String> {
        let of = |variable: &str, name: &str| {
            let own = env("HOME").map(|home| Path::new(&home).join(".aws").join(name));
            let path = env(variable).map(|path| home_relative(&path, env)).or(own);
            path.map_or_else(|| Ok(BTreeMap::new()), |path| read(&path))
        };
        Ok(Self {
            credentials: of("AWS_SHARED_CREDENTIALS_FILE", "credentials")?,
            config: of("AWS_CONFIG_FILE", "config")?,
        })
    }

    /// Returns the settings of a profile, from both files. Those in the credentials file take
    /// precedence.
    fn profile(&self, name: &str) -> Option<Settings> {
        let names = [format!("profile {name}"), format!("profile \"{name}\""), format!("profile '{name}'")];
        let mut found = names.iter().find_map(|name| self.config.get(name));
        if name == "default" {
            found = found.or_else(|| self.config.get("default"));
        }
        let keys = self.credentials.get(name);
        if found.is_none() && keys.is_none() {
            return None;
        }
        let mut settings = found.cloned().unwrap_or_default();
        settings.extend(keys.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        Some(settings)
    }
}

fn home_relative(path: &str, env: Env<'_>) -> PathBuf {
    match (path.strip_prefix("~/"), env("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Reads a configuration file of the AWS CLI; one that does not exist counts as empty.
fn read(path: &Path) -> Result<BTreeMap<String, Settings>, String> {
    let shown = path.display();
    match std::fs::read_to_string(path) {
        Ok(text) => ini::read(&text).map_err(|why| format!("{shown}: {why}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Finds the server and the access key. `env` returns environment variables.
pub fn find(options: &ConnectionOptions, env: Env<'_>) -> Result<Found, String> {
    let env: Env<'_> = &|name: &str| env(name).filter(|value| !value.is_empty());
    let files = Files::read(env)?;
    let asked = options.profile.clone().or_else(|| env("AWS_PROFILE")).or_else(|| env("AWS_DEFAULT_PROFILE"));
    let name = asked.clone().unwrap_or_else(|| "default".to_owned());
    let profile = files.profile(&name);
    if profile.is_none() && asked.is_some() {
        return Err(format!(
            "there is no profile {name} in the files of the AWS CLI (aws configure makes one)"
        ));
    }
    let profile = profile.unwrap_or_default();
    let (credentials, source) = keys(options, env, &name, &profile)?;
    let url = endpoint(options, env, &files, &profile)
        .ok_or("no server is named: give --endpoint-url, or endpoint_url in the profile")?;
    let ca = options.ca.clone().or_else(|| env("AWS_CA_BUNDLE").map(PathBuf::from));
    let ca = ca.or_else(|| profile.get("ca_bundle").map(|path| home_relative(path, env)));
    let trust = Trust { ca: ca.filter(|_| !options.insecure), insecure: options.insecure };
    Ok(Found { url, trust, credentials, source })
}

fn endpoint(options: &ConnectionOptions, env: Env<'_>, files: &Files, profile: &Settings) -> Option<String> {
    if options.endpoint_url.is_some() {
        return options.endpoint_url.clone();
    }
    let is_ignored = |value: &str| value.eq_ignore_ascii_case("true");
    if env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_some_and(|value| is_ignored(&value))
        || profile.get("ignore_configured_endpoint_urls").is_some_and(|value| is_ignored(value))
    {
        return None;
    }
    let of_service = || {
        let services = files.config.get(&format!("services {}", profile.get("services")?))?;
        services.get("iam.endpoint_url").cloned()
    };
    env("AWS_ENDPOINT_URL_IAM")
        .or_else(|| env("AWS_ENDPOINT_URL"))
        .or_else(of_service)
        .or_else(|| profile.get("endpoint_url").cloned())
}

/// Finds the access key. As in the AWS CLI, one in the environment takes precedence over
/// `AWS_PROFILE`, but not over a profile that is named on the command line.
fn keys(
    options: &ConnectionOptions,
    env: Env<'_>,
    name: &str,
    profile: &Settings,
) -> Result<(Credentials, String), String> {
    let signed_with = |access_key: String, secret_key: String, token: Option<String>| Credentials {
        access_key,
        secret_key: secret_key.into(),
        security_token: token.map(Into::into),
        region: REGION.to_owned(),
    };
    if let Some(file) = &options.credentials_file {
        let found = credentials::of_client(file)?;
        let (id, secret) = (found.access_key.as_str().to_owned(), found.secret_key.expose().to_owned());
        return Ok((signed_with(id, secret, None), file.display().to_string()));
    }
    if let Some(id) = env("AWS_ACCESS_KEY_ID").filter(|_| options.profile.is_none()) {
        let secret = env("AWS_SECRET_ACCESS_KEY");
        let secret = secret.ok_or("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not")?;
        let token = env("AWS_SESSION_TOKEN");
        let source = token.as_ref().map_or("the environment", |_| "the environment, with AWS_SESSION_TOKEN");
        return Ok((signed_with(id, secret, token), source.to_owned()));
    }
    if let Some(other) = OTHER_SOURCES.iter().find(|other| profile.contains_key(**other)) {
        return Err(format!(
            "the profile {name} gets its keys by {other}, which only the AWS CLI does: \
             eval \"$(aws configure export-credentials --profile {name} --format env)\" sets them"
        ));
    }
    let own = |setting: &str| profile.get(setting).filter(|value| !value.is_empty()).cloned();
    match (own("aws_access_key_id"), own("aws_secret_access_key")) {
        (Some(id), Some(secret)) => {
            Ok((signed_with(id, secret, own("aws_session_token")), format!("the profile {name}")))
        }
        (None, None) => Err(format!(
            "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or make the profile {name} (aws configure), or \
             give --credentials-file"
        )),
        _ => Err(format!("the profile {name} has only one of aws_access_key_id and aws_secret_access_key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "[default]\naws_access_key_id = D\naws_secret_access_key = ds\n[ann]\n\
        aws_access_key_id = A\naws_secret_access_key = as\naws_session_token = at\n[half]\naws_access_key_id = H\n";
    const CONFIG: &str = "[default]\nendpoint_url = http://default:1\n[profile ann]\nservices = local\n\
        ca_bundle = ~/ca.pem\n[profile role]\nrole_arn = r\nsource_profile = ann\n[services local]\niam =\n  \
        endpoint_url = http://iam:1\n";

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            std::fs::create_dir(home.path().join(".aws")).unwrap();
            std::fs::write(home.path().join(".aws/credentials"), CREDENTIALS).unwrap();
            std::fs::write(home.path().join(".aws/config"), CONFIG).unwrap();
            Self(home)
        }

        fn find(&self, options: &ConnectionOptions, variables: &[(&str, &str)]) -> Result<Found, String> {
            let home = self.0.path().display().to_string();
            find(options, &|name| match name {
                "HOME" => Some(home.clone()),
                _ => variables.iter().find(|(there, _)| *there == name).map(|(_, value)| (*value).to_owned()),
            })
        }
    }

    fn options(profile: Option<&str>, url: Option<&str>) -> ConnectionOptions {
        ConnectionOptions {
            endpoint_url: url.map(str::to_owned),
            profile: profile.map(str::to_owned),
            credentials_file: None,
            ca: None,
            insecure: false,
        }
    }

    #[test]
    fn what_wins() {
        let home = Home::new();
        let keys = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "es")];
        let of_profile = [keys[0], keys[1], ("AWS_PROFILE", "ann")];
        let of_urls = [("AWS_ENDPOINT_URL", "http://all:1"), ("AWS_ENDPOINT_URL_IAM", "http://one:1")];
        for (profile, url, variables, key, server) in [
            (None, None, &[][..], "D", "http://default:1"),
            (None, None, &[("AWS_PROFILE", "ann")][..], "A", "http://iam:1"),
            (None, Some("http://said:1"), &of_profile[..], "E", "http://said:1"),
            (None, None, &of_profile[..], "E", "http://iam:1"),
            (Some("ann"), None, &keys[..], "A", "http://iam:1"),
            (Some("ann"), None, &of_urls[..], "A", "http://one:1"),
            (Some("ann"), None, &of_urls[..1], "A", "http://all:1"),
        ] {
            let found = home.find(&options(profile, url), variables).unwrap();
            assert_eq!(
                (&*found.credentials.access_key, &*found.url),
                (key, server),
                "{profile:?} {variables:?}"
            );
        }
        let ann = home.find(&options(Some("ann"), None), &[]).unwrap();
        assert_eq!(ann.credentials.security_token.as_ref().map(|token| token.as_str()), Some("at"));
        assert_eq!(ann.trust.ca, Some(home.0.path().join("ca.pem")));
    }

    #[test]
    fn what_is_missing_is_said() {
        let home = Home::new();
        let ignored = [("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")];
        for (profile, variables, why) in [
            (Some("nobody"), &[][..], "there is no profile nobody"),
            (Some("half"), &[][..], "the profile half has only one of"),
            (Some("role"), &[][..], "the profile role gets its keys by role_arn"),
            (None, &[("AWS_ACCESS_KEY_ID", "E")][..], "AWS_ACCESS_KEY_ID is set, and"),
            (None, &ignored[..], "no server is named"),
        ] {
            let error = home.find(&options(profile, None), variables).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        let nothing = find(&options(None, None), &|_| None).unwrap_err();
        assert!(nothing.starts_with("no keys: set AWS_ACCESS_KEY_ID"), "{nothing}");
    }
}
