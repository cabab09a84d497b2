//! Fills pages of listings from walks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backend::{ListItem, ListPage, ListPosition, ListQuery, Result};
use s3_types::BucketName;

use super::attributes::{ReadSummary, look_again, summaries};
use super::cache::Caches;
use super::known::KnownRecords;
use super::order::lower_bound;
use super::walk::{FoundObject, Hit, Walk};
use crate::limits::LISTING_OPEN_MAX;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;
use crate::write::conversion;

/// The same as [`ListQuery`], with owned values.
#[derive(Debug, Clone)]
pub(crate) struct Query<P = ListPosition> {
    pub bucket: BucketName,
    pub prefix: String,
    pub delimiter: Option<String>,
    pub start: Option<P>,
    pub max_items: usize,
}

impl<P: Clone> Query<P> {
    /// Copies a query.
    pub fn of(query: &ListQuery<'_, P>) -> Self {
        let ListQuery { bucket, prefix, delimiter, start, max_items } = *query;
        Self {
            bucket: bucket.clone(),
            prefix: prefix.to_owned(),
            delimiter: delimiter.map(str::to_owned),
            start: start.cloned(),
            max_items,
        }
    }
}

/// A page for which it must still be checked whether the objects that seemed to be gone exist.
struct Draft {
    items: Vec<Item>,
    next: Option<ListPosition>,
}

enum Item {
    Object(ReadSummary),
    CommonPrefix(String),
}

/// Lists one page of keys. If `abandoned` is set meanwhile, the page may be incomplete.
pub(crate) fn list_unless(
    store: &Store,
    caches: &Caches,
    query: &Query,
    abandoned: &AtomicBool,
) -> Result<ListPage> {
    let bucket = store.bucket(&query.bucket)?;
    let draft = conversion::undisturbed(&bucket, || page(&bucket, caches, query, abandoned))?;
    let mut items = Vec::with_capacity(draft.items.len());
    for item in draft.items {
        match item {
            // Only now, since no one waits for the lock of a key with the lock on conversions. What
            // existed all the while is found later, too.
            Item::Object(ReadSummary::Doubtful(doubtful)) => {
                items.extend(look_again(&bucket, &caches.known_records, &doubtful)?.map(ListItem::Object));
            }
            Item::Object(ReadSummary::Object(object)) => items.push(ListItem::Object(object)),
            Item::CommonPrefix(prefix) => items.push(ListItem::CommonPrefix(prefix)),
        }
    }
    Ok(ListPage { items, next: draft.next })
}

/// [`list_unless`] for a page that is never abandoned.
#[cfg(test)]
pub(crate) fn list(scene: &crate::testing::Scene, query: &Query) -> Result<ListPage> {
    list_unless(&scene.store, &scene.caches.listing, query, &AtomicBool::new(false))
}

fn page(bucket: &Bucket<'_>, caches: &Caches, query: &Query, abandoned: &AtomicBool) -> Result<Draft> {
    let from = lower_bound(query.start.as_ref());
    let delimiter = query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    let mut walk = Walk::new((bucket, &caches.indexes), &query.prefix, delimiter, from, abandoned)?;
    let known = &caches.known_records;
    let mut page = Page { bucket, known, items: Vec::new(), found: Vec::new(), directories: 0 };
    while let Some(hit) = walk.next()? {
        if let Hit::Pause(position) = hit {
            page.read_found()?;
            let last = page.items.last().map(position_after);
            let positions = [query.start.clone(), Some(position), last].into_iter().flatten();
            let next = positions.max_by_key(|position| lower_bound(Some(position)));
            return Ok(Draft { items: page.items, next });
        }
        if page.items.len() + page.found.len() >= query.max_items {
            page.read_found()?;
            // Some may be gone meanwhile, which makes room.
            if page.items.len() >= query.max_items {
                let next = page.items.last().map(position_after);
                return Ok(Draft { items: page.items, next });
            }
        }
        page.add(hit)?;
    }
    page.read_found()?;
    Ok(Draft { items: page.items, next: None })
}

fn position_after(item: &Item) -> ListPosition {
    match item {
        Item::Object(ReadSummary::Object(object)) => ListPosition::AfterKey(object.key.as_str().to_owned()),
        Item::Object(ReadSummary::Doubtful(doubtful)) => ListPosition::AfterKey(doubtful.key.clone()),
        Item::CommonPrefix(prefix) => ListPosition::AfterPrefix(prefix.clone()),
    }
}

/// A page that is being filled.
struct Page<'a> {
    bucket: &'a Bucket<'a>,
    known: &'a KnownRecords,
    items: Vec<Item>,
    /// The objects after `items`, whose attributes are still to be read.
    found: Vec<FoundObject>,
    /// The number of directories that `found` keeps open.
    directories: usize,
}

impl Page<'_> {
    fn add(&mut self, hit: Hit) -> Result<()> {
        match hit {
            Hit::CommonPrefix(prefix) => {
                self.read_found()?;
                self.items.push(Item::CommonPrefix(prefix));
            }
            Hit::Object(found) => {
                if self.found.last().is_none_or(|last| !Arc::ptr_eq(&last.directory, &found.directory)) {
                    if self.directories == LISTING_OPEN_MAX {
                        self.read_found()?;
                    }
                    self.directories += 1;
                }
                self.found.push(found);
            }
            Hit::Pause(_) => {}
        }
        Ok(())
    }

    fn read_found(&mut self) -> Result<()> {
        let found = std::mem::take(&mut self.found);
        self.directories = 0;
        self.items.extend(summaries(self.bucket, self.known, &found)?.into_iter().map(Item::Object));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use proptest::prelude::*;

    use super::*;
    use crate::base::options::Options;
    use crate::testing::Scene;

    fn keys(scene: &Scene, max_items: usize) -> Vec<String> {
        let (mut keys, mut start) = (Vec::new(), None);
        loop {
            let query = Query {
                bucket: scene.name.clone(),
                prefix: String::new(),
                delimiter: None,
                start,
                max_items,
            };
            let page = list(scene, &query).unwrap();
            keys.extend(page.items.iter().map(|item| match item {
                ListItem::Object(object) => object.key.as_str().to_owned(),
                ListItem::CommonPrefix(prefix) => panic!("{prefix}"),
            }));
            start = page.next;
            if start.is_none() {
                return keys;
            }
        }
    }

    /// Directories whose index does not fit the memory there is are listed in windows.
    #[test]
    fn windows_show_all() {
        let scene = Scene::with(Options { index_cache_bytes: 0, ..Options::default() });
        let mut expected = BTreeSet::new();
        for number in 0..700 {
            let name = format!("{}-{number}", number * 37 % 100);
            if number % 9 == 0 {
                fs::create_dir(scene.path().join(&name)).unwrap();
                fs::write(scene.path().join(&name).join("x"), b"").unwrap();
                expected.insert(format!("{name}/x"));
            } else {
                fs::write(scene.path().join(&name), b"").unwrap();
                expected.insert(name);
            }
        }
        let expected: Vec<_> = expected.into_iter().collect();
        for max_items in [1, 7, 100, 699, 1000] {
            assert_eq!(keys(&scene, max_items), expected, "{max_items}");
        }
    }

    /// A user who may write in a directory can put anything where records are kept.
    #[test]
    fn what_is_in_the_place_of_records_hides_no_key() {
        let scene = Scene::with(Options {
            metadata: Some(crate::base::options::Metadata::Sidecar),
            ..Options::default()
        });
        for key in ["a", "d/file", "z"] {
            scene.put(key, b"1").unwrap();
        }
        for name in [crate::layout::records::OF_DIRECTORY, "file"] {
            let record = scene.path().join("d").join(crate::layout::keymap::RECORDS).join(name);
            fs::remove_file(&record).unwrap();
            fs::create_dir(record).unwrap();
        }
        for (prefix, delimiter, expected) in
            [("", None, 3), ("", Some("/"), 3), ("d/", None, 1), ("d/", Some("/"), 1)]
        {
            let (prefix, delimiter) = (prefix.to_owned(), delimiter.map(str::to_owned));
            let query = Query { bucket: scene.name.clone(), prefix, delimiter, start: None, max_items: 10 };
            let listed = list(&scene, &query).unwrap();
            assert_eq!(listed.items.len(), expected, "{:?} {:?}", query.prefix, query.delimiter);
        }
        assert_eq!(scene.get("d/file").unwrap(), b"1");
    }

    #[derive(Debug, Clone)]
    enum Change {
        Write(usize),
        Put(usize),
        PutBelow(usize),
        Remove(usize),
        Delete(usize),
        Rename(usize, usize),
        Directory(usize),
        Link(usize, usize),
        List,
    }

    fn change() -> impl Strategy<Value = Change> {
        let n = || 0usize..40;
        prop_oneof![
            n().prop_map(Change::Write),
            n().prop_map(Change::Put),
            n().prop_map(Change::PutBelow),
            n().prop_map(Change::Remove),
            n().prop_map(Change::Delete),
            (n(), n()).prop_map(|(from, to)| Change::Rename(from, to)),
            n().prop_map(Change::Directory),
            (n(), n()).prop_map(|(at, to)| Change::Link(at, to)),
            Just(Change::List),
        ]
    }

    fn apply(scene: &Scene, change: &Change) {
        let name = |n: &usize| format!("name{n:02}");
        let path = |n: &usize| scene.path().join(name(n));
        // Many are impossible where they meet the outcome of others.
        match change {
            Change::Write(n) => drop(fs::write(path(n), b"x")),
            Change::Put(n) => drop(scene.put(&name(n), b"x")),
            Change::PutBelow(n) => drop(scene.put(&format!("{}/below", name(n)), b"x")),
            Change::Remove(n) => drop(fs::remove_file(path(n)).or_else(|_| fs::remove_dir_all(path(n)))),
            Change::Delete(n) => drop(crate::object::delete(&scene.store, &scene.target(&name(n)), None)),
            Change::Rename(from, to) => drop(fs::rename(path(from), path(to))),
            Change::Directory(n) => drop(fs::create_dir(path(n))),
            Change::Link(at, to) => drop(std::os::unix::fs::symlink(name(to), path(at))),
            Change::List => {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        /// An index that was kept and updated has the same entries as one that is read anew.
        #[test]
        fn a_kept_index_is_true(changes in prop::collection::vec(change(), 1..60)) {
            let scene = Scene::new();
            for number in 0..200 {
                fs::write(scene.path().join(format!("other{number:03}")), b"").unwrap();
            }
            keys(&scene, 1000);
            for change in &changes {
                apply(&scene, change);
                if matches!(change, Change::List) {
                    keys(&scene, 90);
                }
            }
            let kept = keys(&scene, 90);
            let query = Query { bucket: scene.name.clone(), prefix: String::new(), delimiter: None, start: None, max_items: 10_000 };
            let expected = list_unless(&scene.store, &Caches::new(0, crate::listing::KnownFor::All), &query, &AtomicBool::new(false)).unwrap();
            let expected: Vec<_> = expected.items.iter().map(|item| match item {
                ListItem::Object(object) => object.key.as_str().to_owned(),
                ListItem::CommonPrefix(prefix) => prefix.clone(),
            }).collect();
            prop_assert_eq!(kept, expected);
        }
    }
}
