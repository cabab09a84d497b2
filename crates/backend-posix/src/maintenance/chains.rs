//! Removes what interrupted writes left among old versions (decision 0059).
//!
//! A crash before the exchange of two versions leaves the new one in the chain, under the name that
//! the current one was to have. Such a file is removed only if the key still has that current
//! version, which shows that the exchange did not happen. Any other file whose record has a later
//! order than its name is left to a person: another program may have put it in place while a
//! gateway crashed. A crash after the exchange leaves the delete marker that was the newest version
//! under that name, and the sweep gives it its name among the old ones.

use std::time::Duration;

use backend::{BackendError, Result, SweepReport};
use kernel_calls::acting::as_self;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::base::options::SweepOptions;
use crate::base::unique;
use crate::error::{Fail, Op, leads_nowhere, retrying, unless_failed};
use crate::facts::chain::{self, Chain, Old};
use crate::facts::place::{self, KeyPlace, Occupant};
use crate::fs::file_info;
use crate::fs::reading::{known_type, read_names};
use crate::fs::removing::is_older;
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, join};
use crate::layout::staged::is_scattered;
use crate::layout::versions::{Entry, Id, Order, VERSIONS, entry_of, name_of, place_of_chain};
use crate::limits::CHAIN_SWEEPS;
use crate::tree::bucket::Bucket;
use crate::tree::lock_wait::WaitBudget;
use crate::write::keep::{self, Present};
use crate::write::{key_lock, leftovers};

/// Sweeps the chains of a bucket, or those whose turn it is.
pub(crate) fn sweep(bucket: &Bucket<'_>, options: &SweepOptions, report: &mut SweepReport) -> Result<()> {
    if bucket.find_for_removal(VERSIONS)?.is_none() {
        return Ok(());
    }
    let turn = (!options.all_chains).then(turn_now);
    let mut paths = vec![VERSIONS.to_owned()];
    while let Some(path) = paths.pop() {
        if WaitBudget::is_over() {
            return Ok(());
        }
        let swept = sweep_directory(bucket, &path, turn, options.staging_age, &mut paths);
        report.staging += unless_failed(&path, swept, report)?.unwrap_or(0);
    }
    Ok(())
}

/// Returns the number of the sweep among those that together sweep all chains.
fn turn_now() -> u64 {
    u64::try_from(file_info::now_ns()).unwrap_or(0) / 3_600_000_000_000 % CHAIN_SWEEPS
}

/// The entries of a chain that may be leftovers.
#[derive(Default)]
struct Suspects {
    /// The newest version of the keys `a` and `a/`, by its name. Older ones were versions before
    /// the current one was published.
    newest: [Option<Entry>; 2],
    nulls: Vec<(bool, Entry)>,
    /// For the keys `a` and `a/`: whether the newest version is a delete marker, by its name.
    markers: [bool; 2],
    staged: Vec<String>,
    is_empty: bool,
}

/// Sweeps one directory, and adds those in it to `paths`. Returns how many leftovers it removed.
fn sweep_directory(
    bucket: &Bucket<'_>,
    path: &str,
    turn: Option<u64>,
    age: Duration,
    paths: &mut Vec<String>,
) -> Result<usize> {
    let directory = match bucket.own_existing(path) {
        Err(errno) if leads_nowhere(errno) => return Ok(0),
        opened => opened.op("open the old versions of a key")?,
    };
    let is_top = path == VERSIONS;
    let suspects = suspects(&directory, |name| {
        let is_due = |turn| unique::hash(name.as_bytes()) % CHAIN_SWEEPS == turn;
        if !is_top || turn.is_none_or(is_due) {
            paths.push(join(path, name));
        }
    })?;
    if is_top {
        return Ok(0);
    }
    if suspects.is_empty {
        remove_if_empty(bucket, path, age);
        return Ok(0);
    }
    let mut removed = 0;
    for name in &suspects.staged {
        removed += usize::from(is_older(&directory, name, age) && remove_staged(bucket, path, name)?);
    }
    let newest = [false, true].into_iter().zip(suspects.newest);
    let newest = newest.filter_map(|(of, entry)| Some((of, entry?)));
    for (of_directory, entry) in newest.chain(suspects.nulls) {
        let name = name_of(of_directory, entry);
        let is_leftover = || chain::is_leftover(bucket, &directory, &name).map_err(Fail::for_good);
        if is_older(&directory, &name, age) && is_leftover()? {
            removed += usize::from(remove_leftover(bucket, path, &name)? == Removed::Done);
        }
    }
    for of_directory in [false, true].into_iter().filter(|of| suspects.markers[usize::from(*of)]) {
        settle_if_old(bucket, &directory, (path, of_directory), age)?;
    }
    Ok(removed)
}

/// Settles the newest delete marker of a key that has a file: the PUT of that file was interrupted.
fn settle_if_old(bucket: &Bucket<'_>, chain: &OwnedFd, of: (&str, bool), age: Duration) -> Result<()> {
    let (path, of_directory) = of;
    let Some(place) = place_of_chain(path, of_directory) else { return Ok(()) };
    if is_older(chain, &name_of(of_directory, Entry::Deleted), age) && has_file(bucket, &place)? {
        settle_marker(bucket, &place)?;
    }
    Ok(())
}

fn suspects(directory: &OwnedFd, mut directories: impl FnMut(&str)) -> Result<Suspects> {
    let mut found = Suspects { is_empty: true, ..Suspects::default() };
    let read = as_self(|| {
        read_names(directory, |name, kind| {
            let Ok(text) = name.to_str() else {
                found.is_empty = false;
                return Ok(true);
            };
            if matches!(text, "." | "..") {
                return Ok(true);
            }
            found.is_empty = false;
            if known_type(directory, name, kind)? == Some(FileType::Directory) {
                directories(text);
            } else if is_scattered(text) {
                found.staged.push(text.to_owned());
            } else if let Some((of_directory, entry)) = entry_of(text) {
                let Entry::Version { order, id } = entry else {
                    found.markers[usize::from(of_directory)] = true;
                    return Ok(true);
                };
                if id == Id::Null {
                    found.nulls.push((of_directory, entry));
                    return Ok(true);
                }
                let newest = &mut found.newest[usize::from(of_directory)];
                if !matches!(newest, Some(Entry::Version { order: newest, id: _ }) if *newest >= order) {
                    *newest = Some(entry);
                }
            }
            Ok(true)
        })
    });
    read.op("read the old versions of a key")?;
    Ok(found)
}

/// The outcome of removing a leftover.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Done,
    /// It is none, or no longer.
    NotOne,
    /// The key does not have the version any more that the file was to replace.
    Unsure,
}

/// Removes a file of the chain at `path` if an interrupted write left it there, and the chain if it
/// is empty then. `path` is relative to `.slipway`.
pub(crate) fn remove_leftover(bucket: &Bucket<'_>, path: &str, name: &str) -> Result<Removed> {
    let Some((of_directory, Entry::Version { order, id })) = entry_of(name) else {
        return Ok(Removed::NotOne);
    };
    let Some(place) = place_of_chain(path, of_directory) else { return Ok(Removed::NotOne) };
    retrying(|| {
        let _lock = key_lock::take_of_key(bucket, &place)?;
        let directory = match bucket.own_existing(path) {
            Err(errno) if leads_nowhere(errno) => return Ok(Removed::NotOne),
            opened => opened.attempt("open the old versions of a key")?,
        };
        if !chain::is_leftover(bucket, &directory, name)? {
            return Ok(Removed::NotOne);
        }
        if !is_current(bucket, &place, order, id)? {
            return Ok(Removed::Unsure);
        }
        match as_self(|| rustix::fs::unlinkat(&directory, name, AtFlags::empty())) {
            Ok(()) => {
                remove_empty(bucket, path);
                Ok(Removed::Done)
            }
            Err(Errno::NOENT) => Ok(Removed::NotOne),
            Err(errno) => Err(errno).attempt("remove a leftover"),
        }
    })
}

/// True if [`remove_leftover`] would remove a leftover with this name, as far as can be seen
/// without a lock.
pub(crate) fn is_sure(bucket: &Bucket<'_>, path: &str, name: &str) -> Result<bool> {
    let Some((of_directory, Entry::Version { order, id })) = entry_of(name) else { return Ok(false) };
    let Some(place) = place_of_chain(path, of_directory) else { return Ok(false) };
    retrying(|| is_current(bucket, &place, order, id))
}

/// True if the file of a key is the version with this order and id.
fn is_current(bucket: &Bucket<'_>, place: &KeyPath, order: Order, id: Id) -> Result<bool, Fail> {
    let Some(found) = key_place(bucket, place)? else { return Ok(false) };
    let present = match Present::look(bucket, &found) {
        // A link has no versions.
        Err(Fail::Storage(BackendError::Obstructed(_))) => return Ok(false),
        present => present?,
    };
    Ok(match present.version() {
        Some(version) => version.order == order && version.id == id,
        // It has no order of its own.
        None => id == Id::Null,
    })
}

/// Returns the place of the file of a key; `None` if it has none.
fn key_place(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Option<KeyPlace>, Fail> {
    let (above, name) =
        if place.directory { (&*place.path, DIRECTORY_DATA) } else { keymap::split(&place.path) };
    let Some(directory) = place::existing_directory(bucket, above)? else { return Ok(None) };
    if !place.directory {
        let found = place::find(bucket, &directory, name, false)?;
        return Ok(found.filter(|found| found.current.is_some()));
    }
    Ok(match place::find_reserved(bucket, &directory, name, false)? {
        Occupant::Object(current) => {
            Some(KeyPlace { directory, name: name.to_owned(), current: Some(current) })
        }
        Occupant::Nothing | Occupant::Directory | Occupant::Obstacle => None,
    })
}

/// The newest version of a key, which is not one of the old ones.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Head {
    /// The file of the key, which has been the current version since this time, in ns.
    File(i128),
    /// The delete marker.
    Marker(Old),
    /// There is none: another program removed the file.
    Nothing,
}

impl Head {
    /// Returns the time since which it is the newest version, in ns.
    pub fn since_ns(self) -> Option<i128> {
        match self {
            Self::File(since) => Some(since),
            Self::Marker(marker) => Some(i128::from(marker.order)),
            Self::Nothing => None,
        }
    }
}

/// Returns the newest version of a key with this chain.
pub(crate) fn head(bucket: &Bucket<'_>, place: &KeyPath, chain: &Chain) -> Result<Head, Fail> {
    if let Some(found) = key_place(bucket, place)? {
        return Ok(Head::File(Present::look(bucket, &found)?.since_ns()));
    }
    Ok(chain.marker(bucket)?.map_or(Head::Nothing, Head::Marker))
}

/// True if a key has a file, beside which its newest delete marker is an old one.
pub(crate) fn has_file(bucket: &Bucket<'_>, place: &KeyPath) -> Result<bool> {
    retrying(|| Ok(key_place(bucket, place)?.is_some()))
}

/// Gives the newest delete marker of a key its name among the old ones, if the key has a file.
/// Returns false if it has none, or no marker.
pub(crate) fn settle_marker(bucket: &Bucket<'_>, place: &KeyPath) -> Result<bool> {
    retrying(|| {
        let _lock = key_lock::take_of_key(bucket, place)?;
        let Some(chain) = Chain::open(bucket, place)? else { return Ok(false) };
        if key_place(bucket, place)?.is_none() || chain.marker(bucket)?.is_none() {
            return Ok(false);
        }
        keep::settle_marker(bucket, &chain)?;
        Ok(true)
    })
}

/// Removes a delete marker that was being written. It is one if it is there while nobody has the
/// lock of either key that shares the chain: whoever writes one holds its lock.
pub(crate) fn remove_staged(bucket: &Bucket<'_>, path: &str, name: &str) -> Result<bool> {
    retrying(|| {
        let mut seen = None;
        for of_directory in [false, true] {
            let Some(place) = place_of_chain(path, of_directory) else { return Ok(false) };
            let _lock = key_lock::take_of_key(bucket, &place)?;
            let directory = match bucket.own_existing(path) {
                Err(errno) if leads_nowhere(errno) => return Ok(false),
                opened => opened.attempt("open the old versions of a key")?,
            };
            let now = match file_info::at(&directory, name) {
                Err(Errno::NOENT) => return Ok(false),
                info => info.attempt("look at a leftover")?.id(),
            };
            if of_directory {
                let removed = seen == Some(now) && leftovers::remove_scattered(bucket, &directory, name)?;
                if removed {
                    remove_empty(bucket, path);
                }
                return Ok(removed);
            }
            seen = Some(now);
        }
        Ok(false)
    })
}

/// Removes the chain at `path`, which is relative to `.slipway`, if it has been empty for `age`,
/// and the directories above it that are empty then. Returns true if it is gone.
pub(crate) fn remove_if_empty(bucket: &Bucket<'_>, path: &str, age: Duration) -> bool {
    let (above, name) = keymap::split(path);
    let is_old = bucket.own_existing(above).is_ok_and(|above| is_older(above, name, age));
    is_old && {
        remove_empty(bucket, path);
        matches!(bucket.own_existing(path), Err(Errno::NOENT))
    }
}

fn remove_empty(bucket: &Bucket<'_>, path: &str) {
    if let Some(path) = path.strip_prefix(VERSIONS).and_then(|path| path.strip_prefix('/')) {
        chain::remove_empty(bucket, path);
    }
}
