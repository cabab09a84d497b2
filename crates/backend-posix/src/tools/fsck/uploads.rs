//! Checks uploads in progress, and the receipts of completed ones.

use std::sync::Arc;

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::check::{Check, ProblemKind, stays};
use super::companions::Named;
use super::own::{foreign, open};
use crate::base::unique;
use crate::error::{Fail, Io, Op, storage_error};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY, READ};
use crate::fs::{files, removing};
use crate::layout::keymap::OWN_DIRECTORY;
use crate::layout::uploads::{COMPLETED, DESCRIPTION, UPLOADS, is_id, is_own, part_number};
use crate::record::{self, CompletionRecord, Kind, PartRecord, Reading, Unread, UploadRecord};
use crate::records;
use crate::tree::bucket::Directory;
use crate::tree::store::Store;
use crate::upload::{Upload, holds};

/// The prefix of the name of a part that is about to be removed. The part's own name and a comma
/// follow.
const ASIDE: &str = "damaged-";

pub(super) fn check(check: &Check<'_>) -> Result<()> {
    if let Some(uploads) = open(check, UPLOADS)? {
        for (id, _) in entries(&uploads).op("read the uploads directory")? {
            let path = format!("{OWN_DIRECTORY}/{UPLOADS}/{id}");
            if !is_id(&id) {
                foreign(check, &path);
            } else if let Err(error) = upload(check, &uploads, &id, &path) {
                check.unreadable(&path, &error);
            }
        }
    }
    let Some(receipts) = open(check, COMPLETED)? else { return Ok(()) };
    for (id, _) in entries(&receipts).op("read the directory of receipts")? {
        receipt(check, &receipts, &id);
    }
    Ok(())
}

/// Collects the companions that parts name: on a nearly full disk, even the short records of parts
/// may not fit.
pub(super) fn name_companions(check: &Check<'_>, named: &Named) -> Result<()> {
    let Some(uploads) = open(check, UPLOADS)? else { return Ok(()) };
    for (id, _) in entries(&uploads).op("read the uploads directory")? {
        if let Err(errno) = name_companions_of(check, &uploads, &id, named) {
            let path = format!("{OWN_DIRECTORY}/{UPLOADS}/{id}");
            check.unreadable(&path, &storage_error("read parts", errno));
        }
    }
    Ok(())
}

fn name_companions_of(check: &Check<'_>, uploads: &OwnedFd, id: &str, named: &Named) -> Io<()> {
    let directory = match resolve::plain(uploads, id, DIRECTORY) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        result => result?,
    };
    for (name, kind) in entries(&directory)? {
        let may_be_part = matches!(kind, FileType::RegularFile | FileType::Unknown);
        if part_number(&name).is_none() || !may_be_part {
            continue;
        }
        match records::read::<PartRecord>(check.bucket.store, &directory, &name) {
            Ok(Reading::Known(record)) => record.overflow.into_iter().for_each(|id| named.add(id)),
            Ok(Reading::Closed) => named.doubt(),
            Ok(Reading::Nothing | Reading::Damaged) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn receipt(check: &Check<'_>, receipts: &OwnedFd, id: &str) {
    let path = format!("{OWN_DIRECTORY}/{COMPLETED}/{id}");
    let Ok(bytes) = files::read_own(receipts, id) else { return };
    let read = record::from_bytes::<CompletionRecord>(&bytes);
    // A young one may just be written.
    let fine = read.is_ok() || !removing::is_older(receipts, id, check.options.age);
    if fine || newer(check, &read, &path) {
        return;
    }
    let mut repair = || Ok(rustix::fs::unlinkat(receipts, id, AtFlags::empty()).is_ok());
    let explanation =
        "the receipt of a completed upload is damaged; a repair removes it (the object is not touched)";
    check.problem(ProblemKind::ReceiptDamaged, &path, explanation, Some(&mut repair));
}

/// Reports a record that a newer version wrote.
fn newer<R: Kind>(check: &Check<'_>, read: &Result<R, Unread>, path: &str) -> bool {
    let newer = matches!(read, Err(Unread::Closed));
    if newer {
        check.problem(ProblemKind::RecordNewer, path, "it was written by a newer version of Slipway", None);
    }
    newer
}

fn upload(check: &Check<'_>, uploads: &OwnedFd, id: &str, path: &str) -> Result<()> {
    if let Some(upload) = Upload::open_id(check.bucket, id)? {
        return parts(check, &upload, path);
    }
    if !removing::is_older(uploads, id, check.options.age) {
        return Ok(());
    }
    let mut kind = ProblemKind::UploadLeftover;
    let mut explanation = "leftovers of an upload that was completed or aborted, or whose creation was interrupted; \
        a repair removes them";
    let bytes = resolve::plain(uploads, id, DIRECTORY).and_then(|fd| files::read_own(fd, DESCRIPTION));
    match bytes.map(|bytes| record::from_bytes::<UploadRecord>(&bytes)) {
        Ok(read) if newer(check, &read, path) => return Ok(()),
        Ok(Err(_)) => {
            kind = ProblemKind::UploadDamaged;
            explanation = "the upload's description is damaged, so that it cannot be completed; a repair removes the \
                upload with its parts";
        }
        Err(Errno::NOTDIR | Errno::LOOP) => {
            check.problem(ProblemKind::Stranger, path, "not an upload", None);
            return Ok(());
        }
        _ => {}
    }
    let mut repair = || {
        let gone = removing::remove_tree(uploads, id);
        if gone { Ok(true) } else { Err(stays("some of its contents cannot be removed")) }
    };
    check.problem(kind, path, explanation, Some(&mut repair));
    Ok(())
}

fn parts(check: &Check<'_>, upload: &Upload, path: &str) -> Result<()> {
    let directory = Arc::new(resolve::plain(&upload.directory, "", DIRECTORY).op("open an upload")?);
    for (name, _) in entries(&directory).op("read an upload")? {
        if is_own(&name) {
            continue;
        }
        let path = format!("{path}/{name}");
        if let Some(part) = name.strip_prefix(ASIDE).and_then(|rest| rest.split_once(',')) {
            set_aside(check, upload, &directory, &name, part.0, &path);
            continue;
        }
        let Some(number) = part_number(&name) else {
            check.problem(ProblemKind::Stranger, &path, "not a part of the upload", None);
            continue;
        };
        let info = match damaged(check.bucket.store, &upload.directory, &name, number) {
            Ok(Some(info)) => info,
            // Whole, or gone.
            Ok(None) | Err(Errno::NOENT) => continue,
            Err(errno) => {
                check.unreadable(&path, &storage_error("read a part", errno));
                continue;
            }
        };
        let mut repair = || {
            let _lock = upload.lock_at_once(check.bucket).map_err(Fail::for_good)?;
            remove(&upload.directory, &name, &info)
        };
        let explanation = "the part changed or lost bytes after it was acknowledged; a repair removes it, so that a \
            client that lists the parts sends it again";
        check.problem(ProblemKind::PartDamaged, &path, explanation, Some(&mut repair));
    }
    Ok(())
}

/// Checks a part that an interrupted repair set aside.
fn set_aside(check: &Check<'_>, upload: &Upload, directory: &OwnedFd, name: &str, part: &str, path: &str) {
    if !removing::is_older(directory, name, check.options.age) {
        return;
    }
    let explanation = "a part that an interrupted repair set aside; a repair removes it, or puts it back if it is \
        intact";
    let mut repair = || {
        let _lock = upload.lock_at_once(check.bucket).map_err(Fail::for_good)?;
        let number = part_number(part).unwrap_or(0);
        let whole = matches!(damaged(check.bucket.store, &upload.directory, name, number), Ok(None));
        end_aside(&upload.directory, name, whole.then_some(part))
    };
    check.problem(ProblemKind::UploadLeftover, path, explanation, Some(&mut repair));
}

/// The file of a part that does not match its record.
fn damaged(store: &Store, directory: &Directory, name: &str, number: u32) -> Io<Option<FileInfo>> {
    let file = resolve::plain(directory, name, READ)?;
    let info = file_info::of(&file)?;
    let record: Reading<PartRecord> = records::of(store, directory, name, &file)?;
    let is_of_file = |record: &PartRecord| record.etag.is_some() && record.stamp == Some(info.stamp);
    let whole = match record.known().filter(is_of_file) {
        Some(record) => holds(directory, number, &record)?,
        None => false,
    };
    Ok((!whole).then_some(info))
}

/// Removes a part, unless another one has replaced it: where records are attributes, parts are
/// published without a lock.
fn remove(directory: &Directory, name: &str, info: &FileInfo) -> Result<bool> {
    let aside = format!("{ASIDE}{name},{}", unique::name());
    match rustix::fs::renameat(directory, name, directory, &*aside) {
        Err(Errno::NOENT) => return Ok(false),
        result => result.op("set a part aside")?,
    }
    let moved = file_info::at(directory, &aside).op("look up a name")?;
    let same = (moved.inode, moved.device, moved.stamp) == (info.inode, info.device, info.stamp);
    end_aside(directory, &aside, (!same).then_some(name))?;
    Ok(same)
}

/// Puts a part that was set aside back under the name `wanted`; without a name, removes it. False
/// if it no longer exists.
fn end_aside(directory: &Directory, aside: &str, wanted: Option<&str>) -> Result<bool> {
    if let Some(name) = wanted {
        match rustix::fs::linkat(directory, aside, directory, name, AtFlags::empty()) {
            // A still newer one.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).op("put a part back"),
        }
    }
    match rustix::fs::unlinkat(directory, aside, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(false),
        result => result.op("remove a part").map(|()| true),
    }
}
