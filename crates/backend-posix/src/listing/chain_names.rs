//! The old versions of a key by their names, which are kept in memory as those of any directory
//! (decision 0059): so a page of a million versions costs a page.

use std::sync::Arc;

use kernel_calls::acting::as_self;

use super::cache::Caches;
use super::index::{DirectoryIndex, Position};
use crate::error::{Fail, Io, Op};
use crate::facts::chain::{Chain, Old};
use crate::layout::versions::{Entry, Id, Order, entry_of_text, text_after, texts_of};
use crate::record::{Named, is_order};
use crate::tree::bucket::Bucket;

/// The operation that errors of reading a chain name.
pub(super) const READ: &str = "read the old versions of a key";

/// Goes through the old versions and delete markers of a key, from the newest to the oldest, except
/// the newest marker.
pub(crate) struct ChainNames<'a> {
    bucket: &'a Bucket<'a>,
    caches: &'a Caches,
    chain: &'a Chain,
    index: Arc<DirectoryIndex>,
    position: Position,
}

impl<'a> ChainNames<'a> {
    /// Begins with the newest version whose order is less than `below`, or with the newest of all.
    pub fn below(
        bucket: &'a Bucket<'a>,
        caches: &'a Caches,
        chain: &'a Chain,
        below: Option<Order>,
    ) -> Io<Self> {
        let from = text_after(chain.is_of_directory(), below);
        let index = get(bucket, caches, chain, from.as_bytes())?;
        let position = index.seek(Position::default(), |text, _| text >= from.as_str());
        Ok(Self { bucket, caches, chain, index, position })
    }

    /// Returns the next one; `None` at the end.
    pub fn next(&mut self) -> Io<Option<Old>> {
        let own = texts_of(self.chain.is_of_directory());
        loop {
            if let Some((text, _)) = self.index.get(self.position) {
                let entry = entry_of_text(text);
                if !text.starts_with(own) {
                    return Ok(None);
                }
                self.position = self.index.after(self.position);
                if let Some((_, Entry::Version { order, id })) = entry {
                    return Ok(Some(Old { order, id }));
                }
                continue;
            }
            let Some(from) = self.index.rest() else { return Ok(None) };
            self.index = get(self.bucket, self.caches, self.chain, &from)?;
            self.position =
                self.index.seek(Position::default(), |text, _| text.as_bytes() >= from.as_slice());
        }
    }
}

fn get(bucket: &Bucket<'_>, caches: &Caches, chain: &Chain, from: &[u8]) -> Io<Arc<DirectoryIndex>> {
    as_self(|| caches.indexes.get_of_chain(bucket, &chain.directory, from))
}

/// Returns the newest of the old versions of a key, and whether it is a delete marker.
pub(crate) fn newest_old(
    bucket: &Bucket<'_>,
    caches: &Caches,
    chain: &Chain,
) -> Result<Option<(Old, bool)>, Fail> {
    let mut names = ChainNames::below(bucket, caches, chain, None).attempt(READ)?;
    while let Some(old) = names.next().attempt(READ)? {
        if let Some((record, _)) = chain.record(bucket, old.entry())? {
            return Ok(Some((old, record.version.is_some_and(|version| version.is_marker))));
        }
    }
    Ok(None)
}

/// Returns the order below which the old versions come that follow the version `after` in a
/// listing; `None` if all of them do.
pub(super) fn bound_after(
    bucket: &Bucket<'_>,
    caches: &Caches,
    chain: &Chain,
    after: Named,
) -> Result<Option<Order>, Fail> {
    match after {
        Named::Removed(_) => return Ok(None),
        Named::Number(order) if is_order(order) => return Ok(Some(order)),
        Named::Number(_) | Named::Null => {}
    }
    let mut names = ChainNames::below(bucket, caches, chain, None).attempt(READ)?;
    while let Some(old) = names.next().attempt(READ)? {
        if matches!((old.id, after), (Id::Null, Named::Null)) || old.is(after) {
            return Ok(Some(old.order));
        }
    }
    // It was the current one, or is gone meanwhile: rather some twice than none.
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::layout::keymap::KeyPath;
    use crate::layout::versions::{VERSIONS_PATH, name_of};
    use crate::testing::Scene;

    const VERSIONS: u64 = 3000;

    fn names(scene: &Scene, caches: &Caches, key: &str, below: Option<Order>) -> Vec<Order> {
        let bucket = scene.bucket();
        let chain = Chain::open(&bucket, &KeyPath::of(key)).unwrap().unwrap();
        let mut names = ChainNames::below(&bucket, caches, &chain, below).unwrap();
        let mut found = Vec::new();
        while let Some(old) = names.next().unwrap() {
            found.push(old.order);
        }
        found
    }

    fn make(scene: &Scene, directory: bool, order: Order) {
        let name = name_of(directory, Entry::Version { order, id: Id::Order });
        fs::write(scene.path().join(VERSIONS_PATH).join("a").join(name), "").unwrap();
    }

    #[test]
    fn names_come_from_the_newest_to_the_oldest_and_are_read_once() {
        let Some(scene) = Scene::with_versions() else { return };
        scene.delete_version("a", None);
        scene.delete_version("a/", None);
        (1..=VERSIONS).for_each(|n| make(&scene, false, 2 * n));
        make(&scene, true, 8);
        fs::create_dir_all(scene.path().join(VERSIONS_PATH).join("a/below")).unwrap();
        let caches = &scene.caches.listing;
        let all: Vec<_> = (1..=VERSIONS).rev().map(|n| 2 * n).collect();
        assert_eq!(names(&scene, caches, "a", None), all);
        assert_eq!(names(&scene, caches, "a/", None), [8]);
        let misses = caches.statistics().misses;
        let below = |order| all.iter().copied().filter(|of| *of < order).collect::<Vec<_>>();
        for order in [0, 1, 2, 3, 500, 501, 2 * VERSIONS, u64::MAX] {
            assert_eq!(names(&scene, caches, "a", Some(order)), below(order), "{order}");
        }
        let new = 2 * VERSIONS + 2;
        make(&scene, false, new);
        fs::remove_file(scene.path().join(VERSIONS_PATH).join("a/.slipway,v0000000000000004")).unwrap();
        let changed = names(&scene, caches, "a", None);
        assert_eq!((changed.first(), changed.len() as u64), (Some(&new), VERSIONS));
        assert!(!changed.contains(&4));
        if caches.statistics().misses != misses {
            eprintln!("\n*** SKIPPED: changes are not reported here, so that names are read again ***\n");
        }
    }
}
