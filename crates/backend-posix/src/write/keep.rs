//! Keeps the version that a write replaces (decision 0059).
//!
//! The staged file gets the name in the key's chain that the present version is to have, and then
//! the two names are exchanged. So each file is where it belongs in one step. A crash before it
//! leaves a file in the chain that is no version ([`chain`](crate::facts::chain)).
//!
//! The caller holds the lock of the key.

use backend::BackendError;
use rustix::fs::{FileType, RenameFlags};
use rustix::io::Errno;

use super::in_place::sync_names;
use super::sealed::Sealed;
use crate::base::step::step;
use crate::error::{Fail, Op};
use crate::facts::chain::{Chain, Newest, Old};
use crate::facts::object_lock::LockedKey;
use crate::facts::place::KeyPlace;
use crate::fs::file_info::{self, FileInfo};
use crate::layout::keymap::join;
use crate::layout::overflow::OverflowId;
use crate::layout::versions::{Entry, Id};
use crate::record::{ObjectRecord, Reading, Version, order_after};
use crate::records;
use crate::tree::bucket::Bucket;

/// The present version of a key, as it was looked at under the lock.
pub(crate) struct Present {
    /// The version that its record says; `None` for a file without one, whose id is `null`.
    version: Option<Version>,
    info: FileInfo,
    overflow: Option<OverflowId>,
}

impl Present {
    /// Looks at the file of a key. Fails if its record is damaged: the file may be any version.
    pub fn look(bucket: &Bucket<'_>, key_place: &KeyPlace) -> Result<Self, Fail> {
        let KeyPlace { directory, name, .. } = key_place;
        let info = file_info::at(directory, name).attempt("look up a name")?;
        if info.kind == FileType::Symlink {
            let why = "by a symbolic link, which cannot be kept as an old version";
            return Err(BackendError::Obstructed(why).into());
        }
        let record: Reading<ObjectRecord> =
            records::read(bucket.store, directory, name).attempt("read a record")?;
        let record = record.opened_version(|| bucket.place().join(&directory.path).join(name))?;
        let (version, overflow) = record.map_or((None, None), |record| (record.version, record.overflow));
        Ok(Self { version: version.filter(|version| !version.is_marker), info, overflow })
    }

    /// True if it is the null version.
    pub fn is_null(&self) -> bool {
        self.version.is_none_or(|version| version.id == Id::Null)
    }

    /// Returns the id of the companion of the file's record.
    pub fn overflow(&self) -> Option<OverflowId> {
        self.overflow
    }

    /// Returns the time since which it is the current version, in ns; a file without an order of
    /// its own has been so for the time that it has not changed, at least.
    pub fn since_ns(&self) -> i128 {
        self.version.map_or(self.info.changed_ns, |version| i128::from(version.order))
    }

    /// Returns the attributes of the file.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Returns the version, if the record of the file says one.
    pub fn version(&self) -> Option<Version> {
        self.version
    }
}

/// Publishes the first version of a key, or one that comes after a delete marker.
pub(crate) fn publish_where_nothing_is(
    bucket: &Bucket<'_>,
    key: LockedKey<'_>,
    sealed: &mut Sealed,
    put_in_place: impl FnOnce(&mut Sealed) -> Result<(), Fail>,
) -> Result<(), Fail> {
    let put_in_place = |sealed: &mut Sealed| {
        sealed.note_lock(bucket, key)?;
        put_in_place(sealed)
    };
    let Some(chain) = Chain::open(bucket, key.place)? else { return put_in_place(sealed) };
    let newest = chain.newest(bucket)?;
    match newest {
        None => return put_in_place(sealed),
        Some(Newest::Removed(order) | Newest::Marker(Old { order, .. })) => {
            sealed.come_after(bucket, order)?;
        }
    }
    put_in_place(sealed)?;
    if sealed.version.is_some_and(|version| version.id == Id::Null) {
        remove_null(&chain, key)?;
    }
    if let Some(Newest::Marker(marker)) = newest {
        step("an object follows a delete marker").attempt("rename an old version")?;
        if marker.id == Id::Null && sealed.version.is_some_and(|version| version.id == Id::Null) {
            chain.unlink(Entry::Deleted)?;
        } else if let Err(fail) = chain.rename(Entry::Deleted, marker) {
            // The object is there, so that the marker counts as an old one.
            tracing::debug!(?fail, "a delete marker keeps the name of a newest one until the next change");
        }
    }
    Ok(())
}

/// Gives a null version, which is to replace the present one, an order after all others.
pub(crate) fn come_after_all(
    bucket: &Bucket<'_>,
    key: LockedKey<'_>,
    present: &Present,
    sealed: &mut Sealed,
) -> Result<(), Fail> {
    if let Some(version) = present.version {
        key.refuse_if_locked(version.order)?;
        return sealed.come_after(bucket, version.order);
    }
    let Some(chain) = Chain::open(bucket, key.place)? else { return Ok(()) };
    settle_marker(bucket, &chain)?;
    remove_null(&chain, key)?;
    match chain.olds().attempt("read the old versions of a key")?.first() {
        Some(newest) => sealed.come_after(bucket, newest.order),
        None => Ok(()),
    }
}

/// Publishes a version in the place of the present one, which becomes an old one.
pub(crate) fn publish_over(
    bucket: &Bucket<'_>,
    key: LockedKey<'_>,
    key_place: &KeyPlace,
    present: &Present,
    sealed: &mut Sealed,
) -> Result<Chain, Fail> {
    let chain = Chain::make(bucket, key.place)?;
    settle_marker(bucket, &chain)?;
    let old = old_of(bucket, &chain, present)?;
    sealed.come_after(bucket, old.order)?;
    sealed.note_lock(bucket, key)?;
    let KeyPlace { directory, name: key_name, .. } = key_place;
    sealed.describe(bucket, directory, key_name)?;
    let name = chain.name(old.entry());
    let swap =
        || rustix::fs::renameat_with(&chain.directory, &*name, directory, &**key_name, RenameFlags::EXCHANGE);
    if let Err(fail) = name_and_swap(bucket, &chain, old, sealed, swap) {
        sealed.undescribe(bucket, directory, key_name);
        return Err(fail);
    }
    step("the versions are exchanged").attempt("exchange versions")?;
    look_at_what_came_out(bucket, &chain, old, present, swap)?;
    if let Some(overflow) = present.overflow {
        records::move_companion(bucket, overflow, &join(&chain.directory.path, &name))?;
    }
    if sealed.version.is_some_and(|version| version.id == Id::Null) {
        remove_null(&chain, key)?;
    }
    Ok(chain)
}

/// Gives a staged file the name in the chain that the old version will have, and exchanges the two.
/// An upload keeps its own name of the file: until the exchange, it is still an upload.
fn name_and_swap(
    bucket: &Bucket<'_>,
    chain: &Chain,
    old: Old,
    sealed: &mut Sealed,
    swap: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), Fail> {
    match sealed.link_besides(bucket, &chain.directory, &chain.name(old.entry())) {
        // A crash left it: what is a version of this order is not taken for the present one's.
        Err(Errno::EXIST) => {
            chain.unlink(old.entry())?;
            return Err(Fail::lost("name a new version"));
        }
        linked => linked.attempt("name a new version")?,
    }
    step("a new version has the name of the old one").attempt("exchange versions")?;
    if let Err(errno) = swap() {
        chain.unlink(old.entry())?;
        return Err(errno).attempt("exchange versions");
    }
    Ok(())
}

/// Looks at what an exchange put in the place of an old version. If another program has put another
/// file in place of the key's meanwhile, that file gets the name that it should have. If it is no
/// file, the exchange is undone.
fn look_at_what_came_out(
    bucket: &Bucket<'_>,
    chain: &Chain,
    old: Old,
    present: &Present,
    swap: impl FnOnce() -> rustix::io::Result<()>,
) -> Result<(), Fail> {
    let name = chain.name(old.entry());
    let info = file_info::at(&chain.directory, &name).attempt("look at an old version")?;
    if info.id() == present.info.id() {
        return Ok(());
    }
    if !info.is_file() {
        swap().attempt("exchange versions")?;
        chain.unlink(old.entry())?;
        return Err(Fail::lost("exchange versions"));
    }
    // What it replaced is gone, and its order is free. But another id may be its own.
    let record: Reading<ObjectRecord> =
        records::read(bucket.store, &chain.directory, &name).attempt("read a record")?;
    let claimed = record.known().and_then(|record| record.version);
    if claimed.is_some_and(|version| version.order == old.order && version.id == old.id) {
        return Ok(());
    }
    if old.id != Id::Null {
        name_older_null(bucket, chain)?;
    }
    let order = claimed.map_or(old.order, |version| order_after(Some(version.order.max(old.order))));
    chain.rename(old.entry(), Old { order, id: Id::Null })
}

/// Returns the order and the id that the present version has in the chain.
pub(crate) fn old_of(bucket: &Bucket<'_>, chain: &Chain, present: &Present) -> Result<Old, Fail> {
    if let Some(Version { order, id, is_marker: _ }) = chain.believed(bucket, present.version)? {
        if id == Id::Null {
            name_older_null(bucket, chain)?;
        }
        return Ok(Old { order, id });
    }
    name_older_null(bucket, chain)?;
    let newest = chain.olds().attempt("read the old versions of a key")?.first().map(|old| old.order);
    Ok(Old { order: order_after(newest), id: Id::Null })
}

/// Gives the null version in the chain its order as its id, since the present null version is to be
/// kept beside it. One that is no version was to replace the present one, and goes.
fn name_older_null(bucket: &Bucket<'_>, chain: &Chain) -> Result<(), Fail> {
    while let Some(older) = chain.null().attempt("read the old versions of a key")? {
        if !matches!(chain.record(bucket, older.entry()), Ok(None)) {
            return chain.rename(older.entry(), Old { id: Id::Order, ..older });
        }
        chain.unlink(older.entry())?;
    }
    Ok(())
}

/// Removes the null version from the chain, since a new one takes its place. It fails if that is
/// locked.
pub(crate) fn remove_null(chain: &Chain, key: LockedKey<'_>) -> Result<(), Fail> {
    match chain.null().attempt("read the old versions of a key")? {
        Some(older) => {
            key.refuse_if_locked(older.order)?;
            chain.unlink(older.entry())
        }
        None => Ok(()),
    }
}

/// Gives a delete marker that is no longer the newest version its name among the old ones.
pub(crate) fn settle_marker(bucket: &Bucket<'_>, chain: &Chain) -> Result<(), Fail> {
    match chain.marker(bucket)? {
        Some(marker) => chain.rename(Entry::Deleted, marker),
        None => Ok(()),
    }
}

/// Moves the file of a key to its chain. Returns the version that it is.
pub(crate) fn move_to_chain(
    bucket: &Bucket<'_>,
    chain: &Chain,
    key_place: &KeyPlace,
    present: &Present,
) -> Result<Old, Fail> {
    settle_marker(bucket, chain)?;
    let old = old_of(bucket, chain, present)?;
    let name = chain.name(old.entry());
    let KeyPlace { directory, name: key_name, .. } = key_place;
    let no_replace = RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(directory, &**key_name, &chain.directory, &*name, no_replace) {
        Err(Errno::EXIST) => {
            chain.unlink(old.entry())?;
            return Err(Fail::lost("move a version"));
        }
        moved => moved.attempt("move a version")?,
    }
    if let Some(overflow) = present.overflow {
        records::move_companion(bucket, overflow, &join(&chain.directory.path, &name))?;
    }
    // Before the directory that it was in: else a power cut could leave it in neither.
    if !bucket.store.keeps_order(present.info.device) {
        sync_names(bucket, &chain.directory)?;
    }
    Ok(old)
}
