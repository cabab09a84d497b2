//! The place of a store of identities: the value of `--identities`.

use std::fmt;

use http::Uri;

/// A store outside the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// Secrets of Vault or OpenBao.
    Vault(VaultPlace),
    /// Objects of a bucket.
    Bucket(BucketPlace),
}

/// A folder of a KV engine of version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultPlace {
    /// The URL of the server, without a path.
    pub server: String,
    /// The path at which the engine is mounted.
    pub mount: String,
    /// The folder in the engine.
    pub path: String,
    /// The namespace, if it is not the root one.
    pub namespace: Option<String>,
}

/// A folder of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketPlace {
    /// The URL of the server, without a path.
    pub server: String,
    /// The bucket.
    pub bucket: String,
    /// The prefix of the keys: empty, or with a slash at the end.
    pub prefix: String,
    /// The region that requests are signed for.
    pub region: String,
}

/// The forms of a place, for error messages.
const FORMS: &str = "vault:https://HOST[:PORT]/MOUNT/PATH[?namespace=NAME] or \
                     s3:https://HOST[:PORT]/BUCKET[/PREFIX][?region=NAME]";
/// The region that requests are signed for if none is given.
const REGION: &str = "us-east-1";

impl StorePlace {
    /// Reads the place. A URL must have https, or http for an address of this machine: over plain
    /// http, an eavesdropper could read tokens, and a forged answer could make anybody an
    /// administrator.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, url) = text.split_once(':').ok_or_else(|| format!("expected {FORMS}"))?;
        match kind {
            "vault" => VaultPlace::parse(url).map(Self::Vault),
            "s3" => BucketPlace::parse(url).map(Self::Bucket),
            _ => Err(format!("{kind:?} is not a kind of store: known are vault and s3; expected {FORMS}")),
        }
    }
}

impl VaultPlace {
    fn parse(url: &str) -> Result<Self, String> {
        let (server, path, query) = parts(url)?;
        let (mount, path) = halves(&path);
        if path.is_empty() {
            return Err(format!("the URL names no path in a KV engine: expected {FORMS}"));
        }
        let namespace = one_parameter(query.as_deref(), "namespace")?;
        Ok(Self { server, mount, path, namespace })
    }
}

impl BucketPlace {
    fn parse(url: &str) -> Result<Self, String> {
        let (server, path, query) = parts(url)?;
        let (bucket, path) = halves(&path);
        if bucket.is_empty() {
            return Err(format!("the URL names no bucket: expected {FORMS}"));
        }
        let region = one_parameter(query.as_deref(), "region")?.unwrap_or_else(|| REGION.to_owned());
        let prefix = if path.is_empty() { path } else { format!("{path}/") };
        Ok(Self { server, bucket, prefix, region })
    }
}

/// Splits a path into its first name and the rest.
fn halves(path: &str) -> (String, String) {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    (first.to_owned(), rest.to_owned())
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault(VaultPlace { server, mount, path, .. }) => write!(f, "vault:{server}/{mount}/{path}"),
            Self::Bucket(BucketPlace { server, bucket, prefix, .. }) => {
                write!(f, "s3:{server}/{bucket}/{}", prefix.trim_end_matches('/'))
            }
        }
    }
}

/// Splits a URL into the server, the path without slashes around it, and the query.
fn parts(url: &str) -> Result<(String, String, Option<String>), String> {
    let uri: Uri = url.parse().map_err(|_| format!("expected {FORMS}"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(format!("expected {FORMS}"));
    };
    if authority.as_str().contains('@') {
        return Err("a URL has no password: give it by --identities-credentials-file".to_owned());
    }
    let is_local = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
    if scheme != "https" && !(scheme == "http" && is_local) {
        return Err("the server has to be asked by https (http is for servers on this machine)".to_owned());
    }
    s3_client::port(authority, 443)?;
    let path = uri.path().trim_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if !path.chars().all(plain)
        || path.split('/').any(|part| matches!(part, "." | ".."))
        || path.contains("//")
    {
        return Err("the path may have letters, digits, hyphens, underscores and dots".to_owned());
    }
    Ok((format!("{scheme}://{authority}"), path.to_owned(), uri.query().map(ToOwned::to_owned)))
}

/// Returns the value of the parameter `name`. It is an error if the query has any other parameter.
fn one_parameter(query: Option<&str>, name: &str) -> Result<Option<String>, String> {
    let Some(query) = query else { return Ok(None) };
    let value = query.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match value {
        Some(value) if !value.is_empty() && value.chars().all(plain) => Ok(Some(value.to_owned())),
        _ => Err(format!("after the question mark there may be {name}=NAME and nothing else")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let vault = |server: &str, path: &str, namespace: Option<&str>| {
            StorePlace::Vault(VaultPlace {
                server: server.to_owned(),
                mount: "kv".to_owned(),
                path: path.to_owned(),
                namespace: namespace.map(ToOwned::to_owned),
            })
        };
        let bucket = |prefix: &str, region: &str| {
            StorePlace::Bucket(BucketPlace {
                server: "http://127.0.0.1:9000".to_owned(),
                bucket: "b".to_owned(),
                prefix: prefix.to_owned(),
                region: region.to_owned(),
            })
        };
        for (text, place) in [
            ("vault:https://bao.lab:8200/kv/slipway", vault("https://bao.lab:8200", "slipway", None)),
            ("vault:https://bao.lab/kv/a/b/?namespace=x/y", vault("https://bao.lab", "a/b", Some("x/y"))),
            ("vault:http://[::1]:8200/kv/a", vault("http://[::1]:8200", "a", None)),
            ("s3:http://127.0.0.1:9000/b", bucket("", "us-east-1")),
            ("s3:http://127.0.0.1:9000/b/x/y/?region=eu-lab-1", bucket("x/y/", "eu-lab-1")),
        ] {
            assert_eq!(StorePlace::parse(text), Ok(place), "{text}");
        }
    }

    #[test]
    fn what_is_no_place() {
        for (text, why) in [
            ("", "expected vault:https://"),
            ("/srv/iam", "expected vault:https://"),
            (
                "ldap:https://a/b/c",
                "\"ldap\" is not a kind of store: known are vault and s3; expected vault:https://",
            ),
            ("VAULT:https://a/b/c", "\"VAULT\" is not a kind of store"),
            ("https://a/b/c", "\"https\" is not a kind of store"),
            (":https://a/b/c", "\"\" is not a kind of store"),
            ("vault:a/b/c", "expected vault:https://"),
            ("vault:https://a/kv", "no path in a KV engine"),
            ("vault:http://bao.lab/kv/a", "by https"),
            ("vault:ftp://bao.lab/kv/a", "by https"),
            ("s3:http://localhost.lab/b", "by https"),
            ("s3:https://a", "no bucket"),
            ("s3:https://a:0/b", "from 1 to 65535"),
            ("s3:https://u:p@a/b", "no password"),
            ("s3:https://a/b/../c", "letters, digits"),
            ("s3:https://a/b/%41", "letters, digits"),
            ("s3:https://a/b?secret=c", "region=NAME and nothing else"),
            ("s3:https://a/b?region=", "region=NAME and nothing else"),
            ("vault:https://a/kv/b?namespace=x&region=y", "namespace=NAME and nothing else"),
        ] {
            let error = StorePlace::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
