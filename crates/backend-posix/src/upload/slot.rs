//! A part's slot in an assembly, for its writer.

use backend::{BackendError, BusyResource, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::assembly::{Layout, is_shared, remove};
use super::part::PartTarget;
use crate::base::options::Metadata;
use crate::error::{Fail, Op};
use crate::fs::{file_info, resolve};
use crate::layout::uploads::{ASSEMBLIES, DESCRIPTION, claim_name};
use crate::limits::ASSEMBLY_BYTES_MAX;
use crate::tree::bucket::{Bucket, Directory};
use crate::write::staging::{Staged, Window};

/// A claim to a slot. There is at most one for each slot, so that a slot has one writer.
#[derive(Debug)]
pub(super) struct Slot {
    layout: Layout,
    directory: Directory,
    claim: String,
    start: u64,
    /// The announced size, which is the most that may be written.
    size_bytes: u64,
    /// True if other machines may write to the same file, and written data may stay in their
    /// memory.
    shared: bool,
    /// True if a part may have been published whose record says that its bytes are in this slot.
    published: bool,
}

impl Slot {
    /// Claims the slot for a part of `size_bytes`, and opens the assembly. `None` if the part needs
    /// a file of its own: it does not fit the slots, or its slot is already claimed.
    pub fn claim(bucket: &Bucket<'_>, part: &PartTarget, size_bytes: u64) -> Result<Option<(OwnedFd, Self)>> {
        // The layout of an assembly is an attribute, wherever records are.
        if bucket.store.metadata() == Metadata::Sidecar {
            return Ok(None);
        }
        for assembly in ASSEMBLIES {
            let layout = match Layout::open(&part.directory, assembly).op("open a layout")? {
                Some(layout) => Some(layout),
                None => Layout::create(bucket, part, assembly, size_bytes)?,
            };
            match layout {
                None => return Ok(None),
                Some(layout) if size_bytes <= layout.slot_bytes => {
                    return Self::claim_in(bucket, part, size_bytes, layout);
                }
                Some(_) => {}
            }
        }
        Ok(None)
    }

    fn claim_in(
        bucket: &Bucket<'_>,
        part: &PartTarget,
        size_bytes: u64,
        layout: Layout,
    ) -> Result<Option<(OwnedFd, Self)>> {
        let start = layout.start(part.number);
        let device = file_info::stat(&part.directory)?.device;
        let shared = !bucket.store.times_are_final(device);
        let anothers = shared && !part.own_assemblies.has(&part.upload.id);
        if start.saturating_add(size_bytes) > ASSEMBLY_BYTES_MAX || anothers || !layout.share() {
            return Ok(None);
        }
        let Some(file) = layout.file(&part.directory).op("open an assembly")? else { return Ok(None) };
        if is_shared(&file).op("stat an assembly")? {
            return Ok(None);
        }
        let claim = claim_name(part.number, layout.assembly);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match resolve::create(&part.directory, &claim, flags, Mode::from_raw_mode(0o600)) {
            Ok(_) => {}
            // An upload that is gone is found to be so later.
            Err(Errno::EXIST | Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno).op("claim a slot"),
        }
        let directory = part.directory.clone();
        let slot = Self { layout, directory, claim, start, size_bytes, shared, published: false };
        slot.leave();
        Ok(Some((file, slot)))
    }
}

impl Window for Slot {
    fn start(&self) -> u64 {
        self.start
    }

    fn enter(&self, end: u64) -> Result<()> {
        if end > self.size_bytes {
            let source = std::io::Error::other("the part has more bytes than the request announced");
            return Err(BackendError::Io { operation: "write a part", source });
        }
        if self.layout.share() {
            return Ok(());
        }
        // The upload was completed, or is being so, without this part.
        match file_info::fresh_at(&self.directory, DESCRIPTION) {
            Err(Errno::NOENT) => Err(BackendError::NoSuchUpload),
            _ => Err(BackendError::Busy(BusyResource::Upload)),
        }
    }

    /// Keeps the lock to the end where unlocking may wait for a server.
    fn leave(&self) {
        if !self.shared {
            self.layout.release();
        }
    }

    fn note(&self, bucket: &Bucket<'_>, assembly: &OwnedFd, size_bytes: u64) -> Result<(Staged, u8)> {
        // Held until the part is published: from then on, nobody else takes the slot for free.
        self.enter(size_bytes)?;
        if bucket.store.options.durability.syncs_data() || self.shared {
            rustix::fs::fsync(assembly).op("sync a file")?;
        }
        let staged = match Staged::create(bucket, &self.directory) {
            Err(Fail::LostRace(_)) => return Err(BackendError::NoSuchUpload),
            result => result.map_err(Fail::for_good)?,
        };
        Ok((staged, self.layout.assembly))
    }

    fn keep(&mut self) {
        self.published = true;
    }

    /// Frees the space of a failed part, and the claim unless writes of it may still be pending.
    fn give_up(&self, assembly: &OwnedFd) {
        // Not once it is sealed: the slot may have been given to a part with a file of its own.
        if self.published || !self.layout.share() {
            return;
        }
        punch(assembly, self.start, self.size_bytes);
        if !self.shared {
            remove(&self.directory, &self.claim);
        }
        self.layout.release();
    }
}

/// Frees the space of a range of a file, if possible.
pub(super) fn punch(file: &OwnedFd, start: u64, length: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = rustix::fs::fallocate(file, flags, start, length);
}
