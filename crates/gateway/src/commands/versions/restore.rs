//! `slipway versions restore`.

use std::process::ExitCode;

use backend::{
    Backend as _, BackendError, Context, CopyRequest, CopySource, DeleteRequest, ObjectRef, ReadRequest,
    ReadSelector, VersionItem, Versioning,
};
use backend_posix::PosixBackend;
use clap::Args;
use s3_types::{Conditions, ETag, ObjectKey, ObjectLock, Timestamp, VersionId};

use super::place::{Place, each_version, failed, open};
use crate::commands::{Console, FOUND, OK};
use crate::text::one_line;

/// Options of `slipway versions restore`.
#[derive(Debug, Clone, Args)]
pub struct RestoreOptions {
    /// The bucket.
    #[command(flatten)]
    pub place: Place,

    /// Restore one version of this key, which --version-id names
    #[arg(long, value_name = "KEY", value_parser = key, requires = "version_id", conflicts_with_all = ["at", "prefix"])]
    pub key: Option<ObjectKey>,

    /// The id of the version that becomes the current one, as `slipway versions list` shows it
    #[arg(long, value_name = "ID", value_parser = version, requires = "key", required_unless_present = "at")]
    pub version_id: Option<VersionId>,

    /// Restore all keys as they were at this time, such as 2026-11-27T12:00:00Z. A file that
    /// another program removed or replaced since cannot be restored, unless it is an old version
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub at: Option<Timestamp>,

    /// With --at, delete the keys that did not exist then, each with a delete marker. Without this
    /// option, they are only shown
    #[arg(long, requires = "at")]
    pub delete: bool,

    /// Only show what would be restored
    #[arg(long)]
    pub dry_run: bool,
}

fn key(text: &str) -> Result<ObjectKey, String> {
    ObjectKey::new(text).map_err(|_| "not a valid key".to_owned())
}

fn version(text: &str) -> Result<VersionId, String> {
    VersionId::new(text).map_err(|_| "not a valid id of a version".to_owned())
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "expected a time with its zone, such as 2026-11-27T12:00:00Z".to_owned())
}

/// The state of a key: a version or a delete marker of it.
#[derive(Debug, Clone, PartialEq)]
struct State {
    version: VersionId,
    /// The size and the ETag; `None` for a delete marker.
    content: Option<(u64, ETag)>,
}

/// The versions of a key, as far as a restore needs them.
#[derive(Debug)]
struct History {
    key: ObjectKey,
    current: State,
    /// The newest version at the wanted time; `None` if the key did not exist then.
    then: Option<State>,
}

/// Restores versions.
pub(super) fn restore(console: &Console, options: &RestoreOptions) -> Result<ExitCode, String> {
    let (backend, runtime) = open(&options.place)?;
    runtime.block_on(async {
        let told = |error: &BackendError| failed(&options.place, error);
        refuse_unless_kept(&backend, &options.place).await?;
        let mut failures = 0_u64;
        match (&options.key, &options.version_id, options.at) {
            (Some(key), Some(version), _) => {
                failures += u64::from(!bring_back(&backend, console, options, key, version).await);
            }
            (_, _, Some(at)) => {
                let histories = histories(&backend, &options.place, at).await.map_err(|e| told(&e))?;
                for history in histories {
                    failures += u64::from(!restore_key(&backend, console, options, &history).await);
                }
            }
            _ => return Err("give --key and --version-id, or --at".to_owned()),
        }
        Ok(if failures == 0 { OK.into() } else { FOUND.into() })
    })
}

/// Refuses a bucket in which a restore would destroy what is current.
async fn refuse_unless_kept(backend: &PosixBackend, place: &Place) -> Result<(), String> {
    let state = backend.load_bucket(&Context::default(), &place.bucket).await;
    let state = state.map_err(|error| failed(place, &error))?;
    match Versioning::of(&state.documents) {
        Some(Versioning::Enabled) => Ok(()),
        Some(Versioning::Suspended) => Err(format!(
            "{}: its versioning is suspended, so that a restore would overwrite versions with the id null: enable it first",
            place.bucket
        )),
        Some(Versioning::Unset) | None => Err(format!("{}: the bucket keeps no versions", place.bucket)),
    }
}

/// Finds the keys that are not now as they were at a time.
async fn histories(backend: &PosixBackend, place: &Place, at: Timestamp) -> backend::Result<Vec<History>> {
    let mut all: Vec<History> = Vec::new();
    each_version(backend, place, |item| {
        let (key, time, state, is_marker_of_nobody) = match item {
            VersionItem::CommonPrefix(_) => return,
            VersionItem::Object { object, .. } => {
                let version = object.version.unwrap_or_else(VersionId::null);
                let content = Some((object.size_bytes, object.etag));
                (object.key, object.last_modified, State { version, content }, false)
            }
            VersionItem::DeleteMarker { key, marker, .. } => {
                // Nobody knows when the file was removed.
                let by_nobody = marker.version.as_str().starts_with('r');
                (key, marker.last_modified, State { version: marker.version, content: None }, by_nobody)
            }
        };
        if all.last().is_none_or(|last| last.key != key) {
            drop(all.pop_if(|last| is_same(last)));
            all.push(History { key, current: state.clone(), then: None });
        }
        if let Some(history) = all.last_mut()
            && history.then.is_none()
            && time <= at
            && !is_marker_of_nobody
        {
            history.then = Some(state);
        }
    })
    .await?;
    all.retain(|history| !is_same(history));
    Ok(all)
}

/// True if a key is as it was: the same version, or one with the same bytes, or deleted.
fn is_same(history: &History) -> bool {
    let then = history.then.as_ref().and_then(|state| state.content.as_ref());
    history.current.content.as_ref() == then
}

/// Restores one key; false if that failed.
async fn restore_key(
    backend: &PosixBackend,
    console: &Console,
    options: &RestoreOptions,
    history: &History,
) -> bool {
    let History { key, current: _, then } = history;
    if let Some(State { version, content: Some(_) }) = then {
        return bring_back(backend, console, options, key, version).await;
    }
    let name = one_line(key.as_str());
    if !options.delete {
        console.say(&format!("left: {name}: it did not exist then (--delete deletes it)"));
        return true;
    }
    if options.dry_run {
        console.say(&format!("would delete: {name}"));
        return true;
    }
    let object = ObjectRef::current(&options.place.bucket, key);
    let request =
        DeleteRequest { object, conditions: &Conditions::default(), bypass_governance: false, check: None };
    match backend.delete_object(&Context::default(), request).await {
        Ok(_) => {
            console.say(&format!("deleted: {name}"));
            true
        }
        Err(error) => {
            console.complain(&format!("{name}: {error}"));
            false
        }
    }
}

/// Makes a version of a key the current one, by a copy; false if that failed.
async fn bring_back(
    backend: &PosixBackend,
    console: &Console,
    options: &RestoreOptions,
    key: &ObjectKey,
    version: &VersionId,
) -> bool {
    let name = one_line(key.as_str());
    let told = |verb: &str| format!("{verb}: {name} as of version {}", version.as_str());
    match copy(backend, options, key, version).await {
        Ok(()) => {
            console.say(&told(if options.dry_run { "would restore" } else { "restored" }));
            true
        }
        Err(error) => {
            console.complain(&format!("{name}: version {}: {error}", version.as_str()));
            false
        }
    }
}

async fn copy(
    backend: &PosixBackend,
    options: &RestoreOptions,
    key: &ObjectKey,
    version: &VersionId,
) -> backend::Result<()> {
    let cx = Context::default();
    let target = ObjectRef::current(&options.place.bucket, key);
    let object = target.of(Some(version));
    let conditions = Conditions::default();
    let request = ReadRequest {
        object,
        selector: ReadSelector::Whole,
        conditions: &conditions,
        with_lock: false,
        check: None,
    };
    // A copy leaves the address of a redirect out.
    let metadata = backend.head_object(&cx, request).await?.attributes.metadata;
    if options.dry_run {
        return Ok(());
    }
    let request = CopyRequest {
        source: CopySource { object, conditions: Conditions::default(), check: None },
        target,
        metadata: Some(metadata),
        tags: None,
        lock: ObjectLock::default(),
        website_redirect_location: None,
        checksum_algorithm: None,
        conditions: Conditions::default(),
        check: None,
    };
    backend.copy_object(&cx, request).await.map(drop)
}
