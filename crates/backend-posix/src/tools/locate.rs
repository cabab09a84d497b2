//! Which tree and bucket a path belongs to.
//!
//! Nothing marks a directory as one that is served: that is the point of it. But nearly every tree has a trace of a gateway.
//! A bucket that was created or written to through S3 has a record or a `.slipway`, and a root where keys were made has them.
//! Where there is no trace, we ask rather than guess: a lock in the wrong bucket would exclude no one.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode};
use s3_types::BucketName;

use crate::bucket::join;
use crate::keymap::OWN_DIRECTORY;
use crate::record;
use crate::resolve::DIRECTORY;
use crate::store::METADATA;

/// A path in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The directory that is served.
    pub root: PathBuf,
    /// The bucket; `None` for the root itself.
    pub bucket: Option<BucketName>,
    /// Relative to the bucket; "" for the bucket itself.
    pub path: String,
}

/// Why a path could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// It can't be reached.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was asked for.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No key has it.
    #[error("{}: its name is not UTF-8, so no key leads there", .0.display())]
    NotText(PathBuf),
    /// There is no trace of a gateway.
    #[error("{}: in no tree that a gateway has left a trace in; say with --tree which directory is served", .0.display())]
    Unknown(PathBuf),
    /// It is not below the tree that was named.
    #[error("{}: not in {}", path.display(), root.display())]
    Outside {
        /// What was asked for.
        path: PathBuf,
        /// The tree.
        root: PathBuf,
    },
    /// It is in the tree, but in no bucket.
    #[error("{}: in no bucket: {name:?} is no bucket's name", path.display())]
    NoBucket {
        /// What was asked for.
        path: PathBuf,
        /// What stands in a bucket's place.
        name: String,
    },
}

/// Places `path`, in the tree at `tree` if that is given. Symbolic links are resolved.
pub fn locate(path: &Path, tree: Option<&Path>) -> Result<Located, LocateError> {
    let real =
        |path: &Path| path.canonicalize().map_err(|source| LocateError::Io { path: path.to_owned(), source });
    let place = real(path)?;
    let root = match tree {
        Some(tree) => real(tree)?,
        None => find_root(&place).ok_or_else(|| LocateError::Unknown(path.to_owned()))?,
    };
    let inside = place
        .strip_prefix(&root)
        .map_err(|_| LocateError::Outside { path: path.to_owned(), root: root.clone() })?;
    let mut names = inside.iter().map(OsStr::to_str);
    let not_text = || LocateError::NotText(path.to_owned());
    let bucket = match names.next() {
        None => None,
        Some(name) => {
            let name = name.ok_or_else(not_text)?;
            let bucket = BucketName::new(name);
            Some(bucket.map_err(|_| LocateError::NoBucket { path: path.to_owned(), name: name.to_owned() })?)
        }
    };
    let path = names.try_fold(String::new(), |path, name| name.map(|name| join(&path, name)));
    Ok(Located { path: path.ok_or_else(not_text)?, root, bucket })
}

/// The nearest directory above `place`, or itself, that is a tree's root or has a bucket.
fn find_root(place: &Path) -> Option<PathBuf> {
    for directory in place.ancestors() {
        if ["credentials.toml", METADATA].iter().any(|name| directory.join(OWN_DIRECTORY).join(name).exists())
        {
            return Some(directory.to_owned());
        }
        if is_bucket(directory) {
            return directory.parent().map(Path::to_owned);
        }
    }
    let children = std::fs::read_dir(place).ok()?;
    let found = children.flatten().any(|child| is_bucket(&child.path()));
    found.then(|| place.to_owned())
}

fn is_bucket(directory: &Path) -> bool {
    let name = directory.file_name().and_then(OsStr::to_str);
    if name.is_none_or(|name| BucketName::new(name).is_err()) {
        return false;
    }
    let own = directory.join(OWN_DIRECTORY);
    if ["locks", "staging", "uploads", "completed", "overflow"].iter().any(|name| own.join(name).is_dir()) {
        return true;
    }
    let opened = rustix::fs::openat(CWD, directory, DIRECTORY, Mode::empty());
    // A directory object has a time too.
    opened
        .and_then(record::peek)
        .ok()
        .flatten()
        .is_some_and(|record| record.time_ns.is_some() && !record.directory_object && !record.directory_made)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::Scene;

    #[test]
    fn traces_are_found_from_above_and_below() {
        let scene = Scene::new();
        scene.put("a/b", b"1").unwrap();
        let root = scene.path().parent().unwrap().canonicalize().unwrap();
        let bucket = Some(scene.name.clone());
        let at = |path: &str| locate(&scene.path().join(path), None).unwrap();
        assert_eq!(at("a/b"), Located { root: root.clone(), bucket: bucket.clone(), path: "a/b".into() });
        assert_eq!(at(""), Located { root: root.clone(), bucket, path: String::new() });
        assert_eq!(at(".."), Located { root, bucket: None, path: String::new() });
    }

    #[test]
    fn without_a_trace_it_has_to_be_told() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("bucket/a")).unwrap();
        fs::create_dir(root.path().join("No Bucket")).unwrap();
        let file = root.path().join("bucket/a/b");
        fs::write(&file, "1").unwrap();
        assert!(matches!(locate(&file, None), Err(LocateError::Unknown(_))));
        assert_eq!(locate(&file, Some(root.path())).unwrap().path, "a/b");
        assert!(matches!(
            locate(&root.path().join("No Bucket"), Some(root.path())),
            Err(LocateError::NoBucket { .. })
        ));
        assert!(matches!(
            locate(root.path(), Some(&root.path().join("bucket"))),
            Err(LocateError::Outside { .. })
        ));
        // Where root's keys were made.
        fs::create_dir(root.path().join(".slipway")).unwrap();
        fs::write(root.path().join(".slipway/credentials.toml"), "").unwrap();
        assert_eq!(locate(&file, None).unwrap().path, "a/b");
    }
}
