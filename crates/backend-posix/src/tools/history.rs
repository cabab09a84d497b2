//! The versions of a key, for `slipway stat`.

use std::path::{Path, PathBuf};

use backend::Result;
use s3_types::Tags;

use super::locate::{Located, locate};
use crate::base::options::Options;
use crate::error::{Fail, Op};
use crate::facts::chain::{Chain, Old};
use crate::facts::place;
use crate::fs::file_info::FileInfo;
use crate::layout::keymap::{self, KeyPath, OWN_DIRECTORY, join};
use crate::layout::versions::{Entry, Id, entry_of, place_of_chain};
use crate::record::{ObjectRecord, Version};
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// A version of a key, or a delete marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyVersion {
    /// The id, as S3 shows it.
    pub id: String,
    /// Its place among the versions of the key: the time at which it became the current one, in ns
    /// since 1970, or a later number. `None` for a file of another program, which has none yet.
    pub order: Option<u64>,
    /// The size; `None` for a delete marker.
    pub size_bytes: Option<u64>,
    /// The tags.
    pub tags: Tags,
    /// The path of the file, relative to the bucket.
    pub path: String,
}

/// Returns the key whose old version has this path, which is relative to the bucket; `None` for
/// other paths.
pub(super) fn key_of_old(path: &str) -> Option<String> {
    let (above, name) = keymap::split(path.strip_prefix(OWN_DIRECTORY)?.strip_prefix('/')?);
    let (of_directory, _) = entry_of(name)?;
    place_of_chain(above, of_directory).map(|place| place.key)
}

/// Returns the version that a record says.
pub(super) fn id_of(version: Option<Version>) -> String {
    version.and_then(Version::text).map_or_else(|| "null".to_owned(), |id| id.as_str().to_owned())
}

/// Returns the old versions and the delete markers of a key, from the newest to the oldest.
/// `current` is what the record of the key's file says, if it has a file.
#[expect(clippy::option_option, reason = "no file, or a file without a version")]
pub(super) fn old_versions(
    located: &Located,
    key: &str,
    current: Option<Option<Version>>,
) -> Result<Vec<KeyVersion>, String> {
    let Some(name) = &located.bucket else { return Ok(Vec::new()) };
    let store = Store::attach(&located.root, Options::default()).map_err(|error| error.to_string())?;
    let bucket = store.bucket(name).map_err(|error| error.to_string())?;
    let id = current.map(|version| version.map_or(Id::Null, |version| version.id));
    let found = of_chain(&bucket, &KeyPath::of(key), id).map_err(Fail::for_good);
    found.map_err(|error| format!("its old versions cannot be read: {error}"))
}

fn of_chain(bucket: &Bucket<'_>, place: &KeyPath, current: Option<Id>) -> Result<Vec<KeyVersion>, Fail> {
    let Some(chain) = Chain::open(bucket, place)? else { return Ok(Vec::new()) };
    let marker = chain.marker(bucket)?.map(|marker| (marker, Entry::Deleted));
    let olds = chain.olds().attempt("read the old versions of a key")?;
    let mut found: Vec<(u64, KeyVersion)> = Vec::new();
    for (old, entry) in marker.into_iter().chain(olds.into_iter().map(|old| (old, old.entry()))) {
        if let Some((record, info)) = chain.record(bucket, entry)? {
            let path = join(&chain.directory.path, &chain.name(entry));
            found.push((old.order, of_file(bucket, path, old.beside(current), &record, &info)?));
        }
    }
    // A marker beside a file is among the old ones.
    found.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
    Ok(found.into_iter().map(|(_, version)| version).collect())
}

fn of_file(
    bucket: &Bucket<'_>,
    path: String,
    old: Old,
    record: &ObjectRecord,
    info: &FileInfo,
) -> Result<KeyVersion, Fail> {
    let is_marker = record.version.is_some_and(|version| version.is_marker);
    let tags = place::attached(bucket, &path, record, |record| &record.attached)?.tags;
    Ok(KeyVersion {
        id: id_of(Some(old.version(is_marker))),
        order: Some(old.order),
        size_bytes: (!is_marker).then_some(info.stamp.size_bytes),
        tags,
        path,
    })
}

/// Returns the place of a path that does not exist, below the nearest directory that does; `None`
/// if that is in no bucket of a tree.
pub(super) fn place_of_missing(path: &Path, tree: Option<&Path>) -> Option<Located> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for above in path.ancestors() {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if above.symlink_metadata().is_err() {
            missing.push(above.file_name()?.into());
            continue;
        }
        let located = locate(above, tree).ok().filter(|at| at.bucket.is_some())?;
        let names = missing.iter().rev().map(|name| name.to_str());
        let path = names.into_iter().try_fold(located.path.clone(), |path, name| Some(join(&path, name?)))?;
        return (!missing.is_empty()).then_some(Located { path, ..located });
    }
    None
}
