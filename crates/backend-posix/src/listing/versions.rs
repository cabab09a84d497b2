//! Lists versions: two walks, through the keys that have files and through the chains of old
//! versions, are merged in the order of keys (decision 0059).

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backend::{DeleteMarker, ListPosition, ObjectSummary, Result, VersionItem, VersionPage};
use rustix::io::Errno;
use s3_types::{ObjectKey, VersionId};

use super::attributes::unread;
use super::cache::Caches;
use super::chain_names::{ChainNames, READ as READ_CHAIN, bound_after};
use super::known::Shown;
use super::order::{after_all, common_prefix, lower_bound};
use super::page::Query;
use super::walk::{FoundObject, Hit, Source, Walk};
use crate::base::seldom::Seldom;
use crate::base::step::step;
use crate::error::{Fail, Io, LEASED, Op, is_of_one_file, is_of_one_record, leads_nowhere, retrying};
use crate::facts::chain::{Chain, Old, shown_marker};
use crate::facts::foreign::{self, VersitygwUse};
use crate::facts::place::directory_record;
use crate::fs::file_info::{self, FileInfo};
use crate::fs::resolve::{self, READ};
use crate::layout::keymap::{DIRECTORY_DATA, KeyPath, join};
use crate::layout::versions::{Entry, Id, Order, VERSIONS};
use crate::limits::LISTING_UNREAD_LOGGED;
use crate::record::{Named, ObjectRecord, Reading, Version, is_order};
use crate::records;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// Lists one page of the versions in a bucket that keeps versions. If `abandoned` is set meanwhile,
/// the page may be incomplete.
pub(crate) fn list_versions(
    store: &Store,
    caches: &Caches,
    query: &Query,
    abandoned: &AtomicBool,
) -> Result<VersionPage> {
    let bucket = store.bucket(&query.bucket)?;
    let chains = match bucket.own_existing(VERSIONS) {
        Ok(fd) => Some(Bucket { store, fd: Arc::new(fd) }),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno).op("open the old versions of a bucket"),
    };
    let from = match &query.start {
        Some(ListPosition::AfterVersion { key, .. }) => key.as_bytes().to_vec(),
        start => lower_bound(start.as_ref()),
    };
    let prefix = &*query.prefix;
    let files = Walk::new((&bucket, &caches.indexes), prefix, None, from.clone(), abandoned)?;
    let chains = chains.as_ref();
    let chains = chains.map(|chains| Walk::of_chains((chains, &caches.indexes), prefix, from, abandoned));
    let mut merged = Merged { files: Peeked::of(files), chains: chains.transpose()?.map(Peeked::of) };
    let mut page = Page { bucket: &bucket, caches, query, items: Vec::new() };
    page.fill(&mut merged)
}

/// A walk, with the hit that comes next.
struct Peeked<'a> {
    walk: Walk<'a>,
    next: Ahead,
}

/// The hit that comes next in a walk.
enum Ahead {
    Unknown,
    Hit(Hit),
    End,
}

impl<'a> Peeked<'a> {
    fn of(walk: Walk<'a>) -> Self {
        Self { walk, next: Ahead::Unknown }
    }

    fn peek(&mut self) -> Result<Option<&Hit>> {
        if let Ahead::Unknown = self.next {
            self.next = self.walk.next()?.map_or(Ahead::End, Ahead::Hit);
        }
        Ok(if let Ahead::Hit(hit) = &self.next { Some(hit) } else { None })
    }

    /// Takes the object that comes next, at which the caller has looked.
    fn take(&mut self) -> Option<FoundObject> {
        match std::mem::replace(&mut self.next, Ahead::Unknown) {
            Ahead::Hit(Hit::Object(found)) => Some(found),
            _ => None,
        }
    }

    fn skip_to(&mut self, from: &[u8]) -> Result<()> {
        let passes = match self.peek()? {
            Some(Hit::Object(found)) => found.key.as_bytes() < from,
            _ => false,
        };
        if passes {
            self.walk.skip_to(from.to_vec());
            self.next = Ahead::Unknown;
        }
        Ok(())
    }
}

/// The keys of both walks.
struct Merged<'a> {
    files: Peeked<'a>,
    chains: Option<Peeked<'a>>,
}

/// A key with its file, if it has one.
struct KeyWith {
    key: String,
    file: Option<FoundObject>,
    /// True if the key may have old versions.
    chain: bool,
}

enum Next {
    Key(KeyWith),
    /// The budget of the page is used up.
    Pause(ListPosition),
    End,
}

impl Merged<'_> {
    fn next(&mut self) -> Result<Next> {
        let file = self.files.peek()?.map(place_of);
        let chain = match &mut self.chains {
            Some(chains) => chains.peek()?.map(place_of),
            None => None,
        };
        let order = match (&file, &chain) {
            (None, None) => return Ok(Next::End),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((file, _)), Some((chain, _))) => file.cmp(chain),
        };
        let takes = |place: Option<(String, Option<ListPosition>)>, when| place.filter(|_| order != when);
        let (file, chain) = (takes(file, Ordering::Greater), takes(chain, Ordering::Less));
        for place in [&file, &chain].into_iter().flatten() {
            if let Some(position) = &place.1 {
                return Ok(Next::Pause(position.clone()));
            }
        }
        let found = file.and_then(|_| self.files.take());
        let chained = chain.and_then(|_| self.chains.as_mut()?.take());
        let Some(key) = found.as_ref().or(chained.as_ref()).map(|found| found.key.clone()) else {
            return Ok(Next::End);
        };
        Ok(Next::Key(KeyWith { key, file: found, chain: chained.is_some() }))
    }

    fn skip_to(&mut self, from: &[u8]) -> Result<()> {
        self.files.skip_to(from)?;
        if let Some(chains) = &mut self.chains {
            chains.skip_to(from)?;
        }
        Ok(())
    }
}

/// Returns the key at which a hit is, and the position for the next page if it ends this one.
fn place_of(hit: &Hit) -> (String, Option<ListPosition>) {
    match hit {
        Hit::Object(found) => (found.key.clone(), None),
        Hit::CommonPrefix(prefix) => (prefix.clone(), None),
        Hit::Pause(position) => match position {
            ListPosition::AfterKey(key) | ListPosition::AfterVersion { key, .. } => {
                (format!("{key}\0"), Some(position.clone()))
            }
            ListPosition::AfterPrefix(prefix) => (prefix.clone(), Some(position.clone())),
        },
    }
}

/// A page that is being filled.
struct Page<'a> {
    bucket: &'a Bucket<'a>,
    caches: &'a Caches,
    query: &'a Query,
    items: Vec<VersionItem>,
}

impl Page<'_> {
    fn fill(&mut self, merged: &mut Merged<'_>) -> Result<VersionPage> {
        let next = loop {
            let KeyWith { key, file, chain } = match merged.next()? {
                Next::End => break None,
                Next::Pause(position) => break Some(position),
                Next::Key(key) => key,
            };
            if let Some(prefix) = self.rolled_up(&key) {
                if self.is_full() {
                    break self.end();
                }
                merged.skip_to(&after_all(&prefix))?;
                self.items.push(VersionItem::CommonPrefix(prefix));
                continue;
            }
            if !self.add_key(&key, file, chain)? {
                break self.end();
            }
        };
        Ok(VersionPage { items: std::mem::take(&mut self.items), next })
    }

    fn rolled_up(&self, key: &str) -> Option<String> {
        let delimiter = self.query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
        common_prefix(key, &self.query.prefix, delimiter).map(str::to_owned)
    }

    fn is_full(&self) -> bool {
        self.items.len() >= self.query.max_items
    }

    /// Returns the position after the last item.
    fn end(&self) -> Option<ListPosition> {
        Some(match self.items.last()? {
            VersionItem::CommonPrefix(prefix) => ListPosition::AfterPrefix(prefix.clone()),
            VersionItem::Object { object, .. } => ListPosition::AfterVersion {
                key: object.key.as_str().to_owned(),
                version: object.version.clone().unwrap_or_else(VersionId::null),
            },
            VersionItem::DeleteMarker { key, marker, .. } => {
                ListPosition::AfterVersion { key: key.as_str().to_owned(), version: marker.version.clone() }
            }
        })
    }

    /// Adds an item; false if there is no room for it.
    fn add(&mut self, item: VersionItem) -> bool {
        let room = !self.is_full();
        if room {
            self.items.push(item);
        }
        room
    }

    /// Adds the versions of a key. Returns false if the page is full before the last.
    fn add_key(&mut self, key: &str, file: Option<FoundObject>, chain: bool) -> Result<bool> {
        let after = match &self.query.start {
            Some(ListPosition::AfterVersion { key: of, version }) if of == key => Some(version),
            _ => None,
        };
        let Ok(object_key) = ObjectKey::new(key) else { return Ok(true) };
        let current = match file {
            Some(found) => retrying(|| current(self.bucket, &found, &object_key, chain))?,
            None => None,
        };
        let id = current.as_ref().map(|(_, version)| version.map_or(Id::Null, |version| version.id));
        let order = |version: &Option<Version>| version.map(|version| version.order);
        if let Some((object, _)) = current.filter(|(_, version)| comes_after(order(version), after))
            && !self.add(VersionItem::Object { object, is_latest: true })
        {
            return Ok(false);
        }
        if !chain {
            return Ok(true);
        }
        // One more than fits shows that there are more.
        let most = self.query.max_items.saturating_sub(self.items.len()).saturating_add(1);
        let olds = retrying(|| olds((self.bucket, self.caches), &object_key, id, after, most))?;
        Ok(olds.into_iter().all(|item| self.add(item)))
    }
}

/// True if the current version of a key, with this order, comes after the version `after` in a
/// listing. It can only if that one was deleted meanwhile, and it became the current one. An id
/// that was given out early says nothing of the order.
fn comes_after(order: Option<Order>, after: Option<&VersionId>) -> bool {
    match after.map(Named::of) {
        None => true,
        Some(Some(Named::Number(after))) if is_order(after) => order.is_some_and(|order| order < after),
        Some(_) => false,
    }
}

/// Reads the current version of a key, and what its record says of the version, as far as its chain
/// agrees; `None` if its file is gone. One whose record can't be read is shown as the null version:
/// it is not known which one it is.
fn current(
    bucket: &Bucket<'_>,
    found: &FoundObject,
    key: &ObjectKey,
    has_chain: bool,
) -> Result<Option<(ObjectSummary, Option<Version>)>, Fail> {
    let name = match &found.source {
        Source::File(path) => path,
        Source::Directory => DIRECTORY_DATA,
    };
    let seen = seen(bucket, &join(&found.directory.path, name), key);
    if let Some((shown, said)) = or_unread(bucket, seen, || found.clone())? {
        let version = if has_chain { believed(bucket, key, said)? } else { said };
        return Ok(Some((summarized(key, shown, version), version)));
    }
    let Source::Directory = found.source else { return Ok(None) };
    // An object without bytes of the time before versions were kept.
    let record = directory_record(bucket, &*found.directory).map(Reading::known);
    let attributes = record.map(|record| record.and_then(|record| record.attributes()));
    let shown = attributes.map(|attributes| attributes.map(|attributes| (Shown::from(attributes), None)));
    let shown = or_unread(bucket, shown, || found.clone())?;
    Ok(shown.map(|(shown, _)| (summarized(key, shown, None), None)))
}

/// The part of a file that a listing shows, and the version that its record says.
type Seen = (Shown, Option<Version>);

/// Looks at a version that is the file at a path; `None` if there is no file. What is not
/// understood keeps no one from seeing that the file is there.
fn seen(bucket: &Bucket<'_>, path: &str, key: &ObjectKey) -> Io<Option<Seen>> {
    step("a version is read")?;
    let file = match resolve::plain(&bucket.fd, path, READ) {
        Err(Errno::LOOP) => bucket.open(path, READ)?,
        opened => opened?,
    };
    let info = file_info::of(&file)?;
    if !info.is_file() {
        return Ok(None);
    }
    let record: Reading<ObjectRecord> = records::of(bucket.store, &bucket.fd, path, &file)?;
    let shown = bucket.store.lasting(&file, &info);
    if record == Reading::Closed {
        return Ok(Some((foreign::attributes(&shown, key.as_str()).into(), None)));
    }
    let record = record.known();
    let version = record.as_ref().and_then(|record| record.version);
    let versitygw = VersitygwUse::for_etags(&bucket.store.options);
    let attributes = foreign::attributes_of(&file, record, &shown, key.as_str(), versitygw);
    Ok(Some((attributes.into(), version)))
}

/// Replaces the error about one file by what is known of that file, if anything is: it must not
/// hide all other versions.
fn or_unread(
    bucket: &Bucket<'_>,
    seen: Io<Option<Seen>>,
    found: impl FnOnce() -> FoundObject,
) -> Result<Option<Seen>, Fail> {
    match seen {
        Err(errno) if leads_nowhere(errno) => Ok(None),
        // A program may keep its lease for as long as it likes.
        Err(errno) if is_of_one_file(errno) || errno == LEASED => {
            Ok(unread(bucket, &found(), errno).map(|shown| (shown, None)))
        }
        seen => seen.attempt("read an object's attributes"),
    }
}

/// Returns what a listing shows of an object.
fn summarized(key: &ObjectKey, shown: Shown, version: Option<Version>) -> ObjectSummary {
    let Shown { size_bytes, last_modified, etag, checksum } = shown;
    let version = version.and_then(Version::text);
    ObjectSummary { key: key.clone(), size_bytes, last_modified, etag, checksum, version }
}

/// The result of reading the record of an entry of a chain.
enum Look {
    /// The entry does not exist, or is no version.
    Missing,
    /// The record can't be read, or is not understood.
    Unread,
    Read(Box<ObjectRecord>, FileInfo),
}

impl Look {
    fn at(bucket: &Bucket<'_>, chain: &Chain, entry: Entry) -> Result<Self, Fail> {
        let read = step("a version is looked at").attempt("read the record of an old version");
        match read.and_then(|()| chain.record(bucket, entry)) {
            Ok(None) => Ok(Self::Missing),
            Ok(Some((record, info))) => Ok(Self::Read(Box::new(record), info)),
            Err(Fail::Storage(error)) if is_of_one_record(&error) => Ok(Self::Unread),
            Err(fail) => Err(fail),
        }
    }

    /// True if the record says that the version has this order.
    fn has(&self, order: Order) -> bool {
        matches!(self, Self::Read(record, _) if record.version.is_some_and(|version| version.order == order))
    }
}

/// Returns the newest delete marker of a key, and whether that is known. A marker that can't be
/// read is left out: neither its id is known nor its time.
fn newest_marker(bucket: &Bucket<'_>, key: &ObjectKey, chain: &Chain) -> Result<(Option<Old>, bool), Fail> {
    static LOGGED: Seldom = Seldom::new(LISTING_UNREAD_LOGGED);
    match chain.marker(bucket) {
        Err(Fail::Storage(error)) if is_of_one_record(&error) => {
            bucket.store.count_unread();
            if LOGGED.is_due() {
                let (bucket, key) = (bucket.name_for_log(), key.as_str());
                tracing::error!(bucket, key, %error, "the record of a delete marker cannot be read: the \
                    listing of versions leaves the delete marker out");
            }
            Ok((None, false))
        }
        marker => Ok((marker?, true)),
    }
}

/// Returns the old versions and the delete markers of a key, from the newest to the oldest, that
/// come after the version `after`, but not more than `most`. `current` is the id of the version in
/// place, if there is one.
fn olds(
    (bucket, caches): (&Bucket<'_>, &Caches),
    key: &ObjectKey,
    current: Option<Id>,
    after: Option<&VersionId>,
    most: usize,
) -> Result<Vec<VersionItem>, Fail> {
    let Some(chain) = Chain::open(bucket, &KeyPath::of(key.as_str()))? else { return Ok(Vec::new()) };
    let mut items = Vec::new();
    let (newest, is_known) = newest_marker(bucket, key, &chain)?;
    if is_known && current.is_none() && comes_after(newest.map(|newest| newest.order), after) {
        let marker = shown_first(bucket, &chain)?;
        items.extend(marker.map(|marker| item_of_marker(key, marker, true)));
    }
    let bound = match after.and_then(Named::of) {
        None => None,
        Some(Named::Null) if current == Some(Id::Null) => None,
        Some(named) if newest.is_some_and(|newest| newest.is(named)) => {
            newest.filter(|_| current.is_some()).map(|newest| newest.order)
        }
        Some(named) => bound_after(bucket, caches, &chain, named)?,
    };
    // A marker beside a file is an old one, and will get its name.
    let settled = newest.filter(|_| current.is_some());
    let mut settled = settled.filter(|settled| bound.is_none_or(|bound| settled.order < bound));
    let mut names = ChainNames::below(bucket, caches, &chain, bound).attempt(READ_CHAIN)?;
    let mut next = names.next().attempt(READ_CHAIN)?;
    while items.len() < most {
        let is_settled = settled.filter(|settled| next.is_none_or(|next| settled.order > next.order));
        if is_settled.is_some() {
            settled = None;
        }
        let Some(old) = is_settled.or(next) else { break };
        if is_settled.is_none() {
            next = names.next().attempt(READ_CHAIN)?;
        }
        let entry = if is_settled.is_some() { Entry::Deleted } else { old.entry() };
        items.extend(item(bucket, key, &chain, (old, entry), current)?);
    }
    Ok(items)
}

fn item_of_marker(key: &ObjectKey, marker: DeleteMarker, is_latest: bool) -> VersionItem {
    VersionItem::DeleteMarker { key: key.clone(), marker, is_latest }
}

/// Reads an old version or a delete marker; `None` if it is none, or gone.
fn item(
    bucket: &Bucket<'_>,
    key: &ObjectKey,
    chain: &Chain,
    (old, mut entry): (Old, Entry),
    current: Option<Id>,
) -> Result<Option<VersionItem>, Fail> {
    let mut look = Look::at(bucket, chain, entry)?;
    if matches!(look, Look::Missing) && current.is_some() {
        // It got its name meanwhile, or had not got it yet.
        entry = if entry == Entry::Deleted { old.entry() } else { Entry::Deleted };
        look =
            Some(Look::at(bucket, chain, entry)?).filter(|look| look.has(old.order)).unwrap_or(Look::Missing);
    }
    match look {
        Look::Missing => Ok(None),
        Look::Read(record, info) if record.version.is_some_and(|version| version.is_marker) => {
            Ok(Some(item_of_marker(key, shown_marker(old.beside(current), &info), false)))
        }
        Look::Read(..) | Look::Unread => {
            let name = chain.name(entry);
            let seen = seen(bucket, &join(&chain.directory.path, &name), key);
            let found = || FoundObject {
                key: key.as_str().to_owned(),
                directory: Arc::new(chain.directory.clone()),
                source: Source::File(name),
            };
            let version = Some(old.beside(current).version(false));
            let object = or_unread(bucket, seen, found)?.map(|(shown, _)| summarized(key, shown, version));
            Ok(object.map(|object| VersionItem::Object { object, is_latest: false }))
        }
    }
}

/// Returns the version that the file of a key says it is, as far as its chain agrees
/// ([`Chain::believed`]); `None` also if the old versions in question can't be read.
fn believed(bucket: &Bucket<'_>, key: &ObjectKey, said: Option<Version>) -> Result<Option<Version>, Fail> {
    let Some(chain) = Chain::open(bucket, &KeyPath::of(key.as_str()))? else { return Ok(said) };
    match chain.believed(bucket, said) {
        Err(Fail::Storage(error)) if is_of_one_record(&error) => Ok(None),
        believed => believed,
    }
}

/// Returns the delete marker that a request meets in the place of a key's file; `None` also if what
/// it is made of can't be read.
fn shown_first(bucket: &Bucket<'_>, chain: &Chain) -> Result<Option<DeleteMarker>, Fail> {
    match chain.shown(bucket) {
        Err(Fail::Storage(error)) if is_of_one_record(&error) => Ok(None),
        shown => shown,
    }
}
