//! The storage that the command line names.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, ReadOnly};
use backend_null::NullBackend;
use backend_posix::PosixBackend;
use backend_posix::serving;
pub use backend_posix::serving::Serving;
use rustix::fs::Access;
use rustix::io::Errno;

use crate::config::ServeOptions;
use crate::state_dir::{self, STATE_DIR};
use crate::{account, minio, version};

/// The name of the storage that stores nothing.
pub const NULL: &str = "null:";
/// The largest number of names in one log line about entries that are not served.
const UNSERVED_SHOWN: usize = 8;
/// The largest number of directories in DIR that are searched for traces of other gateways.
const NESTED_SEARCHED: usize = 1000;

/// Opens the storage that DIR names, and logs which of its entries will not be served.
pub async fn open(options: &ServeOptions) -> Result<Arc<dyn Backend>, String> {
    let backend: Arc<dyn Backend> =
        if options.dir == NULL { Arc::new(NullBackend::new()) } else { open_tree(options).await? };
    Ok(if options.read_only { Arc::new(ReadOnly::new(backend)) } else { backend })
}

async fn open_tree(options: &ServeOptions) -> Result<Arc<dyn Backend>, String> {
    let dir = Path::new(&options.dir);
    if dir.exists() && !dir.is_dir() {
        return Err(not_a_directory(dir));
    }
    refuse_nested(dir, options)?;
    if !dir.exists() && !options.require_mount && !options.read_only {
        std::fs::create_dir_all(dir).map_err(|e| {
            format!(
                "{}: the directory does not exist and cannot be created: {e}: {}",
                dir.display(),
                cure(&e)
            )
        })?;
        tracing::info!(?dir, "the directory to serve did not exist, and was created");
    }
    minio::check(dir)?;
    let posix = backend_posix::Options {
        require_mount: options.require_mount,
        allow_same_names: options.allow_same_names,
        metadata: options.metadata,
        durability: options.durability,
        symlinks: options.symlinks,
        access_pattern: options.access_pattern,
        etag: options.etag,
        file_mode: options.file_mode,
        directory_mode: options.dir_mode,
        chown: options.chown,
        impersonate: options.impersonate,
        rehash_on_read: options.rehash_on_read,
        sweep: backend_posix::SweepOptions {
            upload_age: days(options.upload_age),
            all_chains: false,
            ..backend_posix::SweepOptions::default()
        },
        index_cache_bytes: options.index_cache.saturating_mul(1 << 20),
        object_cache_bytes: options.object_cache.saturating_mul(1 << 20),
        trust_versitygw: options.trust_versitygw,
        ready_free_bytes: options.ready_free.saturating_mul(1 << 30),
        quotas: Arc::default(),
    };
    let open = if options.read_only { PosixBackend::open_to_read } else { PosixBackend::open };
    let backend = open(dir, posix).map_err(|e| e.to_string())?;
    if !options.read_only {
        announce_rights(dir);
    }
    announce_unserved(&backend).await;
    announce_nested(dir);
    Ok(Arc::new(backend))
}

/// Prevents upgrades of DIR while this gateway serves it at `addresses`; `None` if DIR is not a
/// tree.
pub fn keep_from_upgrade(options: &ServeOptions, addresses: &[String]) -> Result<Option<Serving>, String> {
    if options.dir == NULL {
        return Ok(None);
    }
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (version, process, addresses) = (version::NUMBER, std::process::id(), addresses.join(", "));
    let line = format!("{addresses} (slipway {version}, process {process} on {host})");
    serving::serve(Path::new(&options.dir), (!options.read_only).then_some(&*line)).map(Some)
}

/// Returns the error for a DIR that is a file: perhaps a configuration file that was given in its
/// place.
fn not_a_directory(file: &Path) -> String {
    let file_name = file.display();
    if file.extension().is_some_and(|extension| extension == "toml") {
        format!("{file_name}: this is a file, not a directory: did you mean --config {file_name}?")
    } else {
        format!("{file_name}: this is a file: name the directory to serve")
    }
}

/// Returns the advice for a DIR that can't be made.
fn cure(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space or inodes on its file system, or raise the quota"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "mount its file system writable; under systemd, ReadWritePaths= must name the directory"
        }
        ErrorKind::NotADirectory => "a component of its path is a file: name another directory",
        ErrorKind::AlreadyExists => {
            "its path is a symbolic link whose target does not exist: create the target, or name another directory"
        }
        _ => {
            "create the directory, and give it to the server's user; under systemd, ReadWritePaths= must name it"
        }
    }
}

/// Returns a number of days as a duration; `None` for 0.
fn days(days: u32) -> Option<Duration> {
    (days > 0).then(|| Duration::from_secs(u64::from(days) * 24 * 3600))
}

/// Warns if the directory cannot be written to.
fn announce_rights(dir: &Path) {
    match rustix::fs::access(dir, Access::WRITE_OK) {
        Ok(()) => {}
        Err(error @ Errno::ROFS) => tracing::warn!(
            ?dir,
            %error,
            "the directory that is served cannot be written to: writes will fail, except in buckets that are mount \
             points of other file systems"
        ),
        Err(error) => tracing::warn!(
            ?dir,
            %error,
            "the directory that is served cannot be written to: buckets can be neither created nor deleted; whether \
             objects can be written depends on the permissions of each bucket's directory"
        ),
    }
}

/// Warns of entries of the directory that are not buckets.
async fn announce_unserved(backend: &PosixBackend) {
    match backend.unserved().await {
        Ok(names) if names.is_empty() => {}
        Ok(names) => {
            let shown = names.iter().take(UNSERVED_SHOWN).map(|name| format!("{name:?}"));
            let (names, count) = (shown.collect::<Vec<_>>().join(", "), names.len());
            tracing::warn!(
                count,
                %names,
                "some entries of the directory are not served as buckets: a bucket must be a directory, not a file \
                 or a symbolic link, with a name of 3 to 63 characters from a-z, 0-9, - and ."
            );
        }
        Err(error) => {
            tracing::error!(%error, "the directory that is served cannot be read: buckets cannot be listed");
        }
    }
}

/// Returns the path of a directory without symbolic links, even if the last directories on it do
/// not exist.
fn place_of(dir: &Path) -> PathBuf {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let known = absolute.ancestors().find_map(|above| {
        let rest = absolute.strip_prefix(above).ok()?;
        let real = above.canonicalize().ok()?;
        Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
    });
    known.unwrap_or(absolute)
}

/// Returns the directory above `place` that gateways serve or have served, if there is one.
fn outer_tree(place: &Path) -> Option<&Path> {
    place.ancestors().skip(1).find(|above| account::is_kept(above, STATE_DIR))
}

/// Returns the served directory that contains the file `place`, if there is one. A trace of a
/// gateway that anyone could have left, as in /tmp, is none.
pub fn served_around(place: &Path) -> Option<PathBuf> {
    let place = place_of(place);
    outer_tree(&place).filter(|outer| !may_be_planted(outer)).map(Path::to_owned)
}

/// Fails for a directory inside another one that is served, unless the inner one was served before:
/// usually, the user meant the outer one. Serving the inner one creates files for its account and
/// keys, which are foreign files to gateways of the outer one.
fn refuse_nested(dir: &Path, options: &ServeOptions) -> Result<(), String> {
    if options.allow_nested || options.read_only {
        return Ok(());
    }
    let place = place_of(dir);
    match outer_tree(&place) {
        // A trace that anyone could have left, as in /tmp, keeps nobody from serving.
        Some(outer) if !account::is_kept(&place, STATE_DIR) && !may_be_planted(outer) => Err(format!(
            "{}: the directory lies inside {}, which a gateway serves or served: its gateways could no longer delete \
             the bucket that contains it. Serve {1}; or give --allow-nested, if this is meant; or remove {1}/{STATE_DIR} \
             if {1} is no longer served",
            dir.display(),
            outer.display()
        )),
        _ => Ok(()),
    }
}

/// True if anyone may write to a directory, and its state directory belongs to another user.
fn may_be_planted(outer: &Path) -> bool {
    let open_to_all = std::fs::metadata(outer).map_or(true, |metadata| metadata.mode() & 0o002 != 0);
    open_to_all && !state_dir::is_trusted(&outer.join(STATE_DIR))
}

/// Warns of a tree inside another one ([`refuse_nested`]).
fn announce_nested(dir: &Path) {
    // Where it can't be told, nothing is to be warned of.
    let place = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    if let Some(outer) = outer_tree(&place) {
        tracing::warn!(
            ?dir,
            ?outer,
            "this server's directory (dir) lies inside a directory (outer) that another gateway serves or once \
             served: there it is part of a bucket, which that gateway cannot delete until dir is moved out of it"
        );
    }
    let children = std::fs::read_dir(&place).into_iter().flatten().flatten().take(NESTED_SEARCHED);
    let children = children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir()));
    // What is not UTF-8 is no bucket.
    let names = children.filter_map(|child| child.file_name().into_string().ok());
    // By a path from here, since these may be anyone's.
    let inner: Vec<_> =
        names.filter(|name| account::is_kept(&place, &format!("{name}/{STATE_DIR}"))).collect();
    if !inner.is_empty() {
        let names: Vec<_> = inner.iter().take(UNSERVED_SHOWN).map(|name| format!("{name:?}")).collect();
        tracing::warn!(
            ?dir,
            count = inner.len(),
            names = %names.join(", "),
            "these directories are buckets here, but a gateway serves or once served each of them as its own DIR: \
             DeleteBucket of them fails"
        );
    }
}
