//! Where root's keys come from.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use iam::{AccessKeyId, Credential, SecretKey};
use s3_types::UnixAccount;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::state_dir::{self, Access};
use crate::text::{line_of, unreadable};

/// Where keys that we made are kept, in the state directory.
const FILE: &str = "credentials.toml";

/// Variables that may hold root's keys: ours, and those that users of other servers have set
/// already. Access key, and the names its secret may have.
const ENVIRONMENT: [(&str, &[&str]); 3] = [
    ("SLIPWAY_ROOT_ACCESS_KEY", &["SLIPWAY_ROOT_SECRET_KEY"]),
    ("MINIO_ROOT_USER", &["MINIO_ROOT_PASSWORD"]),
    ("ROOT_ACCESS_KEY", &["ROOT_SECRET_KEY", "ROOT_ACCESS_SECRET", "ROOT_SECRET"]),
];

/// What MinIO called its variables before, and what it calls them.
const OLD_NAMES: [(&str, &str); 2] =
    [("MINIO_ACCESS_KEY", "MINIO_ROOT_USER"), ("MINIO_SECRET_KEY", "MINIO_ROOT_PASSWORD")];

/// Variables that say who root is to the file system.
const UID: &str = "SLIPWAY_ROOT_UID";
const GID: &str = "SLIPWAY_ROOT_GID";

/// The variables read here that are ours by name.
pub fn own_variables() -> impl Iterator<Item = &'static str> {
    let (access_key, secret_keys) = ENVIRONMENT[0];
    [access_key, UID, GID].into_iter().chain(secret_keys.iter().copied())
}

/// Root's keys and account, and how we came by the keys.
#[derive(Debug)]
pub struct Root {
    /// The keys.
    pub credential: Credential,
    /// Who root is to the file system, if somebody said so.
    pub unix_account: Option<UnixAccount>,
    /// Where the keys come from.
    pub origin: Origin,
}

/// Where root's keys come from.
#[derive(Debug)]
pub enum Origin {
    /// Given by the operator.
    Given(&'static str),
    /// Made by an earlier start.
    Kept(PathBuf),
    /// Made just now: to be shown once.
    New(PathBuf),
}

impl Root {
    /// True if the keys are the same.
    pub fn has_keys_of(&self, other: &Self) -> bool {
        let (one, other) = (&self.credential, &other.credential);
        one.access_key.as_str() == other.access_key.as_str()
            && one.secret_key.expose() == other.secret_key.expose()
    }

    /// Says so if files can't be given to root.
    pub fn warn_of_chown(&self, chown: bool) {
        if chown && self.unix_account.is_none() {
            tracing::warn!(
                "root has no uid and gid, so that with --chown its files belong to the server's user"
            );
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialFile {
    access_key: String,
    secret_key: Zeroizing<String>,
    uid: Option<u32>,
    gid: Option<u32>,
}

/// Finds root's keys: `file`, else the environment, else `state_dir/credentials.toml`, which is
/// made if need be. Without a `state_dir` (nothing is stored) the made keys are not kept. The uid
/// and gid are the file's, else the environment's.
pub fn find(
    file: Option<&Path>,
    env: impl Fn(&str) -> Option<String>,
    state_dir: Option<&Path>,
    access: Access,
) -> Result<Root, String> {
    let account = account_from_environment(&env)?;
    let root = find_keys(file, env, state_dir, access)?;
    Ok(Root { unix_account: root.unix_account.or(account), ..root })
}

/// Fails if what is given is no good, and makes nothing.
pub fn check(file: Option<&Path>, env: impl Fn(&str) -> Option<String>) -> Result<(), String> {
    account_from_environment(&env)?;
    if given(file, &env)?.is_none() {
        warn_of_old_names(env);
    }
    Ok(())
}

/// Says so if keys are there under names that are not read.
fn warn_of_old_names(env: impl Fn(&str) -> Option<String>) {
    let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    for (old, new) in OLD_NAMES {
        if is_set(old) {
            tracing::warn!("{old} is passed over: {new} is read, as MinIO does since 2021");
        }
    }
}

/// [`find`], of a server that has keys already: makes none.
pub fn find_again(
    file: Option<&Path>,
    env: impl Fn(&str) -> Option<String>,
    state_dir: Option<&Path>,
) -> Result<Root, String> {
    let given = file.is_some() || from_environment(&env)?.is_some();
    match state_dir {
        _ if given => find(file, env, state_dir, Access::Read),
        None => Err("the keys were made for this run alone".to_owned()),
        Some(state_dir) => match state_dir::open(state_dir, FILE) {
            Ok(Some(_)) => find(file, env, Some(state_dir), Access::Read),
            Ok(None) => Err(format!("{}: it is gone", state_dir.join(FILE).display())),
            Err(error) => Err(format!("{}: {error}", state_dir.join(FILE).display())),
        },
    }
}

fn find_keys(
    file: Option<&Path>,
    env: impl Fn(&str) -> Option<String>,
    state_dir: Option<&Path>,
    access: Access,
) -> Result<Root, String> {
    if let Some(root) = given(file, env)? {
        return Ok(root);
    }
    let Some(state_dir) = state_dir else {
        let origin = Origin::New(PathBuf::new());
        return Ok(Root { credential: generate()?, unix_account: None, origin });
    };
    // Keys are only as good as the directory they are kept in: who may write to it chooses them.
    if !state_dir::is_trusted(state_dir) {
        return Err(state_dir::distrust(state_dir));
    }
    let path = state_dir.join(FILE);
    match state_dir::open(state_dir, FILE) {
        Ok(Some(file)) => read(file, &path, Origin::Kept(path.clone())),
        Ok(None) => keep(generate()?, state_dir, access, path),
        Err(e) => Err(cannot_keep(&path, &e)),
    }
}

/// What the operator gives, if he gives keys.
fn given(file: Option<&Path>, env: impl Fn(&str) -> Option<String>) -> Result<Option<Root>, String> {
    if let Some(file) = file {
        // The operator's own: a secret of Kubernetes is a link.
        let opened = fs::File::open(file).map_err(|e| format!("{}: {}", file.display(), unreadable(&e)));
        let root = opened.and_then(|open| read(open, file, Origin::Given("from the credentials file")));
        return root.map(Some).map_err(|e| format!("--credentials-file {e}"));
    }
    let origin = Origin::Given("from the environment");
    Ok(from_environment(env)?.map(|credential| Root { credential, unix_account: None, origin }))
}

fn account_from_environment(env: impl Fn(&str) -> Option<String>) -> Result<Option<UnixAccount>, String> {
    let id = |name: &str| {
        let text = env(name).filter(|text| !text.is_empty());
        text.map(|text| {
            text.parse().map_err(|_| {
                format!("{name}: {text:?} is no number of an account: give the number, as `id` shows it")
            })
        })
        .transpose()
    };
    account(id(UID)?, id(GID)?).map_err(|e| format!("{UID} and {GID}: {e}"))
}

/// An account has both or nothing.
fn account(uid: Option<u32>, gid: Option<u32>) -> Result<Option<UnixAccount>, String> {
    match (uid, gid) {
        (None, None) => Ok(None),
        (Some(uid), Some(gid)) => match UnixAccount::new(uid, gid) {
            Some(account) => Ok(Some(account)),
            None => Err(format!("{} is no id: give a smaller one", u32::MAX)),
        },
        _ => Err("a uid needs a gid, and a gid a uid: give both".to_owned()),
    }
}

fn from_environment(env: impl Fn(&str) -> Option<String>) -> Result<Option<Credential>, String> {
    let env = |name| env(name).filter(|value| !value.is_empty());
    for (access, secrets) in ENVIRONMENT {
        let secret = secrets.iter().find_map(|name| Some((name, Zeroizing::new(env(name)?))));
        match (env(access), secret) {
            (None, None) => {}
            (Some(access_key), Some((secret, secret_key))) => {
                let access_key = AccessKeyId::new(&access_key).map_err(|e| format!("{access}: {e}"))?;
                let secret_key = SecretKey::new(&secret_key).map_err(|e| format!("{secret}: {e}"))?;
                return Ok(Some(Credential { access_key, secret_key }));
            }
            _ => return Err(format!("only one of {access} and {} is set: set both", secrets[0])),
        }
    }
    Ok(None)
}

fn checked(access_key: &str, secret_key: &str) -> Result<Credential, String> {
    let access_key = AccessKeyId::new(access_key).map_err(|e| e.to_string())?;
    let secret_key = SecretKey::new(secret_key).map_err(|e| e.to_string())?;
    Ok(Credential { access_key, secret_key })
}

fn read(file: fs::File, path: &Path, origin: Origin) -> Result<Root, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let metadata = file.metadata().map_err(|e| says(&e))?;
    let (mode, owner) = (metadata.permissions().mode(), metadata.uid());
    // Secrets of Kubernetes are root's, and a server without root reads them by its group.
    let others = if owner == 0 { 0o037 } else { 0o077 };
    if mode & others != 0 {
        return Err(says(&format_args!("others may read it (mode {:03o}); chmod 600 it", mode & 0o777)));
    }
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(says(&format_args!(
            "it belongs to user {owner}, neither to this one nor to root; chown it"
        )));
    }
    let mut text = Zeroizing::new(String::new());
    state_dir::read_text(file, &mut text).map_err(|e| says(&unreadable(&e)))?;
    let file: CredentialFile = toml::from_str(&text).map_err(|e| {
        // The parser's own message would quote the line, and with it the secret.
        let line = line_of(&text, e.span().map_or(0, |span| span.start));
        says(&format_args!(
            "line {line}: expected access_key = \"…\" and secret_key = \"…\", maybe uid = … and gid = …, and nothing else"
        ))
    })?;
    let credential = checked(&file.access_key, &file.secret_key).map_err(|e| says(&e))?;
    let unix_account = account(file.uid, file.gid).map_err(|e| says(&e))?;
    Ok(Root { credential, unix_account, origin })
}

fn generate() -> Result<Credential, String> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut random = Zeroizing::new([0u8; 60]);
    aws_lc_rs::rand::fill(random.as_mut()).map_err(|_| "no random numbers to be had".to_owned())?;
    let text = |bytes: &[u8]| -> Zeroizing<String> {
        Zeroizing::new(bytes.iter().map(|b| char::from(LETTERS[usize::from(b & 31)])).collect())
    };
    checked(&text(&random[..20]), &text(&random[20..]))
}

fn keep(credential: Credential, state_dir: &Path, access: Access, path: PathBuf) -> Result<Root, String> {
    let text = Zeroizing::new(format!(
        "# Root's keys for this directory, made at the first start of slipway.\naccess_key = \"{}\"\nsecret_key = \"{}\"\n",
        credential.access_key,
        credential.secret_key.expose()
    ));
    match state_dir::create(state_dir, access, FILE, text.as_bytes(), 0o600) {
        Ok(true) => Ok(Root { credential, unix_account: None, origin: Origin::New(path) }),
        Ok(false) => match state_dir::open(state_dir, FILE) {
            Ok(Some(file)) => read(file, &path, Origin::Kept(path.clone())),
            Ok(None) => Err(format!("{}: gone again", path.display())),
            Err(e) => Err(cannot_keep(&path, &e)),
        },
        Err(e) => Err(cannot_keep(&path, &e)),
    }
}

fn cannot_keep(path: &Path, error: &std::io::Error) -> String {
    let (access_key, secrets) = ENVIRONMENT[0];
    format!(
        "{}: {error}; where keys cannot be kept, give root's by --credentials-file, or in {access_key} and {}",
        path.display(),
        secrets[0]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn made_once_and_kept_private() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join(".slipway");
        let first = find(None, none, Some(&state), Access::Keep).unwrap();
        let Root { credential: made, origin: Origin::New(path), .. } = &first else { panic!("{first:?}") };
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let second = find(None, none, Some(&state), Access::Keep).unwrap();
        let Root { credential: kept, origin: Origin::Kept(_), .. } = &second else { panic!("{second:?}") };
        assert_eq!(made.secret_key.expose(), kept.secret_key.expose());
        assert_eq!(fs::read_dir(&state).unwrap().count(), 1);
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find(None, none, Some(&state), Access::Keep).unwrap_err().contains("chmod 600"));
    }

    #[test]
    fn other_servers_variables_work_and_half_a_pair_is_an_error() {
        let env = |name: &str| match name {
            "MINIO_ROOT_USER" => Some("minio".to_owned()),
            "MINIO_ROOT_PASSWORD" => Some("minio-secret".to_owned()),
            _ => None,
        };
        assert_eq!(find(None, env, None, Access::Keep).unwrap().credential.access_key.as_str(), "minio");
        let half = |name: &str| (name == "SLIPWAY_ROOT_ACCESS_KEY").then(|| "somebody".to_owned());
        assert!(find(None, half, None, Access::Keep).unwrap_err().contains("SLIPWAY_ROOT_SECRET_KEY"));
    }

    #[test]
    fn an_account_has_a_uid_and_a_gid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        let keys = "access_key = \"somebody\"\nsecret_key = \"something-secret\"\n";
        let file = |more: &str| {
            fs::write(&path, format!("{keys}{more}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            find(Some(&path), |name| (name == UID || name == GID).then(|| "7".to_owned()), None, Access::Keep)
        };
        assert_eq!(file("uid = 1000\ngid = 100\n").unwrap().unix_account, UnixAccount::new(1000, 100));
        assert_eq!(file("").unwrap().unix_account, UnixAccount::new(7, 7));
        for bad in ["uid = 1000\n", "uid = 4294967295\ngid = 0\n", "uid = -1\ngid = 0\n"] {
            assert!(file(bad).unwrap_err().contains("c.toml"), "{bad}");
        }
        let half = |name: &str| (name == UID).then(|| "7".to_owned());
        assert!(find(None, half, None, Access::Keep).unwrap_err().contains(GID));
        let wrong = |name: &str| (name == UID).then(|| "root".to_owned());
        assert!(find(None, wrong, None, Access::Keep).unwrap_err().contains(UID));
    }

    #[test]
    fn a_broken_file_does_not_show_its_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, "secret_key = \"sesame-open-now\nx").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let error = find(Some(&path), none, None, Access::Keep).unwrap_err();
        assert!(!error.contains("sesame"), "{error}");
    }
}
