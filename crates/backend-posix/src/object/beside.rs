//! Opens an object whose record is in a file beside it.
//!
//! The sidecar is read before the file is opened and again after it. If it is the same, no writer
//! came in between. So the file is one of those that the sidecar describes, and the file's stamp
//! shows which (decision 0009).

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use super::found::{Found, found};
use crate::error::{Fail, Op};
use crate::facts::place::existing_directory;
use crate::fs::{file_info, resolve};
use crate::layout::keymap::{DIRECTORY_DATA, ObjectPath, SELF, join};
use crate::record::Reading;
use crate::records::{self, Sidecar};
use crate::tree::bucket::Bucket;

/// Finds an object's file and its record.
pub(super) fn find(bucket: &Bucket<'_>, place: &ObjectPath) -> Result<Option<Found>, Fail> {
    if place.directory {
        return find_directory(bucket, &place.path);
    }
    find_file(bucket, &place.path)
}

fn find_directory(bucket: &Bucket<'_>, path: &str) -> Result<Option<Found>, Fail> {
    let Some(directory) = existing_directory(bucket, path)? else { return Ok(None) };
    if let Some(found) = find_reserved(bucket, &join(&directory.path, DIRECTORY_DATA))? {
        return Ok(Some(found));
    }
    let record = records::of_directory(bucket.store, &directory).attempt("read a record")?;
    Ok(Some(Found::Bare(record)))
}

fn find_file(bucket: &Bucket<'_>, path: &str) -> Result<Option<Found>, Fail> {
    let Some((file, path, sidecar)) = open(bucket, path)? else { return Ok(None) };
    let info = file_info::of(&file).attempt("stat a file")?;
    if info.is_directory() {
        return find_reserved(bucket, &join(&path, SELF));
    }
    let identity = bucket.store.identity(&file, &info);
    let record = sidecar.map_or(Reading::Nothing, |sidecar| {
        sidecar.recognize(identity, || file_info::born_ns(&file)).record(Some(identity))
    });
    Ok(Some(Found::File { file, info, record }))
}

/// Finds the file with one of our own names. Anything else there, including a symbolic link, counts
/// as nothing.
fn find_reserved(bucket: &Bucket<'_>, path: &str) -> Result<Option<Found>, Fail> {
    let before = read(bucket, path)?;
    let Some(file) = found(resolve::content(&bucket.fd, path))? else { return Ok(None) };
    let info = file_info::of(&file).attempt("stat a file")?;
    let Some((file, _, sidecar)) = same(bucket, file, path.to_owned(), before)?.filter(|_| info.is_file())
    else {
        return Ok(None);
    };
    let identity = bucket.store.identity(&file, &info);
    let record = sidecar.map_or(Reading::Nothing, |sidecar| {
        sidecar.recognize(identity, || file_info::born_ns(&file)).record(Some(identity))
    });
    Ok(Some(Found::File { file, info, record }))
}

fn read(bucket: &Bucket<'_>, path: &str) -> Result<Option<Sidecar>, Fail> {
    Sidecar::read(&bucket.fd, path).attempt("read a record")
}

/// Opens the file at `path`; also returns its path without links, and the sidecar there, which did
/// not change meanwhile.
fn open(bucket: &Bucket<'_>, path: &str) -> Result<Option<(OwnedFd, String, Option<Sidecar>)>, Fail> {
    let before = read(bucket, path)?;
    match resolve::content(&bucket.fd, path) {
        Err(Errno::LOOP) => {
            let Some((_, target)) = found(bucket.content_at(path))? else { return Ok(None) };
            let before = read(bucket, &target)?;
            // Where a link was put in the target's place meanwhile, it is to be followed anew.
            let file = resolve::content(&bucket.fd, &target)
                .map_err(|errno| Fail::lost_to("open a link's target", errno))?;
            same(bucket, file, target, before)
        }
        result => match found(result)? {
            Some(file) => same(bucket, file, path.to_owned(), before),
            None => Ok(None),
        },
    }
}

fn same(
    bucket: &Bucket<'_>,
    file: OwnedFd,
    path: String,
    before: Option<Sidecar>,
) -> Result<Option<(OwnedFd, String, Option<Sidecar>)>, Fail> {
    if read(bucket, &path)? == before {
        Ok(Some((file, path, before)))
    } else {
        Err(Fail::lost("read a record that changed"))
    }
}
