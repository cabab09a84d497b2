//! Finds where an object's file is, and what is there now.
//!
//! The object `a` is the file `a`; or, if `a` is a directory (of keys `a/…`, or made by a person),
//! the file `a/.slipway,self`. Both never exist together, since a name is either a file or a
//! directory.

use backend::{BackendError, Result};
use rustix::fd::AsFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use s3_types::{Conditions, ETag, Timestamp};

use super::foreign::{self, VersitygwUse};
use crate::error::{Fail, Io, Op, leads_nowhere};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::files;
use crate::fs::resolve::{self, READ};
use crate::layout::keymap::{SELF, join};
use crate::layout::overflow::OverflowId;
use crate::record::{Attached, DirectoryRecord, Divided, ObjectRecord, Reading};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};

/// The object at a place, which is to be replaced or deleted.
#[derive(Debug)]
pub(crate) struct Current {
    /// The facts that conditions and checks depend on, if they were asked for.
    pub facts: Option<Facts>,
    /// The id of the object's companion, which is removed with it.
    pub overflow: Option<OverflowId>,
}

/// The facts that conditions and checks depend on.
#[derive(Debug)]
pub(crate) struct Facts {
    pub etag: ETag,
    pub last_modified: Timestamp,
    pub size_bytes: u64,
    /// The inode number of the object's file, if such numbers last.
    pub inode: Option<u64>,
    /// The attached half of the object's record, which checks depend on.
    pub attached: Attached,
}

/// A directory and a name in it where an object's file is, or would be.
#[derive(Debug)]
pub(crate) struct KeyPlace {
    pub directory: Directory,
    pub name: String,
    pub current: Option<Current>,
}

/// The kind of thing that has a name in a directory.
pub(crate) enum Occupant {
    Nothing,
    Object(Current),
    Directory,
    /// Something that is not an object and blocks the name: a FIFO, a device, a broken link.
    Obstacle,
}

/// Finds the place of the object `name` in `parent`; `None` if something that is not an object is
/// there. `facts` asks for the facts of the object there, for conditions and checks.
pub(crate) fn find(
    bucket: &Bucket<'_>,
    parent: &Directory,
    name: &str,
    facts: bool,
) -> Result<Option<KeyPlace>, Fail> {
    let key_place = |directory: &Directory, name: &str, current| {
        Ok(Some(KeyPlace { directory: directory.clone(), name: name.to_owned(), current }))
    };
    match look(bucket, parent, name, facts, Links::Followed)? {
        Occupant::Nothing => key_place(parent, name, None),
        Occupant::Object(current) => key_place(parent, name, Some(current)),
        Occupant::Obstacle => Ok(None),
        Occupant::Directory => {
            let path = join(&parent.path, name);
            let directory = bucket.directory(&path).attempt("open a directory")?;
            // The name is a link to it. The object there has a key, and a lock, of its own.
            let linked = directory.path != path;
            match find_reserved(bucket, &directory, SELF, facts)? {
                Occupant::Nothing if linked => Ok(None),
                Occupant::Object(_) if linked => Err(BackendError::OtherName.into()),
                Occupant::Nothing => key_place(&directory, SELF, None),
                Occupant::Object(current) => key_place(&directory, SELF, Some(current)),
                Occupant::Directory | Occupant::Obstacle => Ok(None),
            }
        }
    }
}

/// Looks at a file with one of the server's own names ([`SELF`], `.slipway,dir`) in `directory`.
/// The backend makes no links there, so a link is an obstacle, wherever it leads.
pub(crate) fn find_reserved(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    facts: bool,
) -> Result<Occupant, Fail> {
    look(bucket, directory, name, facts, Links::Refused)
}

/// The treatment of a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    /// Links count as the files that they lead to.
    Followed,
    Refused,
}

fn look(
    bucket: &Bucket<'_>,
    directory: &Directory,
    name: &str,
    facts: bool,
    links: Links,
) -> Result<Occupant, Fail> {
    if !facts {
        // One call for most: only a regular file of ours has a record with a stamp.
        if let Ok(Reading::Known(record)) = records::read::<ObjectRecord>(bucket.store, directory, name)
            && record.content.stamp.is_some()
        {
            return Ok(Occupant::Object(Current { facts: None, overflow: record.overflow }));
        }
    }
    let kind = match file_info::at(directory, name) {
        Ok(info) => info.kind,
        Err(Errno::NOENT) => return Ok(Occupant::Nothing),
        Err(errno) => return Err(errno).attempt("look up a name"),
    };
    let mut path = join(&directory.path, name);
    let opened = match kind {
        FileType::RegularFile => match resolve::plain(directory, name, READ) {
            // A link has taken its place meanwhile.
            Err(errno @ Errno::LOOP) => return Err(Fail::lost_to("open a file", errno)),
            result => result.attempt("open a file")?,
        },
        FileType::Directory => return Ok(Occupant::Directory),
        FileType::Symlink if links == Links::Followed => match bucket.content_at(&path) {
            Ok((file, target)) => {
                path = target;
                file
            }
            Err(Errno::ACCESS) => return Err(Errno::ACCESS).attempt("open a file"),
            Err(_) => return Ok(Occupant::Obstacle),
        },
        _ => return Ok(Occupant::Obstacle),
    };
    let info = file_info::of(&opened).attempt("stat a file")?;
    match info.kind {
        // The target of a link keeps its own companion.
        FileType::RegularFile if kind == FileType::Symlink => {
            Ok(Occupant::Object(Current { overflow: None, ..current(bucket, &path, &opened, info, facts)? }))
        }
        FileType::RegularFile => current(bucket, &path, &opened, info, facts).map(Occupant::Object),
        FileType::Directory => Ok(Occupant::Directory),
        _ => Ok(Occupant::Obstacle),
    }
}

/// Returns the object that is the open file at `path`.
fn current(
    bucket: &Bucket<'_>,
    path: &str,
    file: impl AsFd,
    info: FileInfo,
    facts: bool,
) -> Result<Current, Fail> {
    let record: Reading<ObjectRecord> =
        records::of(bucket.store, &bucket.fd, path, &file).attempt("read a record")?;
    let record = record.opened(|| files::path_of(&bucket.fd).join(path))?;
    let overflow = record.as_ref().and_then(|r| r.overflow);
    if !facts {
        return Ok(Current { facts: None, overflow });
    }
    let attached = match &record {
        Some(record) => attached(bucket, path, record, |record| &record.attached)?,
        None => Attached::none(),
    };
    let shown = bucket.store.lasting(&file, &info);
    let versitygw = VersitygwUse::for_etags(&bucket.store.options);
    let attributes = foreign::attributes_of(&file, record, &shown, path, versitygw);
    let facts = Facts {
        etag: attributes.etag,
        last_modified: attributes.last_modified,
        size_bytes: attributes.size_bytes,
        inode: bucket.store.lasting_inode(&file, &info),
        attached,
    };
    Ok(Current { facts: Some(facts), overflow })
}

/// Returns the attached half of the object with a record that was read from an attribute at `path`.
/// It may be only in the record's companion. If the companion is missing, the attached fields in
/// the attribute still count. `half` returns the attached half of a record.
pub(crate) fn attached<R: Divided + Clone>(
    bucket: &Bucket<'_>,
    path: &str,
    record: &R,
    half: impl Fn(&R) -> &Attached,
) -> Result<Attached, Fail> {
    if record.overflow().is_none() {
        return Ok(half(record).clone());
    }
    let whole = records::complete(bucket, record).attempt("read a record")?;
    let whole = whole.opened(|| files::path_of(&bucket.fd).join(path))?;
    Ok(half(whole.as_ref().unwrap_or(record)).clone())
}

/// Evaluates the conditions of a write or delete, against the present object.
pub(crate) fn check(conditions: &Conditions, current: Option<&Current>) -> Result<()> {
    match current {
        None if conditions.need_existing() => Err(BackendError::NoSuchKey),
        None => Ok(()),
        Some(Current { facts: Some(facts), .. }) => {
            conditions.evaluate_replace(&facts.etag).map_err(BackendError::PreconditionFailed)
        }
        Some(_) => Ok(()),
    }
}

/// Opens the directory above a path's last name; `None` if it does not exist, or is a file.
pub(crate) fn existing_directory(bucket: &Bucket<'_>, path: &str) -> Result<Option<Directory>> {
    match bucket.directory(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(errno) if leads_nowhere(errno) => Ok(None),
        Err(errno) => Err(errno).op("open a directory"),
    }
}

/// Reads the record of an open directory; it is empty if the directory has none, or a damaged one.
pub(crate) fn directory_record(bucket: &Bucket<'_>, directory: impl AsFd) -> Io<Reading<DirectoryRecord>> {
    Ok(match records::of_directory(bucket.store, directory)? {
        Reading::Nothing | Reading::Damaged => Reading::Known(DirectoryRecord::mark(false)),
        reading => reading,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use s3_types::{ETagCondition, ObjectMetadata};

    use super::*;
    use crate::testing::{Scene, digests, many_parts, of_parts};
    use crate::write::publish::Target;
    use crate::{buckets, listing, object};

    /// Records of a newer version; records with a critical field after an ETag, in the present
    /// version and in the first one.
    const NEWER: [&[u8]; 3] =
        [b"\x03held until 2050", b"\x02\x04\x01x\xc1\x04hold", b"\x01\x04\x01x\xc1\x04hold"];
    const DAMAGED: &[u8] = b"\x01\x02\xff";

    fn scene() -> Scene {
        let scene = Scene::new();
        for key in ["a", "both", "both/x", "bytes/"] {
            scene.put(key, b"old").unwrap();
        }
        let nothing = (digests(b""), ObjectMetadata::default(), Attached::none());
        scene.target("d/").publish_empty_directory(&scene.store, nothing).unwrap();
        scene
    }

    /// Keys, and the paths of the files that have their objects' records.
    const RECORDS_OF: [(&str, &str); 3] =
        [("a", "a"), ("both", "both/.slipway,self"), ("bytes/", "bytes/.slipway,dir")];

    fn with(scene: &Scene, key: &str, conditions: Conditions) -> Result<()> {
        let target = Target { conditions, ..scene.target(key) };
        let mut stage = target.stage(&scene.store)?;
        stage.staged.append(&[bytes::Bytes::from_static(b"new")])?;
        let sealed = stage.staged.seal(&stage.bucket, None, ObjectRecord::of_assembly())?;
        target.publish(scene.bucket(), None, sealed).map(drop)
    }

    fn if_match() -> Conditions {
        let tag = ETagCondition::OneOf(vec![digests(b"old").etag]);
        Conditions { if_match: Some(tag), ..Conditions::default() }
    }

    fn is_refused<T: std::fmt::Debug>(what: &str, result: &Result<T>) {
        assert!(matches!(result, Err(BackendError::NewerRecord)), "{what}: {result:?}");
    }

    fn delete(scene: &Scene, key: &str, conditions: Conditions) -> Result<bool> {
        let target = Target { conditions, ..scene.target(key) };
        object::delete(&scene.store, &target, None).map(|receipt| receipt.existed)
    }

    fn keys(scene: &Scene) -> usize {
        let (bucket, prefix) = (scene.name.clone(), String::new());
        let query = listing::Query { bucket, prefix, delimiter: None, start: None, max_items: 10 };
        listing::list(scene, &query).unwrap().items.len()
    }

    /// Not only the sweep does so. With conditions, the object is looked at in another way.
    #[test]
    fn who_replaces_or_deletes_an_object_removes_its_companion() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        let companions = || fs::read_dir(scene.path().join(".slipway/overflow")).unwrap().count();
        for conditions in [Conditions::default(), if_match()] {
            for replaces in [true, false] {
                scene.put_record("a", b"old", of_parts(digests(b"old").etag, many_parts())).unwrap();
                assert_eq!(companions(), 1);
                if replaces {
                    with(&scene, "a", conditions.clone()).unwrap();
                } else {
                    assert!(delete(&scene, "a", conditions.clone()).unwrap());
                }
                assert_eq!(companions(), 0, "{conditions:?}, replaced: {replaces}");
            }
        }
    }

    #[test]
    fn a_record_of_a_newer_version_keeps_its_object() {
        for ((key, path), newer) in RECORDS_OF.into_iter().flat_map(|of| NEWER.map(|newer| (of, newer))) {
            let scene = scene();
            scene.set_raw_record(path, newer);
            is_refused(key, &scene.get(key));
            for conditions in [Conditions::default(), if_match()] {
                is_refused(key, &with(&scene, key, conditions.clone()));
                is_refused(key, &delete(&scene, key, conditions));
            }
            assert_eq!(fs::read(scene.path().join(path)).unwrap(), b"old");
            // It keeps no listing, and nothing else.
            assert_eq!(keys(&scene), 5);
            scene.put("both/x", b"new").unwrap();
            assert!(delete(&scene, "both/x", Conditions::default()).unwrap());
            scene.set_raw_record(path, DAMAGED);
            scene.put(key, b"new").unwrap();
        }
    }

    #[test]
    fn so_does_that_of_a_directory() {
        NEWER.into_iter().for_each(a_directory_is_kept);
    }

    fn a_directory_is_kept(newer: &[u8]) {
        let scene = scene();
        scene.set_raw_record("d", newer);
        is_refused("get", &scene.get("d/"));
        is_refused("put", &scene.put("d/", b"new"));
        let nothing = (digests(b""), ObjectMetadata::default(), Attached::none());
        is_refused("put", &scene.target("d/").publish_empty_directory(&scene.store, nothing));
        is_refused("delete", &delete(&scene, "d/", Conditions::default()));
        // What is below it is another object.
        scene.put("d/x", b"1").unwrap();
        assert!(delete(&scene, "d/x", Conditions::default()).unwrap());
        for key in ["a", "both", "both/x", "bytes/"] {
            assert!(delete(&scene, key, Conditions::default()).unwrap());
        }
        let deleted = buckets::delete(&scene.store, &scene.name);
        assert!(matches!(deleted, Err(BackendError::BucketNotEmpty)), "{deleted:?}");
        assert!(scene.path().join("d").is_dir());
    }

    /// A damaged record of the present version holds nothing that must be obeyed: this version
    /// knows all fields that it could have had.
    #[test]
    fn a_damaged_record_makes_a_foreign_file() {
        for (key, path) in RECORDS_OF {
            let scene = scene();
            scene.set_raw_record(path, DAMAGED);
            assert_eq!(scene.get(key).unwrap(), b"old");
            for refused in [with(&scene, key, if_match()), delete(&scene, key, if_match()).map(drop)] {
                assert!(matches!(refused, Err(BackendError::PreconditionFailed(_))), "{key} {refused:?}");
            }
            scene.put(key, b"new").unwrap();
            assert_eq!(scene.get(key).unwrap(), b"new");
            scene.set_raw_record(path, DAMAGED);
            assert!(delete(&scene, key, Conditions::default()).unwrap());
        }
    }
}
