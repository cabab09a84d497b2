//! Inspects files and directories: how S3 sees them, and their records.

use std::path::{Path, PathBuf};

use backend::ObjectAttributes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode};
use s3_types::{BucketName, Tags};

use super::history::{self, KeyVersion};
use super::link::{self, Link, LocatedLink};
use super::locate::{self, LocateError, Located};
use crate::base::options::{Metadata, Options};
use crate::error::leads_nowhere;
use crate::facts::foreign::{self, VersitygwUse};
use crate::facts::versitygw::{Attributes, Source};
use crate::fs::file_info::{self, FileInfo, FileStamp};
use crate::fs::resolve::{self, PLACE, READ};
use crate::layout::keymap::{self, DIRECTORY_DATA, SELF};
use crate::layout::overflow::{self, OverflowId};
use crate::record::{self, DirectoryRecord, Divided, ObjectRecord, Raw, Version};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::volume::description::Volume;

/// A file or directory, as S3 sees it.
#[derive(Debug)]
pub struct Inspection {
    /// The path as the user gave it.
    pub path: PathBuf,
    /// The tree and the bucket that it is in, if they are known.
    pub place: Option<(PathBuf, BucketName)>,
    /// The key that leads here, if one does and the bucket is known.
    pub key: Option<String>,
    /// Whether it is a file or a directory.
    pub kind: Kind,
    /// Its size and time.
    pub stamp: FileStamp,
    /// The role that it has in S3, and whether its record describes it.
    pub standing: Standing,
    /// The attributes that S3 shows, if it is an object.
    pub attributes: Option<ObjectAttributes>,
    /// The tags of the object.
    pub tags: Tags,
    /// The version that its record says, if it says one.
    pub version: Option<KeyVersion>,
    /// The old versions and the delete markers of its key, from the newest to the oldest.
    pub versions: Vec<KeyVersion>,
    /// The upload that made it, if one did.
    pub upload_id: Option<String>,
    /// The record, as it is kept.
    pub record: Option<StoredRecord>,
    /// True if versitygw made it, and it was not imported yet.
    pub versitygw: bool,
    /// The symbolic link, if this is one; all other fields then describe its target, if S3 follows
    /// it. If a directory of the path is a link that S3 does not follow, it is that link.
    pub link: Option<Link>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else, which cannot be an object.
    Other,
}

/// The role that an entry has in S3, as its record shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// An object that the record describes.
    Recorded,
    /// A file that was made without S3: it has no record.
    NoRecord,
    /// A file whose record can't be read.
    Unreadable {
        /// True if a newer version wrote the record.
        newer: bool,
    },
    /// A file that was changed since its record was written.
    Changed {
        /// Its size differs.
        size: bool,
        /// Its mtime differs.
        modified: bool,
    },
    /// A file whose record has no ETag or no stamp: it tells nothing of the bytes, and may have
    /// been made for the tags of a foreign file.
    NotAnObjects,
    /// A bucket.
    Bucket,
    /// A directory that is not an object.
    Directory {
        /// True if a PUT made it, so that it is removed with its last object.
        made: bool,
    },
    /// An old version of an object, or a delete marker, in the bucket's own directory.
    OldVersion,
    /// The key has no file, but old versions or a delete marker.
    Deleted,
    /// A file that no key leads to, and the reason.
    NotShown(&'static str),
    /// A symbolic link that S3 does not follow, or an entry that is reached through one.
    LinkNotFollowed,
    /// An entry that is not in a tree known to be served by a gateway.
    InNoTree,
    /// Neither a file nor a directory.
    Other,
}

impl Standing {
    /// True for foreign files.
    pub const fn is_foreign(self) -> bool {
        matches!(self, Self::NoRecord | Self::Unreadable { .. } | Self::Changed { .. } | Self::NotAnObjects)
    }
}

/// A record, as it is kept.
#[derive(Debug)]
pub struct StoredRecord {
    /// Size of the attribute, or of the record in its sidecar.
    pub bytes: usize,
    /// True if it is in a file beside the object's, not in an attribute.
    pub sidecar: bool,
    /// The size and time of the file that it describes.
    pub stamp: Option<FileStamp>,
    /// The file with the rest of the record, if the attribute does not hold the whole record.
    pub companion: Option<Companion>,
}

/// The file with the rest of a record.
#[derive(Debug)]
pub struct Companion {
    /// The path of the file, relative to the bucket.
    pub path: String,
    /// The size of the file; `None` if it is missing, or can't be looked for because the bucket is
    /// not known.
    pub size_bytes: Option<u64>,
    /// True if the file was found and belongs to this object.
    pub matches: bool,
}

/// Inspects `path`. For a directory, also inspects the files in it that hold its own bytes and
/// those of the object of its name. Changes nothing. The error is a sentence.
pub fn inspect(path: &Path, tree: Option<&Path>) -> Result<Vec<Inspection>, String> {
    if path.to_str().is_none() {
        return Err(LocateError::NotText(path.to_owned()).to_string());
    }
    if let Some(deleted) = inspect_missing(path, tree)? {
        return Ok(vec![deleted]);
    }
    if let Some(found) = link::refused_on_the_way(path, tree)? {
        return Ok(vec![behind(path, found)]);
    }
    if let Some(found) = link::find(path, tree)? {
        return Ok(vec![inspect_link(path, found)?]);
    }
    let located = match locate::locate(path, tree) {
        Ok(located) => Some(located),
        Err(LocateError::Unknown(_)) => None,
        Err(error) => return Err(error.to_string()),
    };
    let mut found = vec![inspect_one(path, located.as_ref(), None)?];
    if found[0].kind == Kind::Directory && found[0].standing != Standing::Bucket {
        for name in [SELF, DIRECTORY_DATA] {
            let located =
                located.as_ref().map(|at| Located { path: format!("{}/{name}", at.path), ..at.clone() });
            let inside = path.join(name);
            if inside.is_file() {
                found.push(inspect_one(&inside, located.as_ref(), None)?);
            }
        }
    }
    Ok(found)
}

/// Returns what S3 knows of a path without a file: the versions of its key, if it has any.
fn inspect_missing(path: &Path, tree: Option<&Path>) -> Result<Option<Inspection>, String> {
    if path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    let Some(located) = history::place_of_missing(path, tree) else { return Ok(None) };
    let Some(key) = keymap::key_of_file(&located.path) else { return Ok(None) };
    let versions = history::old_versions(&located, &key, None)?;
    Ok((!versions.is_empty()).then(|| Inspection {
        standing: Standing::Deleted,
        key: Some(key),
        versions,
        ..nothing_of(path, Some(&located))
    }))
}

/// Inspects the target of a link, if S3 follows the link.
fn inspect_link(path: &Path, found: LocatedLink) -> Result<Inspection, String> {
    let LocatedLink { link, at, leads_to: Some(leads_to) } = found else { return Ok(behind(path, found)) };
    let bucket = leads_to.bucket.as_ref().map_or("", BucketName::as_str);
    let target = leads_to.root.join(bucket).join(&leads_to.path);
    let inspection = inspect_one(&target, Some(&leads_to), Some(&at))?;
    Ok(Inspection { path: path.to_owned(), link: Some(link), ..inspection })
}

/// The result for an entry that S3 does not see because a link is on the way to it.
fn behind(path: &Path, found: LocatedLink) -> Inspection {
    Inspection {
        standing: Standing::LinkNotFollowed,
        link: Some(found.link),
        ..nothing_of(path, Some(&found.at))
    }
}

/// An empty result, for an entry of which nothing is known yet.
fn nothing_of(path: &Path, located: Option<&Located>) -> Inspection {
    Inspection {
        path: path.to_owned(),
        place: located.and_then(|at| Some((at.root.clone(), at.bucket.clone()?))),
        key: None,
        kind: Kind::Other,
        stamp: FileStamp { size_bytes: 0, modified_ns: 0 },
        standing: Standing::Other,
        attributes: None,
        tags: Tags::default(),
        version: None,
        versions: Vec::new(),
        upload_id: None,
        record: None,
        versitygw: false,
        link: None,
    }
}

/// Inspects one file or directory. `named` is the place of the link by which S3 knows it, if that
/// is elsewhere.
fn inspect_one(
    path: &Path,
    located: Option<&Located>,
    named: Option<&Located>,
) -> Result<Inspection, String> {
    let says = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let place = rustix::fs::openat(CWD, path, PLACE, Mode::empty());
    let again = || rustix::fs::openat(CWD, path, READ, Mode::empty());
    let opened = match place.and_then(|place| resolve::reopen(&place, again)) {
        Err(errno) if leads_nowhere(errno) && path.exists() => None,
        result => Some(result.map_err(|e| says(&e))?),
    };
    let mut inspection = nothing_of(path, located);
    let Some(file) = opened else { return Ok(inspection) };
    let info = file_info::of(&file).map_err(|e| says(&e))?;
    inspection.stamp = info.stamp;
    inspection.kind = match info.kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        _ => return Ok(inspection),
    };
    if inspection.kind == Kind::File && located.is_some_and(|at| at.path.is_empty()) {
        inspection.standing = Standing::NotShown("it is beside the buckets, but not a directory");
        inspection.place = None;
        return Ok(inspection);
    }
    inspection.key =
        named.or(located).filter(|at| at.bucket.is_some()).and_then(|at| match inspection.kind {
            Kind::Directory => keymap::key_of_directory(&at.path),
            _ => keymap::key_of_file(&at.path),
        });
    fill(&mut inspection, &file, info, located).map_err(|e| says(&e))?;
    Ok(inspection)
}

fn fill(
    inspection: &mut Inspection,
    file: &OwnedFd,
    info: FileInfo,
    located: Option<&Located>,
) -> Result<(), Box<dyn std::error::Error>> {
    let in_bucket = located.filter(|at| at.bucket.is_some());
    if inspection.kind == Kind::Directory {
        let record = stored::<DirectoryRecord>(inspection, file, located)?;
        inspection.standing = standing_of_directory(&record, located);
        let record = record.record();
        inspection.tags = record.as_ref().map_or(Tags::default(), |record| record.attached.tags.clone());
        inspection.attributes = record.and_then(|record| record.attributes());
    } else {
        let record = stored::<ObjectRecord>(inspection, file, located)?;
        inspection.standing = standing(inspection, &record);
        let record = record.record();
        inspection.tags = record.as_ref().map_or(Tags::default(), |record| record.attached.tags.clone());
        inspection.upload_id = record.as_ref().and_then(|record| record.upload_id.clone());
        let version = record.as_ref().and_then(|record| record.version);
        fill_versions(inspection, version, in_bucket)?;
        let name = inspection.path.to_string_lossy();
        let key = inspection.key.as_deref().unwrap_or(&name);
        let lasts = Volume::of(file).is_ok_and(|volume| volume.inodes_last);
        let shown = FileInfo { inode: if lasts { info.inode } else { 0 }, ..info };
        inspection.attributes =
            Some(foreign::attributes_of(file, record, &shown, key, VersitygwUse::Metadata));
    }
    if located.is_none() {
        // A record that came along with a moved file is still shown as what it is.
        (inspection.standing, inspection.attributes) = (Standing::InNoTree, None);
        return Ok(());
    }
    let hidden = in_bucket.and_then(|at| keymap::hidden_because(&at.path));
    let own = |at: &Located| at.path.split('/').any(keymap::is_of_file_system);
    if let Some(key) = in_bucket.and_then(|at| history::key_of_old(&at.path)) {
        (inspection.key, inspection.standing) = (Some(key), Standing::OldVersion);
        return Ok(());
    }
    if let Some(why) = hidden.filter(|_| inspection.kind == Kind::File || located.is_some_and(own)) {
        (inspection.key, inspection.attributes) = (None, None);
        inspection.standing = Standing::NotShown(why);
    }
    Ok(())
}

/// Adds the version of a file, and the old versions of its key.
fn fill_versions(
    inspection: &mut Inspection,
    version: Option<Version>,
    in_bucket: Option<&Located>,
) -> Result<(), String> {
    let Some(at) = in_bucket else { return Ok(()) };
    let size_bytes = version.is_none_or(|version| !version.is_marker).then_some(inspection.stamp.size_bytes);
    let of_file = |version: Option<Version>| KeyVersion {
        id: history::id_of(version),
        order: version.map(|version| version.order),
        size_bytes,
        tags: inspection.tags.clone(),
        path: at.path.clone(),
    };
    if let Some(key) = &inspection.key {
        inspection.versions = history::old_versions(at, key, Some(version))?;
    }
    // Where no versions are kept, a file without one says nothing of versions.
    if version.is_some() || !inspection.versions.is_empty() {
        inspection.version = Some(of_file(version));
    }
    Ok(())
}

/// Reads the record, with the rest of it that is in an overflow file if there is one, and adds to
/// `inspection` where they are stored.
fn stored<R: Divided + Clone>(
    inspection: &mut Inspection,
    file: &OwnedFd,
    located: Option<&Located>,
) -> Result<Raw<R>, Box<dyn std::error::Error>> {
    let (raw, sidecar) = raw_record::<R>(inspection, file, located)?;
    inspection.versitygw =
        matches!(raw, Raw::Absent) && Attributes::read(&Source::File(file.as_fd()))?.is_some();
    let stored = |stamp, companion| {
        let bytes = raw.bytes().map(<[u8]>::len);
        bytes.map(|bytes| StoredRecord { bytes, sidecar, stamp, companion })
    };
    let Raw::Known(_, record) = &raw else {
        inspection.record = stored(None, None);
        return Ok(raw);
    };
    let (mut told, mut whole) = (None, None);
    if let Some(id) = record.overflow() {
        let in_bucket = located.filter(|at| at.bucket.is_some());
        let (companion, found) = companion(in_bucket, id, &**record)?;
        (told, whole) = (Some(companion), found);
    }
    inspection.record = stored(record.stamp(), told);
    Ok(match (raw, whole) {
        (Raw::Known(bytes, _), Some(whole)) => Raw::Known(bytes, Box::new(whole)),
        (raw, _) => raw,
    })
}

/// Reads a record from the place where the tree keeps records; also returns whether that is a file
/// of its own.
fn raw_record<R: record::Kind>(
    inspection: &Inspection,
    file: &OwnedFd,
    located: Option<&Located>,
) -> Result<(Raw<R>, bool), Box<dyn std::error::Error>> {
    let Some(located) = located.filter(|at| at.bucket.is_some()) else {
        return Ok((record::raw_attribute(file)?.into(), false));
    };
    let store = Store::attach(&located.root, Options::default())?;
    if inspection.kind == Kind::Directory {
        return Ok((records::raw_of_directory(&store, file)?, store.metadata() == Metadata::Sidecar));
    }
    let bucket = located.bucket.as_ref().map(|name| store.bucket(name)).transpose()?;
    let Some(bucket) = bucket else { return Ok((Raw::Absent, false)) };
    Ok((records::raw_of(&store, &bucket.fd, &located.path, file)?, store.metadata() == Metadata::Sidecar))
}

fn standing_of_directory(record: &Raw<DirectoryRecord>, located: Option<&Located>) -> Standing {
    match record {
        Raw::Known(_, record) if record.attributes().is_some() => Standing::Recorded,
        _ if is_bucket(located) => Standing::Bucket,
        Raw::Known(_, record) => Standing::Directory { made: record.made },
        Raw::Absent => Standing::Directory { made: false },
        Raw::Newer(_) => Standing::Unreadable { newer: true },
        Raw::Damaged(_) => Standing::Unreadable { newer: false },
    }
}

fn standing(inspection: &Inspection, record: &Raw<ObjectRecord>) -> Standing {
    let record = match record {
        Raw::Known(_, record) => record,
        Raw::Absent => return Standing::NoRecord,
        Raw::Newer(_) => return Standing::Unreadable { newer: true },
        Raw::Damaged(_) => return Standing::Unreadable { newer: false },
    };
    match record.content.stamp {
        Some(stamp) if stamp != inspection.stamp => Standing::Changed {
            size: stamp.size_bytes != inspection.stamp.size_bytes,
            modified: stamp.modified_ns != inspection.stamp.modified_ns,
        },
        Some(_) if record.content.etag.is_some() => Standing::Recorded,
        _ => Standing::NotAnObjects,
    }
}

fn is_bucket(located: Option<&Located>) -> bool {
    located.is_some_and(|at| at.bucket.is_some() && at.path.is_empty())
}

/// Looks for a companion; also returns the whole record, if the companion exists.
fn companion<R: Divided + Clone>(
    located: Option<&Located>,
    id: OverflowId,
    short: &R,
) -> Result<(Companion, Option<R>), Box<dyn std::error::Error>> {
    let mut companion = Companion { path: overflow::companion_path(id), size_bytes: None, matches: false };
    let Some(Located { root, bucket: Some(name), .. }) = located else { return Ok((companion, None)) };
    let store = Store::attach(root, Options::default())?;
    let bucket: Bucket<'_> = store.bucket(name)?;
    let Ok(bytes) = records::read_companion(&bucket, id) else { return Ok((companion, None)) };
    companion.size_bytes = Some(bytes.len() as u64);
    let whole = records::complete(&bucket, short)?.known();
    companion.matches = whole.is_some();
    Ok((companion, whole))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use s3_types::ETag;

    use super::*;
    use crate::testing::{Scene, many_parts, of_parts};

    fn look(scene: &Scene, path: &str) -> Vec<Inspection> {
        inspect(&scene.path().join(path), None).unwrap()
    }

    #[test]
    fn tells_objects_from_what_other_programs_made() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let [object] = &look(&scene, "a")[..] else { panic!() };
        assert_eq!((object.standing, object.key.as_deref()), (Standing::Recorded, Some("a")));
        assert_eq!(object.place.as_ref().unwrap().1, scene.name);
        assert!(object.record.as_ref().unwrap().bytes <= 64);
        fs::write(scene.path().join("b.html"), "12").unwrap();
        let found = look(&scene, "b.html");
        assert_eq!(found[0].standing, Standing::NoRecord);
        let attributes = found[0].attributes.as_ref().unwrap();
        assert_eq!(attributes.metadata.content_type.as_deref(), Some("text/html"));
        fs::write(scene.path().join("a"), "123").unwrap();
        // Whether its time shows it is up to the file system's clock.
        let standing = look(&scene, "a")[0].standing;
        assert!(matches!(standing, Standing::Changed { size: true, .. }), "{standing:?}");
        scene.set_raw_record("a", b"\x02xyz");
        assert_eq!(look(&scene, "a")[0].standing, Standing::Unreadable { newer: true });
        assert!(inspect(&scene.path().join("missing"), None).is_err());
    }

    #[test]
    fn a_directory_shows_what_it_stands_for() {
        let scene = Scene::new();
        for key in ["a", "a/b", "a/"] {
            scene.put(key, b"1").unwrap();
        }
        let keys: Vec<_> =
            look(&scene, "a").into_iter().map(|found| (found.key.unwrap(), found.standing)).collect();
        let made = Standing::Directory { made: true };
        let expected = [("a/", made), ("a", Standing::Recorded), ("a/", Standing::Recorded)];
        assert_eq!(keys, expected.map(|(key, standing)| (key.to_owned(), standing)));
        assert_eq!(look(&scene, "")[0].standing, Standing::Bucket);
    }

    #[test]
    fn versions_are_shown_with_their_key_and_where_it_has_no_file() {
        let Some(scene) = Scene::with_versions() else { return };
        let first = scene.put_version("d/a", b"1");
        let second = scene.put_version("d/a", b"22");
        let brief = |versions: &[KeyVersion]| {
            versions.iter().map(|version| (version.order, version.size_bytes)).collect::<Vec<_>>()
        };
        let found = look(&scene, "d/a").remove(0);
        assert_eq!(found.version.as_ref().unwrap().id, format!("{second:016x}"));
        assert_eq!(brief(&found.versions), [(Some(first), Some(1))]);
        let old = look(&scene, &found.versions[0].path).remove(0);
        assert_eq!((old.standing, old.key.as_deref()), (Standing::OldVersion, Some("d/a")));
        assert_eq!(old.version.unwrap().order, Some(first));
        let marker = scene.delete_version("d/a", None).version.unwrap();
        let deleted = look(&scene, "d/a").remove(0);
        assert_eq!((deleted.standing, deleted.key.as_deref()), (Standing::Deleted, Some("d/a")));
        assert_eq!(deleted.versions[0].id, marker.as_str());
        assert_eq!(brief(&deleted.versions)[1..], [(Some(second), Some(2)), (Some(first), Some(1))]);
        assert_eq!(deleted.versions[0].size_bytes, None);
        assert!(inspect(&scene.path().join("missing"), None).is_err());
        // A file of another program.
        fs::create_dir_all(scene.path().join("d")).unwrap();
        fs::write(scene.path().join("d/a"), "333").unwrap();
        let found = look(&scene, "d/a").remove(0);
        assert_eq!(found.version.as_ref().map(|version| (&*version.id, version.order)), Some(("null", None)));
        assert_eq!(found.versions.len(), 3);
        scene.put("plain", b"1").unwrap();
        assert_eq!(look(&scene, "plain")[0].version, None);
    }

    #[test]
    fn a_companion_is_found_or_missed() {
        if crate::testing::fixture::skips("companions are") {
            return;
        }
        let scene = Scene::new();
        let parts = many_parts();
        let mut record = of_parts(ETag::Multipart { md5: [7; 16], parts: 5_000 }, Arc::clone(&parts));
        record.upload_id = Some("u".into());
        scene.put_record("a", b"1", record).unwrap();
        let found = look(&scene, "a").remove(0);
        let companion = found.record.unwrap().companion.unwrap();
        assert!(companion.matches && companion.size_bytes > Some(4096));
        assert_eq!(found.attributes.unwrap().parts.as_deref(), Some(&parts[..]));
        assert_eq!(found.upload_id.as_deref(), Some("u"));
        fs::remove_file(scene.path().join(companion.path)).unwrap();
        let found = look(&scene, "a").remove(0);
        assert_eq!(found.standing, Standing::Recorded);
        let companion = found.record.unwrap().companion.unwrap();
        assert_eq!((companion.matches, companion.size_bytes), (false, None));
    }
}
