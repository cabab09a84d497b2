//! Puts the parts of an object together in one file. It is no work if they are in place already;
//! otherwise the file system shares their blocks if it can, or they are copied.

use backend::Result;
use kernel_calls::acting::{as_self, is_acting};
use rustix::fd::OwnedFd;
use rustix::process::{Gid, Uid};

use super::assembly::{self, Layout};
use super::in_progress::Upload;
use super::part::{Part, PartBytes};
use super::slot::punch;
use crate::error::{Fail, Io, Op};
use crate::fs::file_info;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::uploads::{ASSEMBLIES, assembly_name, part_number};
use crate::object::{append_range, copy_bytes};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;
use crate::write::publish::{Stage, Target};
use crate::write::staging::Staged;

/// An assembly that has not become an object yet.
struct Assembly {
    layout: Layout,
    file: OwnedFd,
    size_bytes: u64,
    device: u64,
    /// True if the file has other names, and must not be changed.
    shared: bool,
}

/// The attributes that new files in the object's directory get.
struct Place {
    device: u64,
    /// The owner and group that the file must get back if the assembly was given to a user, but the
    /// client that completes the upload has none.
    owner: Option<(Uid, Gid)>,
}

impl Place {
    fn of(bucket: &Bucket<'_>, directory: &Directory, target: &Target) -> Result<Self, Fail> {
        let device = file_info::stat(directory)?.device;
        if target.owner.is_some() || !bucket.store.options.chown {
            return Ok(Self { device, owner: None });
        }
        let new = Staged::create(bucket, directory)?;
        let stat = rustix::fs::fstat(new.file()).attempt("stat a file")?;
        Ok(Self { device, owner: Some((Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid))) })
    }

    /// Gives the file back to the owner of a new file, if that is needed.
    fn take_back(&self, file: &OwnedFd) -> Io<()> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        rustix::fs::fchown(file, Some(user), Some(group))
    }
}

/// A file with the bytes of all parts.
pub(super) struct Gathered<'s> {
    pub stage: Stage<'s>,
    /// The layout whose seal keeps others from writing to the file, held until the file is
    /// published.
    pub sealed: Option<Layout>,
}

/// Makes a file with the bytes of `parts`, `size_bytes` in total.
pub(super) fn gather<'s>(
    store: &'s Store,
    target: &Target,
    upload: &Upload,
    parts: &[Part],
    size_bytes: u64,
) -> Result<Gathered<'s>, Fail> {
    let mut assemblies = as_self(|| open_assemblies(upload, parts))?;
    // The object is the requester's from its first byte on: then all parts are copied.
    let chosen = if is_acting() { None } else { choose(store, upload, &assemblies, parts, size_bytes)? };
    if let Some(chosen) = chosen {
        let base = &assemblies[chosen];
        let stage = target.stage_with(store, |bucket, directory| Place::of(bucket, directory, target))?;
        // On another file system it could not be published by giving it a name. And until it was
        // sealed, parts may have come that would be cut off: then all are copied.
        if stage.staged.device == base.device
            && base.layout.seal()?
            && !would_cut(store, upload, base, parts, size_bytes)?
        {
            let staged = in_place(store, upload, base, &assemblies, parts, size_bytes)?;
            stage.staged.take_back(staged.file()).op("change the owner of a file")?;
            let stage = Stage { bucket: stage.bucket, directory: stage.directory, staged };
            return Ok(Gathered { stage, sealed: Some(assemblies.swap_remove(chosen).layout) });
        }
    }
    let mut stage = target.stage(store)?;
    for part in parts {
        with_source(store, upload, &assemblies, part, |file, start| {
            let range = start..start.saturating_add(part.size_bytes);
            append_range(file, range, &mut stage.staged, &|| Ok(()))
        })?;
    }
    Ok(Gathered { stage, sealed: None })
}

/// Calls `run` with the file that has a part's bytes, and the position of the bytes in it.
fn with_source(
    store: &Store,
    upload: &Upload,
    assemblies: &[Assembly],
    part: &Part,
    run: impl FnOnce(&OwnedFd, u64) -> Result<()>,
) -> Result<(), Fail> {
    match part.bytes {
        PartBytes::Own { .. } => run(&part.open(store, &upload.directory)?, 0)?,
        PartBytes::Slot { assembly } => {
            let assembly = find(assemblies, assembly).ok_or_else(|| part.invalid())?;
            run(&assembly.file, assembly.layout.start(part.number))?;
        }
    }
    Ok(())
}

/// Opens the assemblies, and checks that they have the parts whose records say so.
fn open_assemblies(upload: &Upload, parts: &[Part]) -> Result<Vec<Assembly>, Fail> {
    let mut assemblies = Vec::new();
    for number in ASSEMBLIES {
        let Some(layout) = Layout::open(&upload.directory, number).attempt("open a layout")? else {
            continue;
        };
        let Some(file) = layout.file(&upload.directory).attempt("open an assembly")? else { continue };
        let info = file_info::of(&file).attempt("stat an assembly")?;
        let shared = assembly::is_shared(&file).attempt("stat an assembly")?;
        let (size_bytes, device) = (info.stamp.size_bytes, info.device);
        assemblies.push(Assembly { layout, file, size_bytes, device, shared });
    }
    for part in parts {
        let PartBytes::Slot { assembly } = part.bytes else { continue };
        let whole = find(&assemblies, assembly)
            .is_some_and(|assembly| assembly.layout.has(part.number, part.size_bytes, assembly.size_bytes));
        // Like a part's own file that is not as it was recorded.
        if !whole {
            return Err(part.invalid().into());
        }
    }
    Ok(assemblies)
}

fn find(assemblies: &[Assembly], number: u8) -> Option<&Assembly> {
    assemblies.iter().find(|assembly| assembly.layout.assembly == number)
}

/// Chooses the assembly that can become the object's file. Its slots must fit the parts without a
/// gap, and some of the parts must be in it already. Cutting it to the object's size must not lose
/// a part that was left out.
fn choose(
    store: &Store,
    upload: &Upload,
    assemblies: &[Assembly],
    parts: &[Part],
    size_bytes: u64,
) -> Result<Option<usize>, Fail> {
    let Some((last, rest)) = parts.split_last() else { return Ok(None) };
    // They ascend, so that the number of the last tells that there is no gap.
    if last.number as usize != parts.len() {
        return Ok(None);
    }
    for (n, assembly) in assemblies.iter().enumerate() {
        let slot_bytes = assembly.layout.slot_bytes;
        let here = PartBytes::Slot { assembly: assembly.layout.assembly };
        if !assembly.shared
            && parts.iter().any(|part| part.bytes == here)
            && rest.iter().all(|part| part.size_bytes == slot_bytes)
            && last.size_bytes <= slot_bytes
            && !(assembly.size_bytes > size_bytes && reaches_beyond(store, upload, last.number, here)?)
        {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

/// True if cutting an assembly to `size_bytes` would lose a part that is not among `parts`. Once
/// the assembly is sealed, the answer does not change.
fn would_cut(
    store: &Store,
    upload: &Upload,
    assembly: &Assembly,
    parts: &[Part],
    size_bytes: u64,
) -> Result<bool, Fail> {
    let now = file_info::fresh(&assembly.file).attempt("stat an assembly")?;
    let last = parts.last().map_or(0, |part| part.number);
    let here = PartBytes::Slot { assembly: assembly.layout.assembly };
    Ok(now.stamp.size_bytes > size_bytes && reaches_beyond(store, upload, last, here)?)
}

/// True if a part with a number above `last` is in the same assembly.
fn reaches_beyond(store: &Store, upload: &Upload, last: u32, here: PartBytes) -> Result<bool, Fail> {
    let directory = resolve::plain(&upload.directory, "", DIRECTORY).attempt("open an upload")?;
    for (name, _) in entries(&directory).attempt("read an upload")? {
        if let Some(number) = part_number(&name).filter(|number| *number > last)
            && let Some(part) = Part::read(store, &upload.directory, number).attempt("read a part")?
            && part.bytes == here
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Makes a sealed assembly the object's file. If that fails, all parts are unchanged.
fn in_place(
    store: &Store,
    upload: &Upload,
    base: &Assembly,
    assemblies: &[Assembly],
    parts: &[Part],
    size_bytes: u64,
) -> Result<Staged, Fail> {
    let here = PartBytes::Slot { assembly: base.layout.assembly };
    for part in parts.iter().filter(|part| part.bytes != here) {
        // From the seal on, no one can publish it in its slot; until then, someone may have.
        if Part::read(store, &upload.directory, part.number).attempt("read a part")?.as_ref() != Some(part) {
            return Err(Fail::lost("read a part that was uploaded again"));
        }
        let to = base.layout.start(part.number);
        with_source(store, upload, assemblies, part, |file, from| {
            copy_bytes(file, from, &base.file, to, part.size_bytes)
                .inspect_err(|_| punch(&base.file, to, part.size_bytes))
        })?;
    }
    assembly::finish(&base.file, size_bytes)?;
    let file = rustix::io::fcntl_dupfd_cloexec(&base.file, 0).attempt("open an assembly")?;
    let directory = std::sync::Arc::clone(&upload.directory.fd);
    Ok(Staged::adopt(file, directory, assembly_name(base.layout.assembly), size_bytes))
}
