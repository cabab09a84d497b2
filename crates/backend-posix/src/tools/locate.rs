//! Finds the tree and the bucket that a path belongs to.
//!
//! Nothing marks a directory as one that is served; that is intended. But nearly every tree has a
//! trace of a gateway: a bucket that was created or written to through S3 has a record or a
//! `.slipway`, and a root that was served has an account. Where there is no trace, the user is
//! asked: with a wrong guess, a lock in the wrong bucket would exclude nobody.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode};
use s3_types::BucketName;

use crate::fs::resolve::DIRECTORY;
use crate::layout::keymap::{OWN_DIRECTORY, join};
use crate::layout::tree::METADATA;
use crate::record::{self, DirectoryRecord, Reading};

/// A path in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The directory that is served.
    pub root: PathBuf,
    /// The bucket; `None` for the root itself.
    pub bucket: Option<BucketName>,
    /// The path relative to the bucket; "" for the bucket itself.
    pub path: String,
}

/// The reason why a path could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The path can't be reached.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path that was asked for.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// The path has a name that is not UTF-8, so that no key has it.
    #[error("{}: its name is not UTF-8, so that no key can lead to it", .0.display())]
    NotText(PathBuf),
    /// There is no trace of a gateway.
    #[error("{}: it is not in a directory that a gateway is known to have served: name that directory with --tree", .0.display())]
    Unknown(PathBuf),
    /// The path is not below the tree that was named.
    #[error("{}: it is not inside {}", path.display(), root.display())]
    Outside {
        /// The path that was asked for.
        path: PathBuf,
        /// The tree.
        root: PathBuf,
    },
    /// The path is in the tree, but not in a bucket.
    #[error("{}: it is not in a bucket: {name:?} is not a valid name of a bucket", path.display())]
    NoBucket {
        /// The path that was asked for.
        path: PathBuf,
        /// The name in the root, where a bucket's name is expected.
        name: String,
    },
}

/// Finds the place of `path`, in the tree at `tree` if that is given. Symbolic links are resolved.
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

/// Fails with a sentence if `directory` is inside a tree: a tool that takes it for a root would
/// find nothing there. A directory that was served is a tree of its own, wherever it is.
pub fn refuse_part_of_tree(directory: &Path) -> Result<(), String> {
    let Ok(place) = directory.canonicalize() else { return Ok(()) };
    let Some(root) = find_root(&place).filter(|root| *root != place && !was_served(&place)) else {
        return Ok(());
    };
    let inside = place.strip_prefix(&root).unwrap_or(&place);
    let bucket = inside.iter().next();
    if let Some(name) = inside.to_str().filter(|name| BucketName::new(name).is_ok()) {
        return Err(format!(
            "{}: this is the bucket \"{name}\" of the directory {1}: give {1} (and to fsck `--bucket {name}`)",
            directory.display(),
            root.display()
        ));
    }
    Err(format!(
        "{}: this is not the directory that is served, but lies in its bucket or entry \"{}\": give {}",
        directory.display(),
        bucket.unwrap_or_default().display(),
        root.display()
    ))
}

/// False if `root` has directories, but none with a trace of a gateway. Nothing else distinguishes
/// a tree that is served from other directories.
pub fn may_be_served(root: &Path) -> bool {
    let Ok(children) = std::fs::read_dir(root) else { return true };
    let paths: Vec<_> = children.flatten().map(|child| child.path()).filter(|path| path.is_dir()).collect();
    paths.is_empty() || paths.iter().any(|path| path.ends_with(OWN_DIRECTORY) || is_bucket(path))
}

/// The outermost directory that is a tree's root or has a bucket: `place`, or one above it. Whoever
/// may write to a bucket can make anything below it, including traces of a gateway, but nothing
/// above it.
fn find_root(place: &Path) -> Option<PathBuf> {
    let root_at = |directory: &Path| {
        let above = directory.parent();
        if let Some(above) = above.filter(|above| is_bucket(directory) && is_credible(above, directory)) {
            return Some(above.to_owned());
        }
        was_served(directory).then(|| directory.to_owned())
    };
    if let Some(root) = place.ancestors().filter_map(root_at).last() {
        return Some(root);
    }
    let children = std::fs::read_dir(place).ok()?;
    // A link to a bucket makes no tree of the directory that it is in.
    let directory = |child: &std::fs::DirEntry| child.file_type().is_ok_and(|kind| kind.is_dir());
    let found = children.flatten().any(|child| directory(&child) && is_bucket(&child.path()));
    found.then(|| place.to_owned())
}

/// True for the root of a tree that was served.
fn was_served(directory: &Path) -> bool {
    let own = directory.join(OWN_DIRECTORY);
    let names = ["account.toml", "credentials.toml", METADATA];
    names.map(|name| own.join(name)).iter().any(|path| path.exists() && is_credible(directory, path))
}

/// False if the trace in `root` was made by another user in a directory where anyone may write
/// (`/tmp`).
fn is_credible(root: &Path, trace: &Path) -> bool {
    let open_to_all = std::fs::metadata(root).is_ok_and(|root| root.mode() & 0o002 != 0);
    let own = |uid| uid == 0 || uid == rustix::process::geteuid().as_raw();
    !open_to_all || std::fs::symlink_metadata(trace).is_ok_and(|trace| own(trace.uid()))
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
        .and_then(record::peek::<DirectoryRecord>)
        .ok()
        .and_then(Reading::known)
        .is_some_and(|record| record.time_ns.is_some() && !record.object && !record.made)
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
    fn a_part_of_a_tree_is_no_root() {
        let scene = Scene::new();
        scene.put("a/b", b"1").unwrap();
        let root = scene.path().parent().unwrap().canonicalize().unwrap();
        let told = refuse_part_of_tree(&scene.path()).unwrap_err();
        assert!(told.contains("this is the bucket \"bucket\" of the directory "), "{told}");
        assert!(told.ends_with("(and to fsck `--bucket bucket`)"), "{told}");
        for part in [scene.path().join("a"), scene.path().join(".slipway")] {
            let told = refuse_part_of_tree(&part).unwrap_err();
            assert!(told.ends_with(&format!("entry \"bucket\": give {}", root.display())), "{told}");
        }
        assert_eq!(refuse_part_of_tree(&root), Ok(()));
        assert_eq!(refuse_part_of_tree(&root.join("gone")), Ok(()));
        // Another tree, in a bucket of this one.
        fs::create_dir_all(scene.path().join("a/.slipway")).unwrap();
        fs::write(scene.path().join("a/.slipway/account.toml"), "").unwrap();
        assert_eq!(refuse_part_of_tree(&scene.path().join("a")), Ok(()));
    }

    /// A user who may write to a bucket can make traces of a gateway in it; they do not count.
    #[test]
    fn a_trace_that_is_planted_in_a_bucket_leads_nowhere_else() {
        let scene = Scene::new();
        scene.put("a/b", b"1").unwrap();
        fs::create_dir_all(scene.path().join("a/.slipway/locks")).unwrap();
        for name in ["metadata", "credentials.toml"] {
            fs::write(scene.path().join("a/.slipway").join(name), "").unwrap();
        }
        let root = scene.path().parent().unwrap().canonicalize().unwrap();
        let located = locate(&scene.path().join("a/b"), None).unwrap();
        assert_eq!(located, Located { root, bucket: Some(scene.name.clone()), path: "a/b".into() });
    }

    /// A trace of another user in a directory where all may write, such as `/tmp`, does not count.
    /// Needs root, to change owners.
    #[test]
    fn a_trace_of_someone_else_where_all_may_write_is_none() {
        let shared = tempfile::tempdir().unwrap();
        fs::set_permissions(shared.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        let marker = shared.path().join(".slipway/metadata");
        fs::create_dir_all(shared.path().join(".slipway")).unwrap();
        fs::write(&marker, "").unwrap();
        assert!(is_credible(shared.path(), &marker));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&marker, Some(12345), None).unwrap();
            assert!(!is_credible(shared.path(), &marker));
            assert_eq!(find_root(&shared.path().join("x")), None);
        }
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
