//! The files in which parts are put together, and the right to write to them.
//!
//! An assembly is one sparse file, in which part *n* has the slot that begins at `(n - 1) *
//! slot_bytes`. Its layout is an empty file whose record has the size of its slots, which the first
//! part that needed one has fixed. Writers hold a shared lock on the layout, and check its seal
//! once they have the lock; the seal is set under the exclusive lock. So nobody writes to a sealed
//! assembly.

use std::time::Instant;

use backend::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FlockOperation, OFlags, Timespec, Timestamps, UTIME_NOW, flock};
use rustix::io::Errno;
use s3_types::limits::PART_BYTES_MIN;
use s3_types::{Conditions, ObjectLock};

use super::in_progress::UploadName;
use super::part::PartTarget;
use crate::error::{Fail, Io, Op};
use crate::fs::{file_info, resolve};
use crate::layout::uploads::{ASSEMBLIES, WHOLE, assembly_name, layout_name};
use crate::limits::{SEAL_WAIT_MAX, SEAL_WAIT_STEP, SHARED_PAGE_BYTES};
use crate::record::{self, CompletionRecord, LayoutRecord, ObjectRecord, PartRecord, Reading};
use crate::tree::bucket::{Bucket, Directory};
use crate::write::publish::Target;
use crate::write::staging::Staged;

const OPEN: OFlags = OFlags::RDWR.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The open layout of an assembly.
#[derive(Debug)]
pub(super) struct Layout {
    pub assembly: u8,
    pub slot_bytes: u64,
    fd: OwnedFd,
}

impl Layout {
    /// Opens a layout; `None` if there is no such assembly.
    pub fn open(directory: &Directory, assembly: u8) -> Io<Option<Self>> {
        let fd = match resolve::plain(directory, &layout_name(assembly), OPEN) {
            Err(Errno::NOENT) => return Ok(None),
            result => result?,
        };
        let slot_bytes =
            record::peek_short::<LayoutRecord>(&fd)?.known().and_then(|record| record.slot_bytes);
        Ok(slot_bytes.map(|slot_bytes| Self { assembly, slot_bytes, fd }))
    }

    /// Makes an assembly with slots of this size, unless it exists already. `None` if the upload
    /// can't have one.
    pub fn create(
        bucket: &Bucket<'_>,
        part: &PartTarget,
        assembly: u8,
        slot_bytes: u64,
    ) -> Result<Option<Self>> {
        let directory = &part.directory;
        if slot_bytes < PART_BYTES_MIN {
            return Ok(None);
        }
        let device = file_info::stat(directory)?.device;
        if !bucket.store.times_are_final(device) && !slot_bytes.is_multiple_of(SHARED_PAGE_BYTES) {
            return Ok(None);
        }
        // Where the object will be, for its group and default ACL.
        let stage = target_of(&part.upload).stage(bucket.store)?;
        let mut sealed = stage.staged.seal(bucket, part.owner, ObjectRecord::of_assembly())?;
        match sealed.link(bucket, directory, &assembly_name(assembly)) {
            Ok(()) | Err(Errno::EXIST) => {}
            // Another file system is mounted there; or the upload is gone, which is found out
            // later.
            Err(Errno::XDEV | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno).op("link an assembly"),
        }
        let layout = LayoutRecord::of(slot_bytes, assembly, false);
        let staged = match Staged::create(bucket, directory) {
            Err(Fail::LostRace(_)) => return Ok(None),
            result => result.map_err(Fail::for_good)?,
        };
        let mut sealed = staged.seal(bucket, None, layout)?;
        match sealed.link(bucket, directory, &layout_name(assembly)) {
            Ok(()) => part.own_assemblies.add(&part.upload.id),
            Err(Errno::EXIST) => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno).op("link a layout"),
        }
        Self::open(directory, assembly).op("open a layout")
    }

    /// Opens the assembly, unless it has become an object: then it no longer has its name.
    pub fn file(&self, directory: &Directory) -> Io<Option<OwnedFd>> {
        match resolve::plain(directory, &assembly_name(self.assembly), OPEN) {
            Err(Errno::NOENT) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Returns the position in the assembly at which a part begins.
    pub fn start(&self, part_number: u32) -> u64 {
        u64::from(part_number).saturating_sub(1).saturating_mul(self.slot_bytes)
    }

    /// True if a part fits its slot and ends within the assembly, whose size is `assembly_bytes`.
    /// Sizes may have any value, since they come from records.
    pub fn has(&self, part_number: u32, size_bytes: u64, assembly_bytes: u64) -> bool {
        // An empty part's place may be beyond the end.
        size_bytes == 0
            || size_bytes <= self.slot_bytes
                && self.start(part_number).checked_add(size_bytes).is_some_and(|end| end <= assembly_bytes)
    }

    /// Takes the shared right to write to the assembly until [`Layout::release`]. Returns false if
    /// the assembly is sealed, or is about to be.
    pub fn share(&self) -> bool {
        let locked = flock(&self.fd, FlockOperation::NonBlockingLockShared).is_ok();
        if locked && !self.is_sealed().unwrap_or(true) {
            return true;
        }
        self.release();
        false
    }

    /// Releases the lock, whether it is shared or exclusive.
    pub fn release(&self) {
        let _ = flock(&self.fd, FlockOperation::Unlock);
    }

    /// True once no more can be written to the assembly.
    pub fn is_sealed(&self) -> Io<bool> {
        Ok(match record::peek_short::<LayoutRecord>(&self.fd)? {
            Reading::Known(record) => record.sealed,
            Reading::Nothing | Reading::Damaged | Reading::Closed => true,
        })
    }

    /// Ends all writing to the assembly permanently. Returns false if a writer does not end. A
    /// power cut may undo the seal: then no writer is left, and later ones see by the assembly's
    /// name whether it is an object. The exclusive lock is kept as long as the layout is open: a
    /// machine to which the file system shows the seal late must find the assembly gone.
    pub fn seal(&self) -> Result<bool> {
        let begun = Instant::now();
        while flock(&self.fd, FlockOperation::NonBlockingLockExclusive).is_err() {
            if begun.elapsed() > SEAL_WAIT_MAX {
                return Ok(false);
            }
            std::thread::sleep(SEAL_WAIT_STEP);
        }
        let sealed = LayoutRecord::of(self.slot_bytes, self.assembly, true);
        record::set_small(&self.fd, &sealed).op("seal an assembly").map(|()| true)
    }
}

/// Cuts a sealed assembly to its final length. Its time becomes the present time, like that of a
/// new file.
pub(super) fn finish(file: &OwnedFd, size_bytes: u64) -> Result<()> {
    rustix::fs::ftruncate(file, size_bytes).op("truncate an assembly")?;
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })
        .op("set a file's time")
}

/// True if an assembly has other names, for example in a snapshot by hard links. Then no more may
/// be written to it.
pub(super) fn is_shared(file: &OwnedFd) -> Io<bool> {
    // Network file systems and FUSE may keep the number of links for each name.
    Ok(file_info::fresh(file)?.links > 1)
}

/// False if a part's record says that its bytes are in an assembly, but they are not.
pub(crate) fn holds(directory: &Directory, part_number: u32, record: &PartRecord) -> Io<bool> {
    let (Some(assembly), Some(size_bytes)) = (record.assembly, record.size_bytes) else { return Ok(true) };
    let Some(layout) = Layout::open(directory, assembly)? else { return Ok(false) };
    match layout.file(directory)? {
        Some(file) => Ok(layout.has(part_number, size_bytes, file_info::of(&file)?.stamp.size_bytes)),
        // It is the object.
        None => layout.is_sealed(),
    }
}

/// True if the object was published: its file, which the journal names, lost its name here in the
/// same step. Nothing else removes that name. If a power cut lost the journal, a missing assembly
/// shows the same. False for an object that replaced a version: its file keeps the name here.
pub(super) fn is_published(directory: &Directory, journal: Option<&CompletionRecord>) -> Result<bool, Fail> {
    let file = journal.and_then(|journal| journal.assembly);
    if let Some(file) = file.filter(|file| *file == WHOLE || ASSEMBLIES.contains(file)) {
        return is_gone(directory, file);
    }
    for assembly in ASSEMBLIES {
        let layout = Layout::open(directory, assembly).attempt("open a layout")?;
        if layout.is_some() && is_gone(directory, assembly)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if a file that could become the object has another name, which it may have as an object.
pub(super) fn has_other_name(directory: &Directory) -> Result<bool, Fail> {
    for assembly in ASSEMBLIES.into_iter().chain([WHOLE]) {
        match file_info::fresh_at(directory, &assembly_name(assembly)) {
            Err(Errno::NOENT) => {}
            info => {
                if info.attempt("stat an assembly")?.links > 1 {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

fn is_gone(directory: &Directory, assembly: u8) -> Result<bool, Fail> {
    match file_info::fresh_at(directory, &assembly_name(assembly)) {
        Err(Errno::NOENT) => Ok(true),
        result => result.attempt("stat an assembly").map(|_| false),
    }
}

/// Removes a name that is no longer needed. If that fails, the name only costs space.
pub(super) fn remove(directory: &Directory, name: &str) {
    let _ = remove_if_there(directory, name);
}

/// Removes a name that may be gone already.
pub(super) fn remove_if_there(directory: &Directory, name: &str) -> Io<()> {
    match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        result => result,
    }
}

fn target_of(upload: &UploadName) -> Target {
    Target {
        bucket: upload.bucket.clone(),
        place: upload.place.clone(),
        conditions: Conditions::default(),
        check: None,
        predecessor: None,
        owner: None,
        rules: None,
        lock: ObjectLock::default(),
        bypass_governance: false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use backend::NewUpload;

    use super::*;
    use crate::layout::keymap::KeyPath;
    use crate::testing::{Scene, digests};
    use crate::upload::create;
    use crate::upload::in_progress::Upload;

    /// The directory of an upload with an assembly, and the layout's file, which has no record yet.
    fn assembly(scene: &Scene) -> (Directory, File) {
        let id = create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
        let path = scene.path().join(format!(".slipway/uploads/{id}"));
        for name in ["assembly1", "layout1"] {
            fs::write(path.join(name), "1").unwrap();
        }
        let name = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id };
        let directory = Upload::open(&scene.bucket(), &name).unwrap().directory;
        (directory, File::open(path.join("layout1")).unwrap())
    }

    /// A slow writer, perhaps of another gateway, must not write into an object that is complete.
    #[test]
    fn an_assembly_is_not_sealed_before_its_last_writer_ends() {
        let scene = Scene::new();
        let (directory, layout) = assembly(&scene);
        record::set_small(&layout, &LayoutRecord::of(PART_BYTES_MIN, 1, false)).unwrap();
        let open = || Layout::open(&directory, 1).unwrap().unwrap();
        let (writer, sealing) = (open(), open());
        assert!(writer.share());
        assert!(!sealing.seal().unwrap());
        assert!(!writer.is_sealed().unwrap());
        writer.release();
        assert!(sealing.seal().unwrap());
        assert!(writer.is_sealed().unwrap() && !writer.share());
    }

    #[test]
    fn sizes_in_records_may_be_anything() {
        let scene = Scene::new();
        let (directory, layout) = assembly(&scene);
        let part = |size_bytes| {
            let mut part = PartRecord::of_bytes(digests(b""));
            (part.size_bytes, part.assembly) = (Some(size_bytes), Some(1));
            part
        };
        for slot_bytes in [PART_BYTES_MIN, u64::MAX - 1, u64::MAX] {
            record::set_small(&layout, &LayoutRecord::of(slot_bytes, 1, false)).unwrap();
            for (number, size_bytes) in [(1, u64::MAX), (2, u64::MAX), (10_000, u64::MAX), (2, 2), (1, 2)] {
                assert!(!holds(&directory, number, &part(size_bytes)).unwrap(), "{number} {size_bytes}");
            }
            assert!(holds(&directory, 1, &part(1)).unwrap());
        }
    }
}
