//! The slot of a part in an assembly, for its writer.

use backend::{BackendError, BusyResource, Result};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::assembly::{Layout, is_shared, remove};
use super::part::PartTarget;
use crate::base::options::Metadata;
use crate::error::{Fail, Op};
use crate::fs::{file_info, files, resolve};
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
    /// The announced size of the part in bytes, which is the most that may be written.
    size_bytes: u64,
    /// True if other machines may write to the same file, and written data may stay in their
    /// memory.
    shared: bool,
    /// True if it is enough that the part's bytes are on the device before its name is flushed,
    /// since the file system's journal keeps the order of changes.
    ordered: bool,
    /// True if a record may have been published that says that the part's bytes are in this slot.
    published: bool,
}

impl Slot {
    /// Claims the slot for a part of `size_bytes`, and opens the assembly. Returns `None` if the
    /// part needs a file of its own: because records are in files; because the upload has no
    /// layout, and none can be made; because the part does not fit the slots, or would end beyond
    /// the largest assembly; because its slot is already claimed; or because the assembly is sealed
    /// or about to be, has another name, is gone, or belongs to another gateway on a file system
    /// that machines share.
    pub fn claim(bucket: &Bucket<'_>, part: &PartTarget, size_bytes: u64) -> Result<Option<(OwnedFd, Self)>> {
        // The layout of an assembly is an attribute, wherever records are.
        // An object that is the requester's own begins as a file of the requester's.
        if bucket.store.metadata() == Metadata::Sidecar || bucket.store.options.impersonate {
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
        // The assembly and the part's name are on the same device as the upload's directory.
        let ordered = !shared && bucket.store.keeps_order(device);
        let slot = Self { layout, directory, claim, start, size_bytes, shared, ordered, published: false };
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

    /// Releases the lock, except where unlocking may wait for a server: there it is kept until the
    /// part is complete.
    fn leave(&self) {
        if !self.shared {
            self.layout.release();
        }
    }

    fn note(&self, bucket: &Bucket<'_>, assembly: &OwnedFd, size_bytes: u64) -> Result<(Staged, u8)> {
        // Held until the part is published: from then on, nobody else takes the slot for free.
        self.enter(size_bytes)?;
        self.flush(bucket, assembly, size_bytes)?;
        let staged = match Staged::create(bucket, &self.directory) {
            Err(Fail::LostRace(_)) => return Err(BackendError::NoSuchUpload),
            result => result.map_err(Fail::for_good)?,
        };
        Ok((staged, self.layout.assembly))
    }

    fn keep(&mut self) {
        self.published = true;
    }

    /// Frees the space of a failed part. Also removes the claim, unless writes of the part may
    /// still be pending.
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

impl Slot {
    /// Brings the part's bytes to the device, before a record says that they are there. If the
    /// journal keeps the order, only these bytes are written out, and not those of the parts that
    /// others are writing to the same file: the blocks and the size of the file are in the journal
    /// once the bytes are written, before the part's record and name, one of which is flushed
    /// (decision 0007).
    fn flush(&self, bucket: &Bucket<'_>, assembly: &OwnedFd, size_bytes: u64) -> Result<()> {
        if !bucket.store.options.durability.syncs_data() && !self.shared {
            return Ok(());
        }
        if !self.ordered {
            return rustix::fs::fsync(assembly).op("sync a file");
        }
        let part = self.start..self.start + size_bytes;
        let written = kernel_calls::write_out_part(assembly, &part);
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).op("flush a part")
    }
}

/// Frees the space of a range of a file, if possible.
pub(super) fn punch(file: &OwnedFd, start: u64, length: u64) {
    let _ = files::punch(file, start, length);
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use backend::NewUpload;
    use bytes::Bytes;
    use s3_types::limits::PART_BYTES_MIN;

    use crate::layout::keymap::KeyPath;
    use crate::object::Destination as _;
    use crate::testing::{Scene, digests};
    use crate::upload::create;
    use crate::upload::in_progress::UploadName;
    use crate::upload::part::PartTarget;

    /// Writes two parts to an assembly, publishes the first, and returns how many pages of each are
    /// dirty then. `None` if none was dirty before: in memory, or where the kernel counts none.
    fn dirty_after_first(ordered: bool) -> Option<[u64; 2]> {
        let mut scene = Scene::new();
        scene.store.volume.ordered = ordered;
        let id = create(&scene.store, &scene.name, "a", &NewUpload::default()).unwrap();
        let upload = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id: id.clone() };
        let (own_assemblies, announced) = (&scene.caches.own_assemblies, Some(PART_BYTES_MIN));
        let parts = [1, 2].map(|number| {
            PartTarget::open(&scene.store, own_assemblies, upload.clone(), number, announced, None).unwrap().0
        });
        let body = Bytes::from(vec![7; usize::try_from(PART_BYTES_MIN).unwrap()]);
        let stages = parts.each_ref().map(|part| {
            let mut stage = part.stage(&scene.store).unwrap();
            stage.staged.append(std::slice::from_ref(&body)).unwrap();
            stage
        });
        let assembly = File::open(scene.path().join(format!(".slipway/uploads/{id}/assembly1"))).ok()?;
        let dirty = || {
            let part = |n: u64| (n * PART_BYTES_MIN)..(n + 1) * PART_BYTES_MIN;
            [0, 1].map(|n| kernel_calls::dirty_pages(&assembly, &part(n)).unwrap_or(0))
        };
        if dirty().contains(&0) {
            return None;
        }
        let [first, _second] = stages;
        parts[0].publish(&scene.store, Some(first), digests(&body)).unwrap();
        Some(dirty())
    }

    /// If the journal keeps the order, a part waits for its own bytes and not for those that others
    /// write to the same file.
    #[test]
    fn a_part_flushes_its_own_bytes_alone() {
        let Some(all) = dirty_after_first(false) else {
            return eprintln!("\n*** SKIPPED: no dirty pages here, so flushes of parts are NOT tested ***\n");
        };
        assert_eq!(all, [0, 0]);
        // The kernel may write the other one at any time by itself.
        let seen = (0..20).find_map(|_| dirty_after_first(true).filter(|[_, other]| *other > 0));
        assert_eq!(seen.map(|[own, _]| own), Some(0));
    }
}
