//! Checks the names, records and directories of objects.

use backend::Result;
use rustix::fs::FileType;

use super::check::{Check, ProblemKind, Repair};
use super::companions::{self, Named};
use super::own::{OF_TREE, leftover};
use super::sidecars;
use crate::base::options::Metadata;
use crate::buckets::documents;
use crate::error::{Op, retrying};
use crate::facts::foreign;
use crate::fs::resolve::{self, DIRECTORY};
use crate::fs::{file_info, folding, reading};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, Name, OWN_DIRECTORY, RECORDS, SELF, join};
use crate::layout::staged::is_scattered;
use crate::record::{self, DirectoryRecord, Divided, Kind, ObjectContent, ObjectRecord, Raw, Reading};
use crate::records;
use crate::tools::candidate::Candidate;
use crate::tools::tree::WalkEntry;
use crate::tree::bucket::Directory;
use crate::tree::trust::is_of_tree;
use crate::volume::flat;
use crate::write::{directories, key_lock};

pub(super) fn check(check: &Check<'_>, named: &Named, found: WalkEntry) {
    let (path, result) = match found {
        WalkEntry::Unreadable(path, error) => (path, Err(error)),
        WalkEntry::NotText(path) => {
            companions::note_hidden(check.bucket, named, &path);
            return check.not_shown(&path, "its name is not UTF-8");
        }
        WalkEntry::Directory(directory) => {
            (directory.path.clone(), check_directory(check, named, &directory))
        }
        WalkEntry::Entry { directory, name, kind: FileType::Directory }
            if name == RECORDS && check.bucket.store.metadata() == Metadata::Sidecar =>
        {
            (join(&directory.path, &name), sidecars::check(check, &directory))
        }
        WalkEntry::Entry { directory, name, kind } => {
            let path = join(&directory.path, &name);
            check_name(check, &directory, &name, kind);
            // Of reserved names it has told.
            match kind {
                FileType::RegularFile if !name.starts_with(OWN_DIRECTORY) => {
                    keymap::hidden_because(&path).inspect(|why| check.not_shown(&path, why));
                }
                FileType::Directory if keymap::is_of_file_system(&name) => {
                    keymap::hidden_because(&path).inspect(|why| check.not_shown(&path, why));
                }
                FileType::RegularFile | FileType::Directory | FileType::Symlink => {}
                _ => check.not_shown(&path, "it is neither a file nor a directory"),
            }
            let is_object = kind == FileType::RegularFile && keymap::key_of_file(&path).is_some();
            let result = if is_object { check_file(check, named, &directory, &name, &path) } else { Ok(()) };
            (path, result)
        }
    };
    if let Err(error) = result {
        check.unreadable(&path, &error);
    }
}

/// Reports reserved names that the key map does not make, or does not make here.
fn check_name(check: &Check<'_>, directory: &Directory, name: &str, kind: FileType) {
    let path = join(&directory.path, name);
    if is_scattered(name) {
        if let Ok(opened) = resolve::plain(directory, "", DIRECTORY) {
            leftover(check, &opened, &directory.path, name);
        }
        return;
    }
    let odd = |kind, explanation| check.problem(kind, &path, explanation, None);
    if name == OWN_DIRECTORY && resolve::plain(directory, name, DIRECTORY).is_ok_and(is_of_tree) {
        return odd(ProblemKind::Stranger, OF_TREE);
    }
    if name == RECORDS && kind == FileType::Directory {
        return odd(
            ProblemKind::ReservedName,
            "records of a tree with --metadata sidecar, which this tree is not set to use: start it once with \
             --metadata sidecar",
        );
    }
    let nowhere = keymap::key_of_file(&path).is_none();
    match keymap::classify(name.as_bytes()) {
        Name::Hidden if name.starts_with(OWN_DIRECTORY) => {
            odd(
                ProblemKind::ReservedName,
                "the name is reserved, and no key leads to it; rename it to have it served",
            );
        }
        Name::SelfFile | Name::DirectoryData if kind != FileType::RegularFile => {
            odd(ProblemKind::Misplaced, "only a regular file can hold an object's bytes");
        }
        Name::SelfFile | Name::DirectoryData if nowhere => {
            odd(
                ProblemKind::Misplaced,
                "the name is that of a file with an object's bytes, but no key leads to one here",
            );
        }
        Name::Piece(_) => odd(ProblemKind::ReservedName, "only a directory can hold the rest of a long name"),
        Name::LastPiece(_) | Name::Component(_) if nowhere && name.starts_with(OWN_DIRECTORY) => {
            odd(
                ProblemKind::ReservedName,
                "the name is reserved, and no key leads to it here; rename it to have it served",
            );
        }
        _ => {}
    }
}

const DAMAGED: &str = "its record is damaged, so that it is served as a foreign file; a repair removes the record, \
    and `slipway rehash` makes a new one";
const DAMAGED_OF_VERSION: &str = "its record is damaged, so that it is not known which version of its key it is, and \
    requests that depend on that are refused; a repair makes a new version of it, with an id of its own";
const NEWER: &str = "its record was written by a newer version of Slipway";
const MISSING: &str = "the overflow file with the rest of its record is missing: its metadata, tags and parts are lost; a \
    repair keeps the remaining record, whose ETag and checksum are valid";

fn check_file(check: &Check<'_>, named: &Named, directory: &Directory, name: &str, path: &str) -> Result<()> {
    let Some(file) = Candidate::open(check.bucket, directory, name)? else { return Ok(()) };
    check.usage.add_object(&file.info);
    let raw = file.raw_record()?;
    if matches!(raw, Raw::Damaged(_)) && documents::keeps_versions(check.bucket.store, check.name) {
        let place = KeyPath::of(&keymap::key_of_file(path).unwrap_or_default());
        let repair = &mut || file.make_newest_version(&place);
        check.problem(ProblemKind::RecordDamaged, path, DAMAGED_OF_VERSION, Some(repair));
        return Ok(());
    }
    let Some(record) = understood(check, path, raw, &mut || file.remove_damaged_record()) else {
        return Ok(());
    };
    let Some(id) = record.overflow else { return Ok(()) };
    named.add(id);
    // The companion goes after its object; so if the object is still there, the companion is not
    // going but gone.
    if record.content.stamp != Some(file.info.stamp)
        || !is_lost(check, &record)?
        || !retrying(|| file.is_as_it_was())?
    {
        return Ok(());
    }
    let rest = without_companion(record, &keymap::key_of_file(path).unwrap_or_default());
    check.problem(ProblemKind::CompanionMissing, path, MISSING, Some(&mut || file.adopt(|_| rest.clone())));
    Ok(())
}

/// Returns the record of an object whose companion is lost.
pub(super) fn without_companion(record: ObjectRecord, key: &str) -> ObjectRecord {
    let ObjectRecord { content, attached, version, upload_id, overflow: _ } = record;
    let ObjectContent { stamp, etag, checksum, metadata: _, parts, unknown } = content;
    let metadata = foreign::metadata(key);
    let content = ObjectContent { stamp, etag, checksum, metadata, parts, unknown };
    ObjectRecord { content, attached, version, upload_id, overflow: None }
}

/// True if the second part of a record, its companion file, is missing, or belongs to another
/// object.
pub(super) fn is_lost<R: Divided + Clone>(check: &Check<'_>, record: &R) -> Result<bool> {
    let whole = records::complete(check.bucket, record).op("read a record")?;
    Ok(matches!(whole, Reading::Nothing | Reading::Damaged))
}

/// The explanation of a record that closes its object.
pub(super) fn newer(check: &Check<'_>, record: &[u8]) -> String {
    let Some(version) = record::unknown_version(record) else { return NEWER.to_owned() };
    let place = match check.bucket.store.metadata() {
        Metadata::Xattr => "attribute `user.slipway`",
        Metadata::Sidecar => "file of the record",
    };
    format!(
        "its record has version {version}, which this Slipway does not know: a newer one wrote it, or it is damaged; if \
         no newer one ran, remove the {place}"
    )
}

/// The record, if there is one that can be read; otherwise reports it, with `remove` as the repair
/// of a damaged one.
fn understood<R: Kind>(check: &Check<'_>, path: &str, raw: Raw<R>, remove: Repair<'_>) -> Option<R> {
    match raw {
        Raw::Known(_, record) => return Some(*record),
        Raw::Absent => {}
        Raw::Newer(bytes) => check.problem(ProblemKind::RecordNewer, path, &newer(check, &bytes), None),
        Raw::Damaged(_) => check.problem(ProblemKind::RecordDamaged, path, DAMAGED, Some(remove)),
    }
    None
}

const SAME_NAMES: &str = "the directory does not distinguish the names KEY and key (casefold, chattr +F), so that a \
    PUT of one replaces the other: move its files to a new directory without that attribute";

fn check_directory(check: &Check<'_>, named: &Named, directory: &Directory) -> Result<()> {
    check_directory_name(check, directory);
    let path = directory.path.as_str();
    if let Some(remark) = flat::remark(directory) {
        check.note(ProblemKind::FlatDirectory, path, remark);
    }
    let kind = check.bucket.store.volume_at(directory).kind;
    if kind.has_folding_directories() && folding::folds_case(directory) {
        check.note(ProblemKind::SameNames, path, SAME_NAMES.to_owned());
    }
    let read =
        || records::raw_of_directory::<DirectoryRecord>(check.bucket.store, directory).op("read a record");
    let raw = read()?;
    let bytes = raw.bytes().unwrap_or_default().to_vec();
    let mut repair = || replace_directory_record(check, directory, &bytes, &DirectoryRecord::mark(false));
    let Some(record) = understood(check, path, raw, &mut repair) else { return Ok(()) };
    if let Some(id) = record.overflow {
        named.add(id);
        // As for files; here, a record that is still the same tells that the object is.
        if is_lost(check, &record)? && read()?.bytes() == Some(&bytes) {
            let mut rest = record.clone();
            rest.overflow = None;
            let mut repair = || replace_directory_record(check, directory, &bytes, &rest);
            check.problem(ProblemKind::CompanionMissing, path, MISSING, Some(&mut repair));
        }
    }
    if record.object {
        check.usage.add_empty_object();
    }
    let info = file_info::stat(directory)?;
    let old = info.changed_ns < i128::from(file_info::now_ns()) - check.options.age.as_nanos().cast_signed();
    // Opened anew, to be read from its start.
    let empty =
        || resolve::plain(directory, "", DIRECTORY).and_then(reading::is_empty).op("read a directory");
    let as_made = || directories::is_as_made(check.bucket, path).op("look at a directory");
    if record.made && !record.object && old && empty()? && as_made()? {
        let mut repair = || {
            directories::prune(check.bucket, path);
            Ok(check.bucket.directory(path).is_err())
        };
        let explanation = "a PUT created this directory, which should have been removed together with its last \
            object; a repair removes it, and the directories above it that are then empty";
        check.problem(ProblemKind::EmptyDirectory, path, explanation, Some(&mut repair));
    }
    Ok(())
}

fn check_directory_name(check: &Check<'_>, directory: &Directory) {
    let (_, name) = keymap::split(&directory.path);
    if matches!(keymap::classify(name.as_bytes()), Name::LastPiece(_))
        && keymap::key_of_directory(&directory.path).is_none()
    {
        let explanation = "the name is reserved, and no key leads to it here; rename it to have it served";
        check.problem(ProblemKind::ReservedName, &directory.path, explanation, None);
    }
    debug_assert!(!matches!(name, SELF | DIRECTORY_DATA), "the walk does not enter those");
}

/// Replaces the record under the lock, if it is still the same.
fn replace_directory_record(
    check: &Check<'_>,
    directory: &Directory,
    old: &[u8],
    new: &DirectoryRecord,
) -> Result<bool> {
    retrying(|| {
        let _lock = key_lock::take_directory(check.bucket, &directory.path)?;
        let raw: Raw<DirectoryRecord> =
            records::raw_of_directory(check.bucket.store, directory).attempt("read a record")?;
        if raw.bytes() != Some(old) {
            return Ok(false);
        }
        records::put_of_directory(check.bucket, directory, new)?;
        Ok(true)
    })
}
