//! CopyObject, and copying bytes for UploadPartCopy and CompleteMultipartUpload.
//!
//! Blocks are shared if the file system can do that (`FICLONE`, or `copy_file_range`), otherwise
//! the kernel copies bytes, and leaves holes as they are. They are read only if a digest must be
//! computed. A long copy goes by steps, and ends early once nobody needs it (decision 0055).

use std::ops::Range;
use std::sync::Arc;

use backend::{BackendError, Copied, CopySide, CopySource, ObjectCheck, Result, VersionRef, WriteReceipt};
use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use s3_types::limits::PART_BYTES_MAX;
use s3_types::{
    BucketName, Checksum, ChecksumAlgorithm, ChecksumType, Conditions, Digester, Digests, ObjectMetadata,
    Tags,
};

use super::aliases;
use super::open::{Opened, open, open_version};
use super::write::check_early;
use crate::base::turns::CopyTurn;
use crate::error::{Io, Op};
use crate::fs::file_info::{self, Stamp};
use crate::fs::files;
use crate::layout::keymap::KeyPath;
use crate::limits::{COPY_ATTEMPTS, COPY_BUFFER_BYTES, COPY_CALL_BYTES, COPY_STEP_BYTES, SHARED_BLOCK_BYTES};
use crate::record::{Named, ObjectContent, ObjectRecord, Version};
use crate::tree::closed::naming;
use crate::tree::store::Store;
use crate::write::publish::{Published, Stage, Target};
use crate::write::staging::Staged;

/// The source of a copy.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub bucket: BucketName,
    pub place: KeyPath,
    /// The version; `None` for the current one.
    pub version: Option<Named>,
    pub conditions: Conditions,
    pub check: Option<Arc<dyn ObjectCheck>>,
}

impl From<CopySource<'_>> for Source {
    fn from(source: CopySource<'_>) -> Self {
        let CopySource { object, conditions, check } = source;
        let (bucket, place) = (object.bucket.clone(), KeyPath::of(object.key.as_str()));
        // The caller has refused other ids.
        let version = match object.version {
            VersionRef::Current => None,
            VersionRef::Id(id) => Named::of(id),
        };
        Self { bucket, place, version, conditions, check: check.cloned() }
    }
}

impl Source {
    /// Returns the bucket and key of the source.
    pub fn name(&self) -> (&BucketName, &KeyPath) {
        (&self.bucket, &self.place)
    }

    /// Fails if the requester may not read the source, before anything else about it is revealed.
    pub fn check_access(&self, store: &Store) -> Result<()> {
        if self.check.is_some() { self.open(store).map(drop) } else { Ok(()) }
    }

    /// Opens the source, if the requester may read it and its conditions hold. Errors say that they
    /// concern the source.
    pub fn open(&self, store: &Store) -> Result<Opened> {
        let found = naming(store, (&self.bucket, &self.place.path), || self.find(store));
        found.map_err(|error| error.on(CopySide::Source))
    }

    fn find(&self, store: &Store) -> Result<Opened> {
        let opened = match self.version {
            None => open(store, &self.bucket, &self.place)?,
            named => open_version(store, &self.bucket, &self.place, named)?,
        };
        if let Some(check) = &self.check {
            check.check(Some(&opened.attached.facts()))?;
        }
        let attributes = &opened.attributes;
        self.conditions
            .evaluate_copy_source(&attributes.etag, attributes.last_modified)
            .map_err(BackendError::PreconditionFailed)?;
        Ok(opened)
    }
}

/// The same as [`backend::CopyRequest`], with owned values.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub source: Source,
    pub target: Target,
    pub metadata: Option<ObjectMetadata>,
    pub tags: Option<Tags>,
    pub website_redirect_location: Option<String>,
    pub checksum_algorithm: Option<ChecksumAlgorithm>,
}

impl Copy {
    /// Returns the metadata of the copy, if those of the source are `source`.
    fn metadata(&self, source: &ObjectMetadata) -> ObjectMetadata {
        let kept = || {
            let website_redirect_location = self.website_redirect_location.clone();
            ObjectMetadata { website_redirect_location, ..source.clone() }
        };
        self.metadata.clone().unwrap_or_else(kept)
    }
}

/// Copies an object.
pub(crate) fn copy_object(
    store: &Store,
    copy: &Copy,
    default: ChecksumAlgorithm,
    turn: &CopyTurn,
) -> Result<Copied<WriteReceipt>> {
    // What does not say that it is of the source is of the target.
    try_copy(store, copy, default, turn).map_err(|error| error.on(CopySide::Target))
}

fn try_copy(
    store: &Store,
    copy: &Copy,
    default: ChecksumAlgorithm,
    turn: &CopyTurn,
) -> Result<Copied<WriteReceipt>> {
    check_early(store, &copy.target)?;
    copy.source.check_access(store)?;
    aliases::refuse_copy(store, copy.source.name(), (&copy.target.bucket, &copy.target.place))?;
    for _ in 0..COPY_ATTEMPTS {
        let source = copy.source.open(store)?;
        begin(source.attributes.size_bytes, turn)?;
        let source_version = source.attributes.version.clone();
        let kept = source.attributes.checksum;
        let algorithm = copy.checksum_algorithm.or(kept.map(|c| c.value.algorithm())).unwrap_or(default);
        let known = known_digests(&source, 0..source.attributes.size_bytes, algorithm);
        let metadata = copy.metadata(&source.attributes.metadata);
        let version = copy.target.new_version()?;
        // A version is a file.
        if copy.target.place.directory && source.attributes.size_bytes == 0 && version.is_none() {
            let digests =
                known.unwrap_or_else(|| Digester::new(Some(algorithm), store.options.etag).finish());
            let content = (digests.clone(), metadata, source.attached.copied(copy.tags.as_ref()));
            let now = copy.target.publish_empty_directory(store, content)?;
            let stamp = Stamp { size_bytes: 0, modified_ns: i128::from(now) };
            return Ok(Copied { receipt: receipt(digests, stamp.into()), source_version });
        }
        let Stage { bucket, directory, mut staged } = copy.target.stage(store)?;
        let computed = Digester::new(Some(algorithm), store.options.etag);
        let whole = 0..source.attributes.size_bytes;
        let digests = match copy_range(store, &source, whole, &mut staged, known, computed, &|| Ok(())) {
            Err(BackendError::Changed) => continue,
            digests => digests?,
        };
        if !source.is_unchanged()? {
            continue;
        }
        let content = ObjectContent::of_bytes(digests.clone(), metadata);
        let attached = source.attached.copied(copy.tags.as_ref());
        let record = ObjectRecord { content, attached, version, upload_id: None, overflow: None };
        let sealed = staged.seal(&bucket, copy.target.owner, record)?;
        let published = copy.target.publish(bucket, directory, sealed)?;
        return Ok(Copied { receipt: receipt(digests, published), source_version });
    }
    Err(BackendError::Changed)
}

/// Refuses a copy of more bytes than a request may write, and a long one that does not have its
/// turn.
pub(crate) fn begin(size_bytes: u64, turn: &CopyTurn) -> Result<()> {
    if size_bytes > PART_BYTES_MAX {
        return Err(BackendError::CopySourceTooLarge);
    }
    // It begins again, and its client does not see this.
    if turn.take(size_bytes) { Ok(()) } else { Err(BackendError::OutOf("it is not the copy's turn")) }
}

fn receipt(digests: Digests, published: Published) -> WriteReceipt {
    let Published { stamp, version } = published;
    WriteReceipt {
        etag: digests.etag,
        checksum: digests.checksum,
        last_modified: file_info::timestamp(stamp.modified_ns),
        size_bytes: stamp.size_bytes,
        version: version.and_then(Version::text),
    }
}

/// Returns the digests of a range of the source, if they are known without reading it. They are
/// known if the range is the whole object, its ETag is computed from its bytes, and its checksum
/// covers the whole object and is of the wanted algorithm.
pub(crate) fn known_digests(
    source: &Opened,
    range: Range<u64>,
    algorithm: ChecksumAlgorithm,
) -> Option<Digests> {
    let attributes = &source.attributes;
    if range != (0..attributes.size_bytes) {
        return None;
    }
    match (&attributes.etag, attributes.checksum) {
        (etag, Some(checksum @ Checksum { checksum_type: ChecksumType::FullObject, value, .. }))
            if etag.is_of_bytes() && value.algorithm() == algorithm =>
        {
            Some(Digests { etag: attributes.etag.clone(), checksum: Some(checksum) })
        }
        _ => None,
    }
}

/// Copies a range of the source to the end of a staged file. Returns its digests: those `known`, or
/// those that `digester` computes. Fails between two steps if the source has changed
/// ([`BackendError::Changed`]), or if `look` does.
pub(crate) fn copy_range(
    store: &Store,
    source: &Opened,
    range: Range<u64>,
    staged: &mut Staged,
    known: Option<Digests>,
    mut digester: Digester,
    look: Look<'_>,
) -> Result<Digests> {
    let Some(file) = &source.file else { return Ok(digester.finish()) };
    let look = || if source.is_unchanged()? { look() } else { Err(BackendError::Changed) };
    if let Some(digests) = known {
        append_range(file, range, staged, &look)?;
        return Ok(digests);
    }
    let length = range.end - range.start;
    let shared = range == (0..source.stamp.size_bytes) && share_whole(file, staged);
    let mut buffer =
        vec![0; COPY_BUFFER_BYTES.min(usize::try_from(length).unwrap_or(COPY_BUFFER_BYTES)).max(1)];
    let (alone, holes) = (staged.is_alone(), has_holes(file));
    let reflinks = store.volume_at(file).reflinks.is_yes();
    in_steps(&range, staged, &look, |target, at, step| {
        let length = step.end - step.start;
        let shared = shared || (reflinks && share_range(file, step.start, target, at, length));
        let holes = holes && !shared && is_free(target, at, length, alone);
        let mut done = 0;
        while done < length {
            let wanted = usize::try_from(length - done).map_or(buffer.len(), |left| left.min(buffer.len()));
            let read = files::read_into(file, &mut buffer[..wanted], step.start + done).op("read a file")?;
            if read == 0 {
                return Err(BackendError::Changed);
            }
            digester.update(&buffer[..read]);
            // What is not written is a hole there, too.
            let is_hole = holes && buffer[..read].iter().all(|byte| *byte == 0);
            if !(shared || is_hole) {
                files::write_all(target, &buffer[..read], at + done).op("write a staging file")?;
            }
            done += read as u64;
        }
        if holes && step.end == range.end { end_at(target, at..at + length, alone) } else { Ok(()) }
    })?;
    Ok(digester.finish())
}

/// A check between two steps of a copy, whose error ends the copy.
pub(crate) type Look<'l> = &'l dyn Fn() -> Result<()>;

/// Appends a range to a staged file in steps. `copy` copies a step to a position in the file.
fn in_steps(
    range: &Range<u64>,
    staged: &mut Staged,
    look: Look<'_>,
    mut copy: impl FnMut(&OwnedFd, u64, Range<u64>) -> Result<()>,
) -> Result<()> {
    let mut start = range.start;
    loop {
        let end = range.end.min(start.saturating_add(COPY_STEP_BYTES));
        staged.extend(end - start, |target, at| copy(target, at, start..end))?;
        if end == range.end {
            return Ok(());
        }
        look()?;
        start = end;
    }
}

/// True if a range of a staged file that is not written will read as zeros. A window may have bytes
/// of a part that was given up: then they are removed.
fn is_free(target: &OwnedFd, at: u64, length: u64, alone: bool) -> bool {
    alone || length == 0 || files::punch(target, at, length).is_ok()
}

/// Copies a range of a file to the end of a staged file without reading it. `look` is called
/// between two steps.
pub(crate) fn append_range(
    file: &OwnedFd,
    range: Range<u64>,
    staged: &mut Staged,
    look: Look<'_>,
) -> Result<()> {
    if range.start == 0 && share_whole(file, staged) {
        // The source may have grown since; what it grew by is not part of the copy.
        let cut =
            |target: &OwnedFd, _| rustix::fs::ftruncate(target, range.end).op("truncate a staging file");
        return staged.extend(range.end, cut);
    }
    let (alone, holes) = (staged.is_alone(), has_holes(file));
    in_steps(&range, staged, look, |target, at, step| {
        let length = step.end - step.start;
        if !(holes && is_free(target, at, length, alone)) {
            return copy_bytes(file, step.start, target, at, length);
        }
        copy_data(file, step.start, target, at, length)?;
        if step.end == range.end { end_at(target, at..at + length, alone) } else { Ok(()) }
    })
}

/// True if a file takes less room than its length: some of it is holes, or compressed.
fn has_holes(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file).is_ok_and(|stat| stat.st_blocks.saturating_mul(512) < stat.st_size)
}

/// Copies bytes from a position in one file to a position without data in another, where holes
/// become holes. It does not extend the file if they end with a hole ([`end_at`] does). Holes are
/// read nevertheless: of a file whose bytes are on tape, all may be reported as one.
fn copy_data(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> Result<()> {
    // An empty part may have its place behind the end of the file.
    if length == 0 {
        return Ok(());
    }
    let (mut at, end) = (from_at, from_at + length);
    while at < end {
        let data = match rustix::fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data.min(end),
            // Nothing follows but a hole.
            Err(Errno::NXIO) => end,
            // It can't tell.
            Err(_) => at,
        };
        let hole = match rustix::fs::seek(from, SeekFrom::Hole(data)) {
            Ok(hole) if hole > data => hole.min(end),
            _ => end,
        };
        copy_unless_zeros(from, at, to, to_at + (at - from_at), data - at)?;
        copy_bytes(from, data, to, to_at + (data - from_at), hole - data)?;
        at = hole;
    }
    Ok(())
}

/// Extends a file to the end of what was copied last, if that ends with a hole. In a window, it
/// does so by writing a byte: other writers may extend the file at the same time.
fn end_at(file: &OwnedFd, copied: Range<u64>, alone: bool) -> Result<()> {
    if alone {
        return rustix::fs::ftruncate(file, copied.end).op("truncate a staging file");
    }
    if copied.is_empty() || file_info::stat(file)?.stamp.size_bytes >= copied.end {
        return Ok(());
    }
    files::write_all(file, &[0], copied.end - 1).op("write a staging file")
}

fn share_whole(file: &OwnedFd, staged: &Staged) -> bool {
    staged.is_blank() && rustix::fs::ioctl_ficlone(staged.file(), file).is_ok()
}

/// Shares the blocks of a range, if the file system can; otherwise copies nothing, since the bytes
/// must be read for the digests anyway.
fn share_range(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> bool {
    let aligned = from_at.is_multiple_of(SHARED_BLOCK_BYTES) && to_at.is_multiple_of(SHARED_BLOCK_BYTES);
    aligned && copy_in_kernel(from, from_at, to, to_at, length) == Ok(length)
}

/// Copies bytes from a position in one file to a position in another.
pub(crate) fn copy_bytes(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> Result<()> {
    let done = copy_in_kernel(from, from_at, to, to_at, length).op("copy a file")?;
    copy_by_hand(from, from_at + done, to, to_at + done, length - done)
}

/// Copies as many bytes as the kernel can, which shares blocks if possible. Returns the number of
/// bytes, which may be less than `length`.
fn copy_in_kernel(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> Io<u64> {
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from((length - done).min(COPY_CALL_BYTES)).unwrap_or(usize::MAX);
        let (mut input, mut output) = (from_at + done, to_at + done);
        match rustix::fs::copy_file_range(from, Some(&mut input), to, Some(&mut output), wanted) {
            // Nothing copied is what some file systems say instead of an error.
            Ok(0) => break,
            Ok(copied) => done += copied as u64,
            Err(Errno::INTR) => {}
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::FBIG)) => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn copy_by_hand(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> Result<()> {
    for_each_buffer(from, from_at, length, |bytes, done| {
        files::write_all(to, bytes, to_at + done).op("write a staging file")
    })
}

/// Copies bytes to a position without data, but for those that it has already: zeros.
fn copy_unless_zeros(from: &OwnedFd, from_at: u64, to: &OwnedFd, to_at: u64, length: u64) -> Result<()> {
    for_each_buffer(from, from_at, length, |bytes, done| {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        files::write_all(to, bytes, to_at + done).op("write a staging file")
    })
}

/// Reads bytes of a file, and calls `work` with each buffer full and how many came before it.
fn for_each_buffer(
    from: &OwnedFd,
    from_at: u64,
    length: u64,
    mut work: impl FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut buffer =
        vec![0; usize::try_from(length).map_or(COPY_BUFFER_BYTES, |bytes| bytes.min(COPY_BUFFER_BYTES))];
    let mut done = 0;
    while done < length {
        let wanted = usize::try_from(length - done).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = files::read_into(from, &mut buffer[..wanted], from_at + done).op("read a file")?;
        if read == 0 {
            return Err(BackendError::Changed);
        }
        work(&buffer[..read], done)?;
        done += read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;
    use crate::testing::Scene;

    const MIB: u64 = 1 << 20;

    fn new_file(scene: &Scene, name: &str) -> File {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(true);
        options.open(scene.path().join(name)).unwrap()
    }

    /// A file of 40 MiB with a few bytes in it, and others after the end of what is copied.
    fn sparse(scene: &Scene) -> File {
        let file = new_file(scene, "sparse");
        for (at, bytes) in [(0, b"first"), (10 * MIB + 7, b"inner"), (30 * MIB - 5, b"last.")] {
            file.write_all_at(bytes, at).unwrap();
        }
        file.set_len(40 * MIB).unwrap();
        file
    }

    #[test]
    fn holes_are_not_filled() {
        let scene = Scene::new();
        let source = sparse(&scene);
        if !has_holes(&OwnedFd::from(source.try_clone().unwrap())) {
            return eprintln!(
                "\n*** SKIPPED: files have no holes here, so copying holes is NOT tested ***\n"
            );
        }
        let source = OwnedFd::from(source);
        for (from, length) in [(0, 40 * MIB), (5, 20 * MIB), (12 * MIB, 18 * MIB + 1), (31 * MIB, MIB)] {
            let target = OwnedFd::from(new_file(&scene, "target"));
            files::write_all(&target, b"before", 0).unwrap();
            copy_data(&source, from, &target, 6, length).unwrap();
            end_at(&target, 6..6 + length, true).unwrap();
            // XFS gives back what it took ahead.
            drop(target);
            let copied = fs::read(scene.path().join("target")).unwrap();
            let expected = fs::read(scene.path().join("sparse")).unwrap();
            let range = usize::try_from(from).unwrap()..usize::try_from(from + length).unwrap();
            assert!(copied[..6] == *b"before" && copied[6..] == expected[range], "{from} {length}");
            let blocks = fs::metadata(scene.path().join("target")).unwrap().blocks();
            assert!(blocks * 512 < MIB, "{from} {length}: {blocks} blocks");
        }
        assert!(matches!(copy_data(&source, 39 * MIB, &source, 0, 2 * MIB), Err(BackendError::Changed)));
        copy_data(&source, 41 * MIB, &source, 0, 0).unwrap();
    }

    #[test]
    fn what_is_reported_as_a_hole_and_is_none_is_copied() {
        let scene = Scene::new();
        let (source, target) = (OwnedFd::from(sparse(&scene)), OwnedFd::from(new_file(&scene, "target")));
        copy_unless_zeros(&source, 10 * MIB, &target, 3, 20 * MIB).unwrap();
        let copied = fs::read(scene.path().join("target")).unwrap();
        let expected = fs::read(scene.path().join("sparse")).unwrap();
        let range = usize::try_from(10 * MIB).unwrap()..usize::try_from(30 * MIB).unwrap();
        assert!(copied[3..] == expected[range]);
    }
}
