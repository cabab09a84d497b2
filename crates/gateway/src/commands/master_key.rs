//! `slipway master-key`: makes the keys that secrets of users are encrypted with, and replaces one
//! by another.

use std::error::Error as _;
use std::fs;
use std::io::{ErrorKind, Result, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use backend_posix::tools::served_by;
use clap::{Args, Subcommand};
use iam::model::{IamCode, IamError, KeyOwner};
use iam::{Documents, KeyId, LostKey, MasterKeys, Principal, ROOT_NAME, Registry, RootIdentity, Rotation};
use s3_types::Timestamp;
use zeroize::Zeroizing;

use super::{Console, FOUND, OK, shown};
use crate::identities::{self, Store, StoreOptions, SystemClock};
use crate::master_key::{self, Given};
use crate::state_dir::{Access, STATE_DIR};
use crate::{account, agreement, credentials, storage};

/// The commands for master keys.
#[derive(Debug, Clone, Subcommand)]
pub enum MasterKeyCommand {
    /// Make a file with a new master key, for `slipway serve`. Exit status: 0 made; 2 not made
    New(NewOptions),
    /// Encrypt the secrets of all users' access keys in DIR again, with the key on the first line
    /// of the master key file. The old keys must follow on further lines, since they decrypt the
    /// secrets. Before this, put the new key on the first line of every gateway's master key file,
    /// and reload the gateways (SIGHUP); they need not be stopped. Without --yes, the command only
    /// says what to check. With --yes, it still refuses if gateways serve DIR and none of them has
    /// loaded a file with the new key on the first line. Whether all of them have is not checked.
    /// Exit status: 0 all secrets are encrypted with the first key; 1 nothing was changed; 2 an
    /// error, after which some secrets may be encrypted with the first key and others not
    Rotate(RotateOptions),
    /// Deactivate the access keys in DIR whose secrets none of the given master keys can decrypt,
    /// and delete these secrets. Then gateways can start without the master keys that are lost.
    /// Give the master keys that are left; if all are lost, give a new one (`slipway master-key
    /// new`). Without --yes, the command only lists these access keys. Before you give --yes, stop
    /// all gateways of DIR. Exit status: 0 done, or there are no such access keys; 1 only listed;
    /// 2 some access keys may be unchanged
    Forget(ForgetOptions),
}

/// Options of `slipway master-key forget`.
#[derive(Debug, Clone, Args)]
pub struct ForgetOptions {
    /// The tree, and the master keys that are left.
    #[command(flatten)]
    pub tree: TreeOptions,

    /// Deactivate the access keys, and delete their secrets. This cannot be undone. Without this
    /// option, the command only lists them
    #[arg(long)]
    pub yes: bool,
}

/// Options of `slipway master-key rotate`.
#[derive(Debug, Clone, Args)]
pub struct RotateOptions {
    /// The tree, and the master keys.
    #[command(flatten)]
    pub tree: TreeOptions,

    /// Encrypt the secrets: every gateway of DIR has the first of the given master keys. A gateway
    /// without that key refuses the requests of all users afterwards (503), until it has the key
    #[arg(long)]
    pub yes: bool,
}

/// Options of the commands that need the master keys of a directory.
#[derive(Debug, Clone, Args)]
pub struct TreeOptions {
    /// The directory that gateways serve
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// The file with the master keys, one on each line, the same as for `slipway serve`. The
    /// variable SLIPWAY_MASTER_KEY may hold its content instead
    #[arg(long, value_name = "FILE", env = "SLIPWAY_MASTER_KEY_FILE")]
    pub master_key_file: Option<PathBuf>,

    /// A command that prints the master keys, one on each line, in place of a file: a program and
    /// its arguments, separated by spaces. It is run without a shell, and must finish within 10 s
    #[arg(long, value_name = "COMMAND", env = "SLIPWAY_MASTER_KEY_COMMAND")]
    pub master_key_command: Option<String>,

    /// The place of the identities, if that is not the tree.
    #[command(flatten)]
    pub store: StoreOptions,
}

/// Options of `slipway master-key new`.
#[derive(Debug, Clone, Args)]
pub struct NewOptions {
    /// The file to create, outside of the directory that gateways serve. It must not exist yet
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Runs a command.
pub fn run(command: &MasterKeyCommand) -> ExitCode {
    let console = Console::new();
    match command {
        MasterKeyCommand::New(options) => run_new(&console, &options.file),
        MasterKeyCommand::Rotate(options) => run_rotate(&console, options),
        MasterKeyCommand::Forget(options) => run_forget(&console, options),
    }
}

fn run_new(console: &Console, path: &Path) -> ExitCode {
    let file = shown(path);
    match new(path) {
        Ok(id) => {
            console.say(&format!(
                "{file}: the master key {id} was made. Keep a copy of it, apart from copies of the directory that is \
                 served: without it, the secrets of all users' access keys are lost"
            ));
            OK.into()
        }
        Err(why) => console.fail(&format!("{file}: no master key was made: {why}")),
    }
}

fn run_rotate(console: &Console, options: &RotateOptions) -> ExitCode {
    let dir = place(&options.tree);
    match rotate(options) {
        Ok(Rotated::Done(count)) => {
            console.say(&format!("{dir}: secrets encrypted anew: {count}"));
            OK.into()
        }
        Ok(Rotated::Asked(Rotation { key, secrets, is_in_use })) => {
            if let Some(served) = served_by(&options.tree.dir) {
                console.say(&format!("{dir}: {served}"));
            }
            if !is_in_use {
                console.say(&without_first(&dir, key));
            }
            console.say(&format!(
                "{dir}: secrets that would be encrypted with the master key {key}: {secrets}. Nothing was changed. A \
                 gateway without this key would then refuse all users (503). Check that every gateway, on all machines, \
                 was started or reloaded with it: the log of a reload has \"master keys\" among what is new. Then give \
                 the command again with --yes. Afterwards, slipway ready ADDRESS fails for a gateway that lacks the key"
            ));
            FOUND.into()
        }
        Ok(Rotated::Refused { key, served }) => {
            console.say(&format!("{dir}: {served}"));
            console.say(&without_first(&dir, key));
            console.say(&format!(
                "{dir}: Nothing was changed, since this gateway would refuse all users (503). If it is to be started \
                 anew with this key, stop it first"
            ));
            FOUND.into()
        }
        Err(why) => console.fail(&format!("{dir}: {why}")),
    }
}

fn without_first(dir: &str, key: KeyId) -> String {
    format!(
        "{dir}: no gateway has the master key {key} as its first one yet: write its line before the others in the file \
         of each gateway, and reload them (SIGHUP)"
    )
}

/// Fails if the store has nothing: no gateway with a master key has used it, so that it is not the
/// one that is meant.
async fn check_used(documents: &dyn Documents, options: &TreeOptions) -> std::result::Result<(), String> {
    if !documents.list().await.map_err(|e| e.to_string())?.is_empty() {
        return Ok(());
    }
    Err(match &options.store.identities {
        Some(place) => format!(
            "--identities {place} has no users and no access keys: give the same value as the gateways of the directory"
        ),
        None => format!(
            "there are no users and no access keys in {}: give the directory that gateways serve, and --identities if they \
             have it",
            shown(&options.dir.join(STATE_DIR).join("iam"))
        ),
    })
}

/// Returns the directory, with the store of identities if this is elsewhere.
fn place(options: &TreeOptions) -> String {
    let dir = shown(&options.dir);
    match &options.store.identities {
        Some(store) => format!("{dir} (--identities {store})"),
        None => dir,
    }
}

/// The result of `slipway master-key rotate`.
enum Rotated {
    /// The secrets were encrypted anew; this is their number.
    Done(usize),
    /// Nothing was changed, and this would be.
    Asked(Rotation),
    /// Nothing was changed: the directory is served, and no gateway has this key as its first one.
    Refused { key: KeyId, served: String },
}

fn rotate(options: &RotateOptions) -> std::result::Result<Rotated, String> {
    let Prepared { runtime, documents, keys, root, clock } = Prepared::of(&options.tree, !options.yes)?;
    runtime.block_on(async {
        check_used(&*documents, &options.tree).await?;
        let registry = Registry::unread(documents, Some(keys), &root, clock);
        let rotation = registry.rotation().await.map_err(|e| told(&e))?;
        if !options.yes {
            return Ok(Rotated::Asked(rotation));
        }
        // --yes confirms what cannot be seen, and not what is seen to be false.
        if let Some(served) = served_by(&options.tree.dir).filter(|_| !rotation.is_in_use) {
            return Ok(Rotated::Refused { key: rotation.key, served });
        }
        registry.reseal().await.map(Rotated::Done).map_err(|e| told(&e))
    })
}

fn run_forget(console: &Console, options: &ForgetOptions) -> ExitCode {
    let dir = place(&options.tree);
    match forget(options) {
        Ok(Forgotten::Done(count)) => {
            console.say(&format!(
                "{dir}: access keys that became inactive, since their secrets are lost: {count}"
            ));
            OK.into()
        }
        Ok(Forgotten::Asked(lost)) => {
            for LostKey { account, owner, id, master_key } in &lost {
                let owner = match owner {
                    KeyOwner::Root => ROOT_NAME,
                    KeyOwner::User(name) => name.as_str(),
                };
                console.say(&format!(
                    "{dir}: account {account}, {owner}: {id}: encrypted with the master key {master_key}"
                ));
            }
            console.say(&format!(
                "{dir}: access keys that would lose their secrets for good, and become inactive: {}. Nothing was changed. If \
                 these master keys still exist, add their lines to the file; if they are lost, give the command again \
                 with --yes",
                lost.len()
            ));
            FOUND.into()
        }
        Err(why) => console.fail(&format!("{dir}: {why}")),
    }
}

/// The result of `slipway master-key forget`.
enum Forgotten {
    /// The secrets were given up; this is their number.
    Done(usize),
    /// Nothing was changed: these keys would lose their secrets.
    Asked(Vec<LostKey>),
}

fn forget(options: &ForgetOptions) -> std::result::Result<Forgotten, String> {
    let Prepared { runtime, documents, keys, root, clock } = Prepared::of(&options.tree, false)?;
    if let Some(served) = served_by(&options.tree.dir).filter(|_| options.yes) {
        return Err(format!("{served}: stop all gateways of the directory, on all machines, first"));
    }
    runtime.block_on(async {
        check_used(&*documents, &options.tree).await?;
        // None of the keys in use may be here.
        let registry = Registry::unread(documents, Some(keys), &root, clock);
        let lost = registry.lost_keys().await.map_err(|e| told(&e))?;
        if !options.yes && !lost.is_empty() {
            return Ok(Forgotten::Asked(lost));
        }
        registry.forget_secrets().await.map(Forgotten::Done).map_err(|e| told(&e))
    })
}

/// Returns the text of an error, with its cause. That of a store is the cause alone: the message is
/// for clients, and says only that the server has failed.
pub fn told(error: &IamError) -> String {
    match error.source() {
        Some(cause) if error.code == IamCode::ServiceUnavailable => cause.to_string(),
        Some(cause) => format!("{}: {cause}", error.message.trim_end_matches('.')),
        None => error.message.clone(),
    }
}

/// The objects that are needed to change the identities of a tree through the same code as a
/// gateway.
pub struct Prepared {
    /// The runtime for requests to the store.
    pub runtime: tokio::runtime::Runtime,
    /// The store.
    pub documents: Arc<dyn Documents>,
    /// The master keys.
    pub keys: MasterKeys,
    /// A root with a random key, with which no requests can be signed.
    pub root: RootIdentity,
    /// The clock.
    pub clock: Arc<SystemClock>,
}

impl Prepared {
    /// Opens the tree and the store, and changes nothing yet. If `only_look` is true, there is no
    /// write access.
    pub fn of(options: &TreeOptions, only_look: bool) -> std::result::Result<Self, String> {
        let given = Given {
            dir: Some(&options.dir),
            file: options.master_key_file.as_deref(),
            command: options.master_key_command.as_deref(),
        };
        let state_dir = options.dir.join(STATE_DIR);
        let owned = check_owner(&state_dir);
        let keys = match master_key::find(&given, |name| std::env::var(name).ok()) {
            Ok(keys) => keys.ok_or("no master key is given: give it by --master-key-file")?,
            // Another user than the gateways' may not read the file of theirs either.
            Err(why) => return Err(owned.err().unwrap_or(why)),
        };
        owned?;
        agreement::check_store(&options.store, &state_dir)?;
        let account = Arc::new(account::find(None, Some(&state_dir), Access::Read)?);
        let root = RootIdentity::new(Principal::root(account, None), credentials::generate()?);
        let store = Store::find(&options.store, |name| std::env::var(name).ok())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start threads: {e}"))?;
        let access = if only_look { Access::Read } else { Access::Keep };
        let documents = runtime.block_on(identities::open(store, Some(&options.dir), access));
        let documents = documents.map_err(|e| e.to_string())?;
        Ok(Self { runtime, documents, keys, root, clock: Arc::new(SystemClock::start()) })
    }
}

/// Fails if this process runs as another user than the gateways: they could not read the files that
/// it writes.
fn check_owner(state_dir: &Path) -> std::result::Result<(), String> {
    let found = fs::symlink_metadata(state_dir);
    let owner = found.map_err(|e| format!("no gateway has served it: {STATE_DIR}: {e}"))?.uid();
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(format!(
        "its gateways run as the user with uid {owner}: run this command as that user (setpriv, sudo -u)"
    ))
}

fn new(path: &Path) -> std::result::Result<String, String> {
    if let Some(outer) = storage::served_around(path) {
        return Err(format!(
            "the file would lie in {}, which a gateway serves, so that each copy of that directory could be decrypted \
             with it: name a file elsewhere",
            shown(&outer)
        ));
    }
    let line = MasterKeys::new_line().map_err(|e| e.to_string())?;
    let keys = MasterKeys::read(&line).map_err(|e| e.to_string())?;
    let id = keys.ids().next().map(|id| id.to_string()).unwrap_or_default();
    let day = Timestamp::now().strftime("%Y-%m-%d");
    let text = Zeroizing::new(format!("# The master key {id} of slipway, made on {day}.\n{}\n", *line));
    write(path, &text).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => "the file exists, and is left as it is: name another one".to_owned(),
        ErrorKind::NotFound => {
            let above = shown(directory_of(path));
            format!("the directory {above} does not exist: make it (mkdir -p {above}), or name another file")
        }
        _ => error.to_string(),
    })?;
    Ok(id)
}

/// Creates a file with this text, and flushes it to disk. Fails if the file exists.
fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::File::open(directory_of(path))?.sync_all()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
