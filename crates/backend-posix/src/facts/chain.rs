//! The chain of a key: its old versions and its delete markers (decision 0059).
//!
//! A file whose record has a later order than its name is no version: it was to be published, and a
//! crash came before the exchange that would have given its name to the version it replaces.

use std::sync::Arc;

use backend::DeleteMarker;
use kernel_calls::acting::as_self;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use s3_types::VersionId;

use crate::error::{Fail, Io, Op};
use crate::fs::file_info::{self, FileInfo};
use crate::fs::files;
use crate::fs::reading::{known_type, read_names};
use crate::fs::resolve::{self, PLACE};
use crate::layout::keymap::{self, KeyPath, OWN_DIRECTORY, join};
use crate::layout::staged::is_scattered;
use crate::layout::versions::{Entry, Id, Order, VERSIONS, chain_path, entry_of, name_of};
use crate::record::{Named, ObjectRecord, Reading, Version, order_after, removed_id};
use crate::records;
use crate::tree::bucket::{Bucket, Directory};

/// The directory with the old versions of a key.
#[derive(Debug)]
pub(crate) struct Chain {
    pub directory: Directory,
    /// True for a key that ends in `/`.
    of_directory: bool,
}

/// An old version or a delete marker, as its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Old {
    pub order: Order,
    pub id: Id,
}

/// The newest version of a key that has no file.
#[derive(Debug)]
pub(crate) enum Newest {
    /// The delete marker that a request made.
    Marker(Old),
    /// The key has old versions and no marker: its file was removed by another program.
    Removed(Order),
}

impl Old {
    pub fn entry(self) -> Entry {
        Entry::Version { order: self.order, id: self.id }
    }

    /// Returns it as a client sees it beside the current version, which has this id. Of two null
    /// versions, the older one is told by its order.
    pub fn beside(self, current: Option<Id>) -> Self {
        let id = if current == Some(Id::Null) && self.id == Id::Null { Id::Order } else { self.id };
        Self { order: self.order, id }
    }

    /// True if a request names it. A null version is found by its order, too, since it may be the
    /// older one of two ([`Old::beside`]).
    pub fn is(self, named: Named) -> bool {
        self.version(false).is(named) || (self.id == Id::Null && named == Named::Number(self.order))
    }

    /// Returns the version that a record of this entry would have.
    pub fn version(self, is_marker: bool) -> Version {
        Version { order: self.order, id: self.id, is_marker }
    }
}

impl Chain {
    /// Opens the chain of a key; `None` if it has none.
    pub fn open(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Option<Self>, Fail> {
        let path = chain_path(place);
        match bucket.own_existing(&path) {
            Ok(fd) => Ok(Some(Self::of(fd, &path, place))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).attempt("open the old versions of a key"),
        }
    }

    /// Opens the chain of a key, and makes it if needed. Whoever removes it at the same time makes
    /// the next call that gives a name in it fail with NOENT.
    pub fn make(bucket: &Bucket<'_>, place: &KeyPath) -> Result<Self, Fail> {
        if let Some(chain) = Self::open(bucket, place)? {
            return Ok(chain);
        }
        let path = chain_path(place);
        let mut directory = bucket.own_directory(VERSIONS)?;
        let mut made = VERSIONS.to_owned();
        for name in place.path.split('/') {
            made = join(&made, name);
            directory = as_self(|| bucket.make_own_directory(&directory, name, &join(OWN_DIRECTORY, &made)))?;
        }
        Ok(Self::of(directory, &path, place))
    }

    fn of(fd: OwnedFd, path: &str, place: &KeyPath) -> Self {
        let directory = Directory { fd: Arc::new(fd), path: join(OWN_DIRECTORY, path) };
        Self { directory, of_directory: place.directory }
    }

    /// True for the chain of a key that ends in `/`.
    pub fn is_of_directory(&self) -> bool {
        self.of_directory
    }

    /// Returns the name of an entry.
    pub fn name(&self, entry: Entry) -> String {
        name_of(self.of_directory, entry)
    }

    /// Returns all versions and markers but the newest marker, from the newest to the oldest.
    pub fn olds(&self) -> Io<Vec<Old>> {
        let mut all = Vec::new();
        self.each(|entry| {
            if let Entry::Version { order, id } = entry {
                all.push(Old { order, id });
            }
        })?;
        all.sort_unstable_by_key(|old: &Old| std::cmp::Reverse((old.order, old.id)));
        Ok(all)
    }

    /// Returns the null version among the old ones, if there is one.
    pub fn null(&self) -> Io<Option<Old>> {
        Ok(self.olds()?.into_iter().find(|old| old.id == Id::Null))
    }

    fn each(&self, mut each: impl FnMut(Entry)) -> Io<()> {
        as_self(|| {
            read_names(&*self.directory.fd, |name, kind| {
                let entry = name.to_str().ok().and_then(entry_of);
                if let Some((of_directory, entry)) = entry
                    && of_directory == self.of_directory
                    && known_type(&*self.directory.fd, name, kind)? == Some(FileType::RegularFile)
                {
                    each(entry);
                }
                Ok(true)
            })
        })
    }

    /// Returns the old version or marker that a request names; `None` if there is none.
    pub fn find(&self, bucket: &Bucket<'_>, named: Named) -> Result<Option<Old>, Fail> {
        let wanted = |old: &Old| old.is(named);
        if let Named::Number(order) = named {
            let old = Old { order, id: Id::Order };
            if self.record(bucket, old.entry())?.is_some() {
                return Ok(Some(old));
            }
        }
        let olds = self.olds().attempt("read the old versions of a key")?;
        Ok(olds.into_iter().find(wanted))
    }

    /// Returns the newest delete marker, if the key has one.
    pub fn marker(&self, bucket: &Bucket<'_>) -> Result<Option<Old>, Fail> {
        let record = self.record(bucket, Entry::Deleted)?.and_then(|(record, _)| record.version);
        Ok(record.map(|Version { order, id, is_marker: _ }| Old { order, id }))
    }

    /// Returns the newest version of a key that has no file; `None` if it never had any.
    pub fn newest(&self, bucket: &Bucket<'_>) -> Result<Option<Newest>, Fail> {
        if let Some(marker) = self.marker(bucket)? {
            return Ok(Some(Newest::Marker(marker)));
        }
        Ok(self.newest_old(bucket)?.map(|(old, _)| Newest::Removed(old.order)))
    }

    /// Returns the newest of the old versions, and whether it is a delete marker.
    pub fn newest_old(&self, bucket: &Bucket<'_>) -> Result<Option<(Old, bool)>, Fail> {
        for old in self.olds().attempt("read the old versions of a key")? {
            if let Some((record, _)) = self.record(bucket, old.entry())? {
                return Ok(Some((old, record.version.is_some_and(|version| version.is_marker))));
            }
        }
        Ok(None)
    }

    /// Reads the record of an entry, and the attributes of its file; `None` if the entry does not
    /// exist, or is no version. Fails for a damaged record: the file may be a delete marker, or
    /// what a crash left.
    pub fn record(
        &self,
        bucket: &Bucket<'_>,
        entry: Entry,
    ) -> Result<Option<(ObjectRecord, FileInfo)>, Fail> {
        let name = self.name(entry);
        let read = as_self(|| {
            let file = resolve::plain(&*self.directory.fd, &name, PLACE)?;
            let info = file_info::of(&file)?;
            let record: Reading<ObjectRecord> = records::read(bucket.store, &*self.directory.fd, &name)?;
            Ok((record, info))
        });
        let (record, info) = match read {
            Err(Errno::NOENT) => return Ok(None),
            read => read.attempt("read the record of an old version")?,
        };
        let record = record.opened_version(|| files::path_of(&*self.directory.fd).join(&name))?;
        let record = record.unwrap_or_else(ObjectRecord::of_foreign);
        let is_version = match (entry, record.version) {
            (Entry::Deleted, version) => version.is_some_and(|version| version.is_marker),
            // Without a record, it is a file that another program made.
            (Entry::Version { .. }, None) => true,
            (Entry::Version { order, .. }, Some(version)) => version.order <= order,
        };
        Ok((is_version && info.is_file()).then_some((record, info)))
    }

    /// Returns the version that a file in place says it is. An old version with its order or its id
    /// shows that the file is a copy of that one, or that somebody else wrote its record: then it
    /// is a null version without an order.
    pub fn believed(&self, bucket: &Bucket<'_>, said: Option<Version>) -> Result<Option<Version>, Fail> {
        let Some(version) = said else { return Ok(None) };
        let order = version.order;
        let early = matches!(version.id, Id::Early(_)).then_some(version.id);
        for id in [Id::Order, Id::Null].into_iter().chain(early) {
            if self.record(bucket, Entry::Version { order, id })?.is_some() {
                return Ok(None);
            }
        }
        if early.is_none() {
            return Ok(said);
        }
        let olds = self.olds().attempt("read the old versions of a key")?;
        Ok(said.filter(|version| olds.iter().all(|old| old.id != version.id)))
    }

    /// Returns the delete marker that a request meets in the place of a key's file; `None` if the
    /// key has no versions.
    pub fn shown(&self, bucket: &Bucket<'_>) -> Result<Option<DeleteMarker>, Fail> {
        match self.newest(bucket)? {
            None => Ok(None),
            Some(Newest::Marker(marker)) => {
                let read = self.record(bucket, Entry::Deleted)?;
                let Some((_, info)) = read else { return Err(Fail::lost("read a delete marker")) };
                Ok(Some(shown_marker(marker, &info)))
            }
            Some(Newest::Removed(order)) => {
                let newest = self.newest_old(bucket)?.map(|(old, _)| old.entry());
                let read = newest.map(|entry| self.record(bucket, entry)).transpose()?.flatten();
                let Some((_, info)) = read else { return Err(Fail::lost("read an old version")) };
                Ok(Some(removed(order, &info)))
            }
        }
    }

    /// Removes an entry; it may be gone.
    pub fn unlink(&self, entry: Entry) -> Result<(), Fail> {
        match as_self(|| rustix::fs::unlinkat(&*self.directory.fd, self.name(entry), AtFlags::empty())) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno).attempt("remove an old version"),
        }
    }

    /// Gives an entry the name of an old version. If another one has that name, it gets an order
    /// after all: nothing is replaced.
    pub fn rename(&self, from: Entry, to: Old) -> Result<(), Fail> {
        match self.rename_with(from, to.entry(), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return renamed.attempt("rename an old version"),
        }
        let newest = self.olds().attempt("read the old versions of a key")?.first().map(|old| old.order);
        let free = Old { order: order_after(newest), ..to }.entry();
        self.rename_with(from, free, RenameFlags::NOREPLACE).attempt("rename an old version")
    }

    /// Makes an old delete marker the newest one, in place of that which is there.
    pub fn rename_to_newest(&self, marker: Old) -> Result<(), Fail> {
        self.rename_with(marker.entry(), Entry::Deleted, RenameFlags::empty())
            .attempt("rename a delete marker")
    }

    fn rename_with(&self, from: Entry, to: Entry, flags: RenameFlags) -> Io<()> {
        let (from, to) = (self.name(from), self.name(to));
        let directory = &*self.directory.fd;
        as_self(|| rustix::fs::renameat_with(directory, from, directory, to, flags))
    }
}

/// True if a file in a chain is what a crash left: one that was to be published, or a delete marker
/// that was being written. No request is in progress.
pub(crate) fn is_leftover(bucket: &Bucket<'_>, chain: &OwnedFd, name: &str) -> Result<bool, Fail> {
    if is_scattered(name) {
        return Ok(true);
    }
    let Some((_, Entry::Version { order, .. })) = entry_of(name) else { return Ok(false) };
    let record: Reading<ObjectRecord> = match as_self(|| records::read(bucket.store, chain, name)) {
        Err(Errno::NOENT) => return Ok(false),
        read => read.attempt("read the record of an old version")?,
    };
    let version = record.known().and_then(|record| record.version);
    Ok(version.is_some_and(|version| version.order > order))
}

/// Removes a chain, and the directories above it, as long as they are empty. `path` is relative to
/// the directory of chains.
pub(crate) fn remove_empty(bucket: &Bucket<'_>, mut path: &str) {
    loop {
        let (above, name) = keymap::split(path);
        let directory = if above.is_empty() { VERSIONS.to_owned() } else { join(VERSIONS, above) };
        let removed = bucket
            .own_existing(&directory)
            .and_then(|directory| as_self(|| rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)));
        if removed.is_err() || above.is_empty() {
            return;
        }
        path = above;
    }
}

/// Returns what a client sees of a delete marker with this file.
pub(crate) fn shown_marker(marker: Old, info: &FileInfo) -> DeleteMarker {
    let version = marker.version(true).text().unwrap_or_else(VersionId::null);
    DeleteMarker { version, last_modified: file_info::timestamp(info.stamp.modified_ns) }
}

/// Returns what a client sees of a key whose file was removed by another program, if its newest
/// version has this order and this file: a delete marker that nobody made.
pub(crate) fn removed(order: Order, info: &FileInfo) -> DeleteMarker {
    let last_modified = file_info::timestamp(info.changed_ns);
    DeleteMarker { version: removed_id(order).unwrap_or_else(VersionId::null), last_modified }
}
