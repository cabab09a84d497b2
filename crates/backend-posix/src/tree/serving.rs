//! Locks by which `slipway upgrade` sees which gateways serve a tree (docs/FORMAT.md).
//!
//! A gateway that serves a tree, or a tool that works on it, holds a shared lock in the meantime,
//! and an upgrade takes the exclusive one. The kernel does not tell who holds a lock. So each
//! gateway also has a file with a line about it, and holds that file's lock: after a crash, the
//! file is left but not locked.
//!
//! The line is followed by one with the features of trees that the gateway knows, so that a feature
//! is not set while a gateway serves the tree that does not know it.
//!
//! Builds before 25 November 2026 hold none of these locks, and those before 28 November 2026 name
//! no features.

use std::path::Path;
use std::thread;
use std::time::Instant;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::format;
use crate::base::unique;
use crate::error::{Io, leads_nowhere};
use crate::fs::files::give_to_owner_of;
use crate::fs::locking::try_lock_at;
use crate::fs::reading::entries;
use crate::fs::removing::is_older;
use crate::fs::resolve::{self, DIRECTORY, READ};
use crate::fs::{file_info, files};
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::tree::{GATEWAYS, GATEWAYS_LOCK};
use crate::limits::{GATEWAY_LEFT_AGE, GATEWAY_LINE_BYTES_MAX, UPGRADE_PAUSE, UPGRADE_WAIT_MAX};

const FOR_WRITING: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// The mode of the files with locks and lines.
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The beginning of the line with the features that a gateway knows.
const KNOWN: &str = "features: ";

/// The locks that prevent upgrades of a tree, as long as this exists.
#[derive(Debug)]
#[must_use = "the tree may be upgraded once this is dropped"]
pub struct Serving {
    /// The file with a line about this gateway, if there is one.
    line: Option<Line>,
    /// The shared lock, held as long as this descriptor is open; `None` if it could not be taken.
    lock: Option<OwnedFd>,
}

/// A file with a line about a gateway; dropping this removes it.
#[derive(Debug)]
struct Line {
    gateways: OwnedFd,
    name: String,
    /// The open file, which holds the lock.
    file: OwnedFd,
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(&self.gateways, &*self.name, AtFlags::empty());
    }
}

impl Serving {
    /// True if an upgrade can detect that the tree is served.
    pub fn is_seen(&self) -> bool {
        self.lock.is_some()
    }

    /// True if an upgrade can name this gateway.
    pub fn is_named(&self) -> bool {
        self.line.is_some()
    }
}

/// Prevents upgrades of the tree at `root`. `line` tells an operator which gateway this is. If it
/// is `None`, nothing is written, and the lock is taken only if its file exists. Fails with a
/// sentence if the tree is being upgraded, or was upgraded to an unknown format since it was
/// opened.
pub fn serve(root: &Path, line: Option<&str>) -> Result<Serving, String> {
    let told = |why: String| format!("{}: {why}", root.display());
    let opened = rustix::fs::open(root, DIRECTORY, Mode::empty());
    let directory = opened.map_err(|errno| told(errno.to_string()))?;
    keep_from_upgrade(&directory, line).map_err(told)
}

/// Does the same as [`serve`] for an open root.
pub(crate) fn keep_from_upgrade(root: impl AsFd, line: Option<&str>) -> Result<Serving, String> {
    let serving = match take(&root, line) {
        Ok(Some(serving)) => serving,
        Ok(None) => {
            return Err(
                "slipway upgrade is upgrading the directory: start again when it has ended".to_owned()
            );
        }
        Err(errno) => {
            // Of what can only be read, a start warns anyway.
            if line.is_some() && errno != Errno::ROFS {
                let place = join(OWN_DIRECTORY, GATEWAYS);
                tracing::warn!(
                    error = %errno,
                    "{place} cannot be written or locked, so that slipway upgrade cannot see that this gateway \
                     serves the directory: stop it before you run slipway upgrade"
                );
            }
            Serving { line: None, lock: None }
        }
    };
    // It may have been upgraded since it was opened.
    match format::check_at(root) {
        Ok(Ok(())) => Ok(serving),
        Ok(Err((file, error))) => Err(format!("{}: {error}", join(OWN_DIRECTORY, file))),
        Err(errno) => Err(format!("{OWN_DIRECTORY} cannot be read: {errno}")),
    }
}

/// Takes the shared lock, and writes the line about this gateway. `None` if an upgrade has the
/// lock.
fn take(root: impl AsFd, line: Option<&str>) -> Io<Option<Serving>> {
    let gateways = match (find(&root), line) {
        (Err(Errno::NOENT), Some(_)) => make(&root)?,
        (Err(errno), None) if leads_nowhere(errno) => return Ok(Some(Serving { line: None, lock: None })),
        (gateways, _) => gateways?,
    };
    let lock = match open_lock(&gateways, line.is_some()) {
        Err(Errno::NOENT) if line.is_none() => return Ok(Some(Serving { line: None, lock: None })),
        lock => lock?,
    };
    let begun = Instant::now();
    while !try_lock(&lock, FlockOperation::NonBlockingLockShared)? {
        if begun.elapsed() >= UPGRADE_WAIT_MAX {
            return Ok(None);
        }
        thread::sleep(UPGRADE_PAUSE);
    }
    // It is named without it, too.
    let line = line.and_then(|line| write_line(gateways, line).ok());
    Ok(Some(Serving { line, lock: Some(lock) }))
}

fn find(root: impl AsFd) -> Io<OwnedFd> {
    resolve::plain(root, &join(OWN_DIRECTORY, GATEWAYS), DIRECTORY)
}

/// Makes the directory of gateways in a `.slipway`.
fn make(root: impl AsFd) -> Io<OwnedFd> {
    let own = resolve::plain(&root, OWN_DIRECTORY, DIRECTORY)?;
    match rustix::fs::mkdirat(&own, GATEWAYS, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    let gateways = resolve::plain(&own, GATEWAYS, DIRECTORY)?;
    hand_over(&own, &gateways);
    Ok(gateways)
}

/// Gives a file that root may have just made to the owner of a directory: root may run a gateway,
/// or an upgrade, of a tree that another user serves at other times.
fn hand_over(directory: &OwnedFd, made: &OwnedFd) {
    if rustix::process::geteuid().is_root() {
        // Where that is not possible, what belongs to root stays so.
        let _ = give_to_owner_of(directory, made);
    }
}

/// Opens the file with the lock. If `make` is true, the file is made if it does not exist.
fn open_lock(gateways: &OwnedFd, make: bool) -> Io<OwnedFd> {
    let flags = if make { FOR_WRITING | OFlags::CREATE } else { FOR_WRITING };
    let mode = if make { MODE } else { Mode::empty() };
    let open = || resolve::create(gateways, GATEWAYS_LOCK, flags, mode);
    let lock = match open() {
        // Network file systems, of two that make it at once.
        Err(Errno::EXIST) => open()?,
        // A shared lock takes no more, even on NFS.
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => resolve::plain(gateways, GATEWAYS_LOCK, READ)?,
        lock => lock?,
    };
    if make {
        hand_over(gateways, &lock);
    }
    Ok(lock)
}

fn try_lock(file: &OwnedFd, operation: FlockOperation) -> Io<bool> {
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

fn write_line(gateways: OwnedFd, line: &str) -> Io<Line> {
    remove_left(&gateways);
    let name = unique::name();
    let flags = FOR_WRITING | OFlags::CREATE | OFlags::EXCL;
    let file = resolve::create(&gateways, &name, flags, MODE)?;
    hand_over(&gateways, &file);
    let line_of_it = Line { gateways, name, file };
    let text = format!("{}\n{KNOWN}{}\n", line.replace(char::is_control, " "), known_features().join(" "));
    let locked = try_lock(&line_of_it.file, FlockOperation::NonBlockingLockExclusive)?;
    files::write_all(&line_of_it.file, text.as_bytes(), 0)?;
    if locked { Ok(line_of_it) } else { Err(Errno::WOULDBLOCK) }
}

/// Removes the files of gateways that have ended without removing them.
fn remove_left(gateways: &OwnedFd) {
    for name in names(gateways).unwrap_or_default() {
        // A new one is not locked yet.
        if is_older(gateways, &name, GATEWAY_LEFT_AGE) && is_held(gateways, &name) == Ok(false) {
            let _ = rustix::fs::unlinkat(gateways, &*name, AtFlags::empty());
        }
    }
}

/// Returns the names of the files about gateways.
fn names(gateways: &OwnedFd) -> Io<Vec<String>> {
    let names = entries(&resolve::plain(gateways, "", DIRECTORY)?)?.into_iter().map(|(name, _)| name);
    Ok(names.filter(|name| unique::is_name(name)).collect())
}

/// True if the gateway that a file describes holds the file's lock.
fn is_held(gateways: &OwnedFd, name: &str) -> Io<bool> {
    let file = resolve::plain(gateways, name, READ)?;
    if !file_info::of(&file)?.is_file() {
        return Ok(false);
    }
    Ok(try_lock_at(gateways, name, file)?.is_none())
}

/// Returns the names of the features that this version knows.
fn known_features() -> Vec<&'static str> {
    format::FEATURES.iter().map(|(name, _)| *name).collect()
}

/// Returns the lines of the gateways that serve the tree and do not know a feature, as far as they
/// can be noticed.
pub(crate) fn without_feature(root: impl AsFd, feature: &str) -> Io<Vec<String>> {
    let gateways = match find(&root) {
        Err(errno) if leads_nowhere(errno) => return Ok(Vec::new()),
        gateways => gateways?,
    };
    let knows = |known: &Option<Vec<String>>| {
        known.as_ref().is_some_and(|known| known.iter().any(|name| name == feature))
    };
    let found = described(&gateways)?.into_iter();
    Ok(found.filter(|gateway| !knows(&gateway.features)).map(|gateway| gateway.line).collect())
}

/// A gateway that serves a tree, as its file says.
struct Described {
    line: String,
    /// The features that it knows; `None` for builds that do not name them.
    features: Option<Vec<String>>,
}

/// Reads the files of the gateways that run.
fn described(gateways: &OwnedFd) -> Io<Vec<Described>> {
    let mut found = Vec::new();
    for name in names(gateways)? {
        let held = match is_held(gateways, &name) {
            // It has ended meanwhile.
            Err(Errno::NOENT) => false,
            held => held?,
        };
        if !held {
            continue;
        }
        let text = match files::read_own_up_to(gateways, &name, GATEWAY_LINE_BYTES_MAX) {
            Err(Errno::NOENT) => continue,
            text => text?,
        };
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines();
        let line = lines.next().unwrap_or_default().trim().to_owned();
        let features = lines.find_map(|line| line.strip_prefix(KNOWN));
        let features = features.map(|names| names.split_whitespace().map(str::to_owned).collect());
        found.push(Described { line, features });
    }
    Ok(found)
}

/// The gateways that prevent an upgrade of a tree.
#[derive(Debug)]
pub(crate) enum Holders {
    /// There are none. If the tree has the lock, the exclusive lock is held as long as the
    /// descriptor is open.
    None(Option<OwnedFd>),
    /// The gateways with these lines. If there are no lines, a tool holds the lock, or a gateway
    /// that only reads.
    Some(Vec<String>),
}

/// Takes the exclusive lock. If `make` is true, its file is made if it does not exist.
pub(crate) fn exclude(root: impl AsFd, make: bool) -> Io<Holders> {
    let gateways = match find(&root) {
        Err(Errno::NOENT) if make => self::make(&root)?,
        Err(errno) if leads_nowhere(errno) => return Ok(Holders::None(None)),
        gateways => gateways?,
    };
    let lock = match open_lock(&gateways, make) {
        Err(Errno::NOENT) => return Ok(Holders::None(None)),
        lock => lock?,
    };
    if try_lock(&lock, FlockOperation::NonBlockingLockExclusive)? {
        return Ok(Holders::None(Some(lock)));
    }
    Ok(Holders::Some(described(&gateways)?.into_iter().map(|gateway| gateway.line).collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use super::*;

    fn tree() -> (tempfile::TempDir, OwnedFd) {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join(OWN_DIRECTORY)).unwrap();
        let root = rustix::fs::open(tree.path(), DIRECTORY, Mode::empty()).unwrap();
        (tree, root)
    }

    fn gateways(tree: &tempfile::TempDir) -> PathBuf {
        tree.path().join(OWN_DIRECTORY).join(GATEWAYS)
    }

    fn lines_of(holders: Holders) -> Option<Vec<String>> {
        match holders {
            Holders::None(_) => None,
            Holders::Some(mut lines) => {
                lines.sort();
                Some(lines)
            }
        }
    }

    #[test]
    fn gateways_are_named_as_long_as_they_serve() {
        let (tree, root) = tree();
        let holders = || lines_of(exclude(&root, true).unwrap());
        assert_eq!(holders(), None);
        let one = serve(tree.path(), Some("the first\nof two")).unwrap();
        let two = serve(tree.path(), Some("the second")).unwrap();
        assert!(one.is_seen() && one.is_named());
        assert_eq!(holders().unwrap(), ["the first of two", "the second"]);
        drop(one);
        assert_eq!(holders().unwrap(), ["the second"]);
        // A tool, or a gateway that only reads, writes nothing.
        let reader = serve(tree.path(), None).unwrap();
        assert!(reader.is_seen() && !reader.is_named());
        drop(two);
        assert_eq!(holders().unwrap(), [""; 0]);
        drop(reader);
        assert_eq!(holders(), None);
        assert_eq!(fs::read_dir(gateways(&tree)).unwrap().count(), 1);
        for (path, mode) in [(gateways(&tree), 0o700), (gateways(&tree).join(GATEWAYS_LOCK), 0o600)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o077, 0, "{mode:o}");
        }
    }

    #[test]
    fn a_gateway_of_an_older_build_is_told_by_its_features() {
        let (tree, root) = tree();
        let without = |feature| {
            let mut lines = without_feature(&root, feature).unwrap();
            lines.sort();
            lines
        };
        assert_eq!(without(format::VERSIONS), [""; 0], "none was ever there");
        let _this = serve(tree.path(), Some("this")).unwrap();
        assert_eq!(without(format::VERSIONS), [""; 0]);
        assert_eq!(without("time-travel"), ["this"]);
        // As builds before wrote it.
        let older = serve(tree.path(), Some("older")).unwrap();
        let name = &older.line.as_ref().unwrap().name;
        fs::write(gateways(&tree).join(name), "older\n").unwrap();
        assert_eq!(without(format::VERSIONS), ["older"]);
        assert_eq!(lines_of(exclude(&root, true).unwrap()).unwrap(), ["older", "this"]);
        drop(older);
        assert_eq!(without(format::VERSIONS), [""; 0]);
    }

    #[test]
    fn nothing_is_made_for_who_only_looks() {
        let (tree, root) = tree();
        assert!(!serve(tree.path(), None).unwrap().is_seen());
        assert!(matches!(exclude(&root, false), Ok(Holders::None(None))));
        assert_eq!(fs::read_dir(tree.path().join(OWN_DIRECTORY)).unwrap().count(), 0);
        // Nor where no gateway was yet.
        fs::remove_dir(tree.path().join(OWN_DIRECTORY)).unwrap();
        assert!(!serve(tree.path(), None).unwrap().is_seen());
        assert_eq!(fs::read_dir(tree.path()).unwrap().count(), 0);
    }

    #[test]
    fn nobody_serves_a_tree_that_is_being_upgraded() {
        let (tree, root) = tree();
        let Holders::None(Some(lock)) = exclude(&root, true).unwrap() else { panic!("it is free") };
        for line in [Some("gateway"), None] {
            let refused = serve(tree.path(), line).unwrap_err();
            assert!(refused.ends_with("start again when it has ended"), "{refused}");
        }
        drop(lock);
        assert!(serve(tree.path(), Some("gateway")).unwrap().is_seen());
    }

    /// An upgrade by a newer version may come between the check of the format and the lock.
    #[test]
    fn the_format_is_looked_at_again() {
        let (tree, _root) = tree();
        let own = tree.path().join(OWN_DIRECTORY);
        fs::write(own.join(format::FILE), "format = 2\n").unwrap();
        fs::write(own.join(format::FEATURES_FILE), "time-travel\n").unwrap();
        let refused = serve(tree.path(), Some("gateway")).unwrap_err();
        assert!(refused.contains("\"time-travel\""), "{refused}");
    }

    #[test]
    fn what_a_crash_left_is_not_a_gateway() {
        let (tree, root) = tree();
        drop(serve(tree.path(), Some("gateway")).unwrap());
        let left = gateways(&tree).join(unique::name());
        fs::write(&left, "of a crash\n").unwrap();
        let running = serve(tree.path(), Some("running")).unwrap();
        assert_eq!(lines_of(exclude(&root, true).unwrap()).unwrap(), ["running"]);
        assert!(left.exists(), "it may be about to be locked");
        let other = gateways(&tree).join("README");
        fs::write(&other, "").unwrap();
        thread::sleep(GATEWAY_LEFT_AGE + std::time::Duration::from_millis(100));
        drop(serve(tree.path(), Some("next")).unwrap());
        assert!(!left.exists() && other.exists());
        assert!(running.is_seen());
    }
}
