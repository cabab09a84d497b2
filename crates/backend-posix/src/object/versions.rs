//! Deletes in buckets that keep versions: delete markers, and versions by their ids (decision
//! 0059).

use std::sync::Arc;

use backend::{DeleteReceipt, Result, Versioning};
use kernel_calls::acting::as_self;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use s3_types::VersionId;

use super::aliases;
use crate::base::step::step;
use crate::error::{self, Fail, Op, retrying};
use crate::facts::chain::{self, Chain, Newest, Old};
use crate::facts::foreign::{self, VersitygwUse};
use crate::facts::object_lock::Deletion;
use crate::facts::place::{self, Current, Facts, KeyPlace};
use crate::fs::file_info;
use crate::fs::resolve::{self, READ};
use crate::layout::keymap::{self, DIRECTORY_DATA, KeyPath, SELF, join};
use crate::layout::scattered::scattered_name;
use crate::layout::versions::{Entry, Id};
use crate::listing::{Caches, newest_old};
use crate::record::{Named, ObjectRecord, Reading, Version, order_after, removed_id};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::lock::Lock;
use crate::tree::store::Store;
use crate::write::in_place::{DirectoryObject, sync_names};
use crate::write::keep::{self, Present};
use crate::write::publish::Target;
use crate::write::{directories, key_lock};

/// Deletes the current version of a key, which stays as an old one: a delete marker takes its
/// place. Where versioning is suspended, the null version is removed.
pub(crate) fn delete(store: &Store, target: &Target, versioning: Versioning) -> Result<DeleteReceipt> {
    let is_null = versioning == Versioning::Suspended;
    retrying(|| {
        let bucket = store.bucket(&target.bucket)?;
        let spot = Spot::take(&bucket, target)?;
        target.check(spot.current())?;
        let chain = Chain::make(&bucket, &target.place)?;
        let existed = spot.current().is_some();
        let newest = match &spot.place {
            Some(key_place) if existed => {
                spot.refuse_alias(target)?;
                let present = Present::look(&bucket, key_place)?;
                if is_null && present.is_null() {
                    if let Some(version) = present.version() {
                        target.locked_key(store).refuse_if_locked(version.order)?;
                    }
                    remove_file(&bucket, key_place)?;
                    newest_order(&bucket, &chain)?.max(present.version().map(|version| version.order))
                } else {
                    Some(keep::move_to_chain(&bucket, &chain, key_place, &present)?.order)
                }
            }
            _ => newest_order(&bucket, &chain)?,
        };
        step("the current version is an old one").attempt("write a delete marker")?;
        if is_null {
            keep::remove_null(&chain, target.locked_key(store))?;
        }
        let id = if is_null { Id::Null } else { Id::Order };
        let version = Version { order: order_after(newest), id, is_marker: true };
        put_marker(&bucket, &chain, version)?;
        spot.end(&bucket, target, Some(&chain))?;
        let version = Some(version.text().unwrap_or_else(VersionId::null));
        Ok(DeleteReceipt { existed, version, delete_marker: true })
    })
}

/// Deletes the version of a key that a request names. Without it, nothing is done.
pub(crate) fn delete_named(
    store: &Store,
    caches: &Caches,
    target: &Target,
    named: Named,
) -> Result<DeleteReceipt> {
    retrying(|| {
        let bucket = store.bucket(&target.bucket)?;
        let mut note = None;
        let chain = Chain::open(&bucket, &target.place)?;
        if chain.is_some() {
            // For a version that becomes the current one. No one makes directories under a lock.
            directories::ensure(&bucket, target.directory_path(), target.owner, &mut note)?;
        }
        let spot = Spot::take(&bucket, target)?;
        let deleted = match &spot.place {
            Some(key_place) if spot.current().is_some() => {
                let present = Present::look(&bucket, key_place)?;
                let version = match &chain {
                    Some(chain) => chain.believed(&bucket, present.version())?,
                    None => present.version(),
                };
                let is_it = version.map_or(named == Named::Null, |version| version.is(named));
                if is_it {
                    target.check(spot.current())?;
                    spot.refuse_alias(target)?;
                    delete_current((&bucket, caches), target, chain.as_ref(), (key_place, &present))?;
                }
                is_it.then_some(false)
            }
            _ => None,
        };
        let deleted = match (deleted, &chain) {
            (None, Some(chain)) => {
                let has_file = spot.current().is_some();
                delete_old((&bucket, caches), target, chain, named, has_file)?
            }
            (deleted, _) => deleted,
        };
        if deleted.is_none() {
            target.check(None)?;
        }
        spot.end(&bucket, target, chain.as_ref())?;
        if let Some(note) = note {
            note.remove();
        }
        let version = Some(id_of(named));
        Ok(DeleteReceipt { existed: deleted.is_some(), version, delete_marker: deleted == Some(true) })
    })
}

/// Deletes the current version, unless it is locked.
fn delete_current(
    (bucket, caches): (&Bucket<'_>, &Caches),
    target: &Target,
    chain: Option<&Chain>,
    (key_place, present): (&KeyPlace, &Present),
) -> Result<(), Fail> {
    let key = target.locked_key(bucket.store);
    let order = present.version().map(|version| version.order);
    let inode = bucket.store.lasting_inode(&key_place.directory, present.info());
    let bypass_governance = target.bypass_governance;
    let was_locked = key.release(bucket, &Deletion { order, inode, bypass_governance })?;
    step("a lock is released").attempt("remove a file")?;
    replace_by_newest(bucket, caches, chain, key_place)?;
    records::release_companion(bucket, present.overflow(), &path_of(key_place));
    match order.filter(|_| was_locked) {
        Some(order) => key.remove(order),
        None => Ok(()),
    }
}

/// The place of a key, under its lock.
pub(super) struct Spot {
    pub lock: Lock,
    /// `None` if the directory of the key does not exist.
    pub place: Option<KeyPlace>,
    /// The path of the directory that the key's directory must be, unless a link leads there.
    above: String,
}

impl Spot {
    pub fn take(bucket: &Bucket<'_>, target: &Target) -> Result<Self, Fail> {
        let place = &target.place;
        let facts = target.needs_facts();
        if place.directory {
            let directory = place::existing_directory(bucket, &place.path)?;
            let path = directory.as_ref().map_or(&*place.path, |directory| &directory.path);
            let lock = key_lock::take_directory(bucket, path)?;
            let found = directory.map(|directory| {
                // It may have been removed until we had the lock; from now on it stays.
                let directory = bucket.directory(&directory.path).attempt("open a directory")?;
                let object = DirectoryObject::look(bucket, &directory, facts)?;
                object.make_file(bucket, &directory)?;
                let current = DirectoryObject::look(bucket, &directory, facts)?.file;
                Ok::<_, Fail>(KeyPlace { directory, name: DIRECTORY_DATA.to_owned(), current })
            });
            return Ok(Self { lock, place: found.transpose()?, above: place.path.clone() });
        }
        let (above, name) = keymap::split(&place.path);
        let above = above.to_owned();
        let Some(parent) = place::existing_directory(bucket, &above)? else {
            let lock = key_lock::take(bucket, &place.path)?;
            return Ok(Self { lock, place: None, above });
        };
        let lock = key_lock::take(bucket, &join(&parent.path, name))?;
        let found = place::find(bucket, &parent, name, facts)?.ok_or_else(error::obstacle)?;
        Ok(Self { lock, place: Some(found), above })
    }

    pub fn current(&self) -> Option<&Current> {
        self.place.as_ref().and_then(|place| place.current.as_ref())
    }

    /// Refuses to change an object by a key that leads to it through a link.
    pub fn refuse_alias(&self, target: &Target) -> Result<()> {
        let Some(KeyPlace { directory, name, .. }) = &self.place else { return Ok(()) };
        let inside = !target.place.directory && name == SELF;
        let path = if inside { &target.place.path } else { &self.above };
        aliases::refuse_delete(directory, path)
    }

    /// Flushes what was changed, and removes directories that are empty now.
    fn end(self, bucket: &Bucket<'_>, target: &Target, chain: Option<&Chain>) -> Result<(), Fail> {
        let Self { lock, place, .. } = self;
        if let Some(KeyPlace { directory, .. }) = &place {
            sync_names(bucket, directory)?;
        }
        if let Some(chain) = chain {
            sync_names(bucket, &chain.directory)?;
            chain::remove_empty(bucket, &target.place.path);
        }
        drop(lock);
        if let Some(KeyPlace { directory, .. }) = &place {
            directories::prune(bucket, &directory.path);
        }
        Ok(())
    }
}

fn path_of(key_place: &KeyPlace) -> String {
    join(&key_place.directory.path, &key_place.name)
}

/// Returns the id that a request named.
fn id_of(named: Named) -> VersionId {
    let text = match named {
        Named::Null => None,
        Named::Number(number) => Version { order: number, id: Id::Order, is_marker: false }.text(),
        Named::Removed(order) => removed_id(order),
    };
    text.unwrap_or_else(VersionId::null)
}

/// Returns the order of the newest version or marker in a chain.
pub(super) fn newest_order(bucket: &Bucket<'_>, chain: &Chain) -> Result<Option<u64>, Fail> {
    if let Some(marker) = chain.marker(bucket)? {
        return Ok(Some(marker.order));
    }
    Ok(chain.olds().attempt("read the old versions of a key")?.first().map(|old| old.order))
}

/// Removes the file of a key.
fn remove_file(bucket: &Bucket<'_>, key_place: &KeyPlace) -> Result<(), Fail> {
    let KeyPlace { directory, name, current } = key_place;
    match rustix::fs::unlinkat(directory, &**name, AtFlags::empty()) {
        Ok(()) => {}
        Err(errno @ Errno::ISDIR) => return Err(Fail::lost_to("remove a file", errno)),
        Err(errno) => return Err(errno).attempt("remove a file"),
    }
    let overflow = current.as_ref().and_then(|current| current.overflow);
    records::release_companion(bucket, overflow, &path_of(key_place));
    Ok(())
}

/// Writes the newest delete marker of a key.
fn put_marker(bucket: &Bucket<'_>, chain: &Chain, version: Version) -> Result<(), Fail> {
    let replaced = chain.marker(bucket)?.is_some_and(|old| old.id == Id::Null && version.id == Id::Null);
    if !replaced {
        keep::settle_marker(bucket, chain)?;
    }
    let directory = &*chain.directory.fd;
    let name = scattered_name();
    let record = ObjectRecord::of_version(None, version);
    let written = as_self(|| {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(directory, &*name, flags, Mode::from_raw_mode(0o600))?;
        bucket.hand_over(&file)?;
        records::stage(bucket.store, &file, &record)?;
        if bucket.store.options.durability.syncs_data() {
            rustix::fs::fsync(&file)?;
        }
        rustix::fs::renameat(directory, &*name, directory, chain.name(Entry::Deleted))
    });
    if written.is_err() {
        let _ = as_self(|| rustix::fs::unlinkat(directory, &*name, AtFlags::empty()));
    }
    written.attempt("write a delete marker")
}

/// Removes the file of the current version, which is deleted: the newest old version takes its
/// place. If that is a delete marker, the key has no file then.
fn replace_by_newest(
    bucket: &Bucket<'_>,
    caches: &Caches,
    chain: Option<&Chain>,
    key_place: &KeyPlace,
) -> Result<(), Fail> {
    let Some(chain) = chain else { return remove_file(bucket, key_place) };
    keep::settle_marker(bucket, chain)?;
    match newest_old(bucket, caches, chain)? {
        None => remove_file(bucket, key_place),
        Some((marker, true)) => {
            chain.rename_to_newest(marker)?;
            step("a delete marker is the newest version").attempt("remove a file")?;
            remove_file(bucket, key_place)
        }
        Some((old, false)) => move_to_place(bucket, chain, old, key_place, RenameFlags::empty()),
    }
}

/// Moves an old version to the place of its key.
fn move_to_place(
    bucket: &Bucket<'_>,
    chain: &Chain,
    old: Old,
    key_place: &KeyPlace,
    flags: RenameFlags,
) -> Result<(), Fail> {
    let KeyPlace { directory, name, .. } = key_place;
    let old_name = chain.name(old.entry());
    let overflow = chain.record(bucket, old.entry())?.and_then(|(record, _)| record.overflow);
    rustix::fs::renameat_with(&chain.directory, &*old_name, directory, &**name, flags)
        .attempt("make an old version the current one")?;
    match overflow {
        Some(overflow) => records::move_companion(bucket, overflow, &path_of(key_place)),
        None => Ok(()),
    }
}

/// Deletes an old version or a delete marker. Returns whether it was a marker; `None` if there is
/// no such version.
fn delete_old(
    (bucket, caches): (&Bucket<'_>, &Caches),
    target: &Target,
    chain: &Chain,
    named: Named,
    has_file: bool,
) -> Result<Option<bool>, Fail> {
    let marker = chain.marker(bucket)?.filter(|marker| marker.is(named));
    let is_removed = match named {
        Named::Removed(order) if !has_file => {
            matches!(chain.newest(bucket)?, Some(Newest::Removed(newest)) if newest == order)
        }
        _ => false,
    };
    if marker.is_some() || is_removed {
        target.check(None)?;
        if !has_file {
            undelete((bucket, caches), target, chain)?;
        }
        // One that nobody made has no file. A marker that is the newest version now stays.
        if is_removed || !has_file && chain.marker(bucket)?.map(|now| now.order) != marker.map(|m| m.order) {
            return Ok(Some(true));
        }
        chain.unlink(Entry::Deleted)?;
        return Ok(Some(true));
    }
    let Some(old) = chain.find(bucket, named)? else { return Ok(None) };
    let Some((record, info)) = chain.record(bucket, old.entry())? else { return Ok(None) };
    let is_marker = record.version.is_some_and(|version| version.is_marker);
    let current =
        if is_marker || !target.needs_facts() { None } else { Some(current_of(bucket, target, chain, old)?) };
    if is_marker || current.is_some() {
        target.check(current.as_ref())?;
    }
    let key = target.locked_key(bucket.store);
    let inode = bucket.store.lasting_inode(&chain.directory, &info);
    let deletion = Deletion { order: Some(old.order), inode, bypass_governance: target.bypass_governance };
    let was_locked = !is_marker && key.release(bucket, &deletion)?;
    step("a lock is released").attempt("remove an old version")?;
    chain.unlink(old.entry())?;
    let path = join(&chain.directory.path, &chain.name(old.entry()));
    records::release_companion(bucket, record.overflow, &path);
    if was_locked {
        key.remove(old.order)?;
    }
    Ok(Some(is_marker))
}

/// Makes the newest old version of a key the current one, if it is no marker. If it is one, it
/// becomes the newest delete marker.
fn undelete((bucket, caches): (&Bucket<'_>, &Caches), target: &Target, chain: &Chain) -> Result<(), Fail> {
    match newest_old(bucket, caches, chain)? {
        None => Ok(()),
        Some((marker, true)) => chain.rename_to_newest(marker),
        Some((old, false)) => {
            let directory = bucket.directory(target.directory_path()).attempt("open a directory")?;
            let key_place = free_place(bucket, &target.place, directory)?;
            move_to_place(bucket, chain, old, &key_place, RenameFlags::NOREPLACE)?;
            step("an old version is the current one").attempt("remove a delete marker")
        }
    }
}

/// Returns the place of a key that has no file.
fn free_place(bucket: &Bucket<'_>, place: &KeyPath, directory: Directory) -> Result<KeyPlace, Fail> {
    if place.directory {
        return Ok(KeyPlace { directory, name: DIRECTORY_DATA.to_owned(), current: None });
    }
    let (_, name) = keymap::split(&place.path);
    place::find(bucket, &directory, name, false)?.ok_or_else(error::obstacle)
}

/// Returns the facts of an old version, on which conditions and checks depend.
pub(super) fn current_of(
    bucket: &Bucket<'_>,
    target: &Target,
    chain: &Chain,
    old: Old,
) -> Result<Current, Fail> {
    let path = join(&chain.directory.path, &chain.name(old.entry()));
    let read = as_self(|| {
        let file = Arc::new(resolve::plain(&bucket.fd, &path, READ)?);
        let info = file_info::of(&file)?;
        let record: Reading<ObjectRecord> = records::of(bucket.store, &bucket.fd, &path, &file)?;
        Ok((file, info, record))
    });
    let (file, info, record) = read.attempt("read an old version")?;
    let record = record.opened_version(|| bucket.place().join(&path))?;
    let overflow = record.as_ref().and_then(|record| record.overflow);
    let attached = match &record {
        Some(record) => place::attached(bucket, &path, record, |record| &record.attached)?,
        None => crate::record::Attached::none(),
    };
    let shown = bucket.store.lasting(&file, &info);
    let versitygw = VersitygwUse::for_etags(&bucket.store.options);
    let attributes = foreign::attributes_of(&file, record, &shown, &target.place.key, versitygw);
    let facts = Facts {
        etag: attributes.etag,
        last_modified: attributes.last_modified,
        size_bytes: attributes.size_bytes,
        inode: None,
        attached,
    };
    Ok(Current { facts: Some(facts), overflow })
}

#[cfg(test)]
mod tests;
