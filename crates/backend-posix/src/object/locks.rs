//! The object locks of versions (Get- and PutObjectRetention, Get- and PutObjectLegalHold).

use backend::{BackendError, LockChange, LockRules, Result};
use s3_types::{LockStrength, ObjectLock, VersionId};

use super::open::{Opened, open, open_version};
use super::tags;
use super::versions::{Spot, current_of, newest_order};
use crate::error::{Fail, Op, leads_nowhere, retrying};
use crate::facts::chain::Chain;
use crate::facts::foreign;
use crate::facts::lock_entry::{LockEntry, LockReading, LockedFile};
use crate::facts::object_lock::LockedKey;
use crate::facts::place::KeyPlace;
use crate::fs::file_info;
use crate::fs::resolve;

use crate::layout::versions::{Id, Order};
use crate::record::{Named, Version, order_after};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::lock::Lock;
use crate::tree::lock_time;
use crate::tree::store::Store;
use crate::write::keep::Present;
use crate::write::publish::Target;

/// Returns the lock of a version, and the id of the version.
pub(crate) fn lock_of(
    store: &Store,
    target: &Target,
    named: Option<Named>,
) -> Result<(ObjectLock, Option<VersionId>)> {
    let opened = find(store, target, named)?;
    check(target, &opened)?;
    rules(target)?;
    let order = opened.version.map(|version| version.order);
    let lock = retrying(|| target.locked_key(store).shown(order))?;
    Ok((lock, opened.attributes.version))
}

/// Changes the lock of a version, and returns the id of the version. The lock is on disk when this
/// returns.
pub(crate) fn put_lock(
    store: &Store,
    target: &Target,
    named: Option<Named>,
    change: LockChange,
) -> Result<Option<VersionId>> {
    retrying(|| {
        let opened = find(store, target, named)?;
        check(target, &opened)?;
        rules(target)?;
        let bucket = store.bucket(&target.bucket)?;
        let spot = Spot::take(&bucket, target)?;
        if let Some(key_place) = &spot.place
            && key_place.current.is_some()
        {
            let present = Present::look(&bucket, key_place)?;
            let is_it = |named| match present.version() {
                Some(version) => version.is(named),
                None => named == Named::Null,
            };
            if named.is_none_or(is_it) {
                spot.refuse_alias(target)?;
                target.check_access(spot.current())?;
                let order = match present.version() {
                    Some(version) => version.order,
                    None => give_order(&bucket, target, &spot.lock, key_place)?,
                };
                let inode = bucket.store.lasting_inode(&key_place.directory, present.info());
                let etag = Some(&opened.attributes.etag).filter(|etag| !foreign::is_foreign(etag));
                let etag = etag.map(ToString::to_string);
                let was = LockedFile { stamp: present.info().stamp, inode, etag };
                change_lock(&target.locked_key(store), order, was, change)?;
                return Ok(opened.attributes.version);
            }
        }
        let Some(named) = named else { return Err(Fail::lost("lock an object that was deleted")) };
        put_of_old(&bucket, target, named, change)?;
        Ok(opened.attributes.version)
    })
}

/// Changes the lock of an old version.
fn put_of_old(bucket: &Bucket<'_>, target: &Target, named: Named, change: LockChange) -> Result<(), Fail> {
    let lost = || Fail::lost("look up an old version to lock");
    let chain = Chain::open(bucket, &target.place)?.ok_or_else(lost)?;
    let old = chain.find(bucket, named)?.ok_or_else(lost)?;
    let (record, info) = chain.record(bucket, old.entry())?.ok_or_else(lost)?;
    if record.version.is_some_and(|version| version.is_marker) {
        return Err(lost());
    }
    if target.check.is_some() {
        target.check_access(Some(&current_of(bucket, target, &chain, old)?))?;
    }
    let inode = bucket.store.lasting_inode(&chain.directory, &info);
    let etag = record.content.etag.as_ref().map(ToString::to_string);
    let was = LockedFile { stamp: info.stamp, inode, etag };
    change_lock(&target.locked_key(bucket.store), old.order, was, change)
}

/// Fails if nothing in the bucket can be locked.
fn rules(target: &Target) -> Result<LockRules> {
    target.lock_rules()?.ok_or(BackendError::NoObjectLock)
}

fn check(target: &Target, opened: &Opened) -> Result<()> {
    match &target.check {
        Some(check) => Ok(check.check(Some(&opened.attached.facts()))?),
        None => Ok(()),
    }
}

fn find(store: &Store, target: &Target, named: Option<Named>) -> Result<Opened> {
    match named {
        None => open(store, &target.bucket, &target.place),
        named => open_version(store, &target.bucket, &target.place, named),
    }
}

/// Gives the current version an order, which its record lacks, and so makes it the null version
/// whatever file comes after it.
fn give_order(
    bucket: &Bucket<'_>,
    target: &Target,
    lock: &Lock,
    KeyPlace { directory, name, .. }: &KeyPlace,
) -> Result<Order, Fail> {
    let newest = match Chain::open(bucket, &target.place)? {
        Some(chain) => newest_order(bucket, &chain)?,
        None => None,
    };
    let version = Version { order: order_after(newest), id: Id::Null, is_marker: false };
    let file = match resolve::content(directory, name) {
        Err(errno) if leads_nowhere(errno) => return Err(Fail::lost_to("open a file to lock", errno)),
        result => result.attempt("open a file")?,
    };
    let stamp = file_info::stat(&file)?.stamp;
    let present = records::Present { bucket, directory, name, file: &file, replaces_damaged: &|| Ok(false) };
    let with_order = |old| {
        let mut record = tags::kept(old, stamp, &target.place.key);
        record.version = Some(version);
        record
    };
    if !records::update(lock, &present, with_order)? {
        return Err(Fail::lost("lock a file that was replaced"));
    }
    rustix::fs::fsync(&file).attempt("sync a file")?;
    Ok(version.order)
}

/// Changes the lock of the version with this order, which exists.
fn change_lock(key: &LockedKey<'_>, order: Order, was: LockedFile, change: LockChange) -> Result<(), Fail> {
    let now = lock_time::now(key.store)?.passed;
    let present = match key.find(order)?.map(|found| found.reading) {
        None => LockEntry { lock: ObjectLock::default(), was },
        Some(LockReading::Known(entry)) => entry,
        Some(LockReading::Unreadable) => return Err(BackendError::Locked.into()),
    };
    let lock = match change {
        LockChange::LegalHold(held) => ObjectLock { legal_hold: Some(held), ..present.lock },
        LockChange::Retention { retention, bypass_governance } => {
            let passed = if bypass_governance { LockStrength::Governed } else { LockStrength::None };
            if present.lock.needed_for(retention, now) > passed {
                return Err(BackendError::Locked.into());
            }
            ObjectLock { retention, ..present.lock }
        }
    };
    if lock.is_empty() {
        return key.remove(order);
    }
    // What the version was when it was first locked stays.
    key.put(order, &LockEntry { lock, ..present })
}

#[cfg(test)]
mod tests;
