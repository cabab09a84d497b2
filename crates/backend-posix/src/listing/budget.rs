//! Limits the number of entries that a page may look at.
//!
//! Symbolic links make more paths than there are directories: 41 directories, each with two links
//! to the next, have 2^41 paths through them. And anyone may have made any number of directories
//! without objects. So a page that has used up its budget ends early, and the next one continues
//! from there.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::limits::{LISTING_LINK_STEPS, LISTING_STEPS_MAX};

/// Device and inode of a directory.
pub(super) type Id = (u64, u64);

/// The number of entries that a page may still look at.
pub(super) struct Budget<'a> {
    steps: usize,
    /// The flag that is set when nobody waits for the page any more.
    abandoned: &'a AtomicBool,
}

impl<'a> Budget<'a> {
    pub fn new(abandoned: &'a AtomicBool) -> Self {
        Self { steps: LISTING_STEPS_MAX, abandoned }
    }

    /// Counts an entry.
    pub fn step(&mut self) {
        self.steps = self.steps.saturating_sub(1);
    }

    /// Counts a directory behind a link.
    pub fn link(&mut self) {
        self.steps = self.steps.saturating_sub(LISTING_LINK_STEPS);
    }

    pub fn is_used_up(&self) -> bool {
        self.steps == 0 || self.abandoned.load(Relaxed)
    }
}

/// The directories in which a page found no object, by whatever path it reached them.
#[derive(Default)]
pub(super) struct EmptySubtrees(HashSet<Id>);

impl EmptySubtrees {
    pub fn contains(&self, id: Id) -> bool {
        self.0.contains(&id)
    }

    /// Adds a directory at this depth that was searched completely and had no object.
    pub fn add(&mut self, id: Id, depth: usize, skipped: SkipDepth) {
        if skipped.0.is_none_or(|above| above >= depth) {
            self.0.insert(id);
        }
    }
}

/// The depth of the highest directory because of which something was skipped during a search. A
/// directory below it is not known to be empty: on another path it may have to be searched again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SkipDepth(Option<usize>);

impl SkipDepth {
    /// Notes that a link was skipped, because it led to the directory at this depth, which the
    /// search is in.
    pub fn cycle(&mut self, depth: usize) {
        self.merge(Self(Some(depth)));
    }

    /// Notes that a name was skipped, because its key would have been too long.
    pub fn length(&mut self) {
        self.cycle(0);
    }

    pub fn merge(&mut self, other: Self) {
        self.0 = match (self.0, other.0) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::time::Duration;

    use backend::{BackendError, ListItem, ListPage, ListPosition};

    use crate::base::options::Options;
    use crate::listing::{Query, list, list_unless};
    use crate::testing::{Scene, fixture, work_time};

    fn query(scene: &Scene, delimiter: Option<&str>, start: Option<ListPosition>) -> Query {
        let (bucket, delimiter) = (scene.name.clone(), delimiter.map(str::to_owned));
        Query { bucket, prefix: String::new(), delimiter, start, max_items: 1000 }
    }

    fn texts(page: &ListPage) -> Vec<String> {
        let text = |item: &ListItem| match item {
            ListItem::Object(object) => object.key.as_str().to_owned(),
            ListItem::CommonPrefix(prefix) => prefix.clone(),
        };
        page.items.iter().map(text).collect()
    }

    /// Lists one page of links that lead upwards. On a file system where each name is a wait, the
    /// kernel may return EAGAIN for them for as long as other tests rename files: then it is listed
    /// again.
    fn page(scene: &Scene, delimiter: Option<&str>, start: Option<&ListPosition>) -> ListPage {
        for _ in 0..20 {
            match list(scene, &query(scene, delimiter, start.cloned())) {
                Err(BackendError::OutOf(_)) => {}
                page => return page.unwrap(),
            }
        }
        panic!("busy for too long");
    }

    /// The items of all pages, and the number of pages.
    fn all(scene: &Scene, delimiter: Option<&str>) -> (Vec<String>, usize) {
        let (mut found, mut start, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = page(scene, delimiter, start.as_ref());
            pages += 1;
            found.extend(texts(&page));
            start = page.next;
            if start.is_none() {
                return (found, pages);
            }
        }
    }

    /// Makes 2^40 paths through links: a search that follows them all never ends.
    fn lattice(top: &Path, more: impl Fn(&Path)) {
        for level in 0..41 {
            let directory = top.join(format!("d{level:02}"));
            fs::create_dir_all(&directory).unwrap();
            more(&directory);
            if level < 40 {
                for name in ["x", "y"] {
                    symlink(format!("../d{:02}", level + 1), directory.join(name)).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_lattice_of_links_is_seen_through() {
        let scene = Scene::new();
        lattice(&scene.path(), |_| {});
        scene.put("z", b"1").unwrap();
        for delimiter in [None, Some("/")] {
            assert_eq!(all(&scene, delimiter), (vec!["z".to_owned()], 1));
        }
    }

    /// If each directory has a link back, a search in it without a result proves nothing about
    /// other paths to it.
    #[test]
    fn a_page_ends_where_a_lattice_does_not() {
        let scene = Scene::new();
        lattice(&scene.path(), |directory| symlink("../d00", directory.join("a")).unwrap());
        for delimiter in [None, Some("/")] {
            let (mut start, mut last) = (None, String::new());
            for _ in 0..3 {
                let page = page(&scene, delimiter, start.as_ref());
                assert!(page.items.is_empty());
                let Some(ListPosition::AfterKey(next)) = page.next.clone() else { panic!("{page:?}") };
                assert!(next > last, "{next} {last}");
                (start, last) = (page.next, next);
            }
        }
    }

    /// A link that was skipped below a directory may lead to objects if the directory is reached on
    /// another path.
    #[test]
    fn what_a_cycle_hides_is_found_by_another_way() {
        let scene = Scene::new();
        fs::create_dir_all(scene.path().join("p/a")).unwrap();
        symlink("../../p", scene.path().join("p/a/up")).unwrap();
        symlink("p/a", scene.path().join("q")).unwrap();
        fs::write(scene.path().join("p/z"), "1").unwrap();
        assert_eq!(all(&scene, None).0, ["p/z", "q/up/z"]);
        assert_eq!(all(&scene, Some("/")).0, ["p/", "q/"]);
    }

    #[test]
    fn pages_that_end_early_miss_nothing() {
        let scene = Scene::new();
        for above in 0..40 {
            for below in 0..200 {
                fs::create_dir_all(scene.path().join(format!("d{above:02}/{below:03}"))).unwrap();
            }
        }
        let keys = ["d00/100", "d15/x", "d30/100/x", "d39/199/x"];
        fs::remove_dir_all(scene.path().join("d00/100")).unwrap();
        for key in keys {
            fs::write(scene.path().join(key), "1").unwrap();
        }
        let (found, pages) = all(&scene, None);
        assert_eq!(found, keys);
        assert!(pages > 1);
        let (found, pages) = all(&scene, Some("/"));
        assert_eq!(found, ["d00/", "d15/", "d30/", "d39/"]);
        assert!(pages > 1);
    }

    #[test]
    fn who_has_left_gets_nothing_more() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        let waiting = crate::blocking::Waiting::default();
        let abandoned = waiting.abandoned();
        let caches = &scene.caches.listing;
        let query = query(&scene, None, None);
        let listed = || list_unless(&scene.store, caches, &query, &abandoned).unwrap().items.len();
        assert_eq!(listed(), 1);
        drop(waiting);
        assert_eq!(listed(), 0);
    }

    /// Listing deep keys takes time in proportion to their levels: it took 13 times as much when
    /// the whole path was resolved at each level.
    #[test]
    fn deep_keys_cost_as_much_as_they_have_levels() {
        let options = Options { durability: crate::base::options::Durability::None, ..Options::default() };
        let time = |levels: usize| {
            let scene = Scene::with(options.clone());
            let keys = if fixture::levels_are_slow(&scene.path()) { 4 } else { 40 };
            for key in 0..keys {
                scene.put(&format!("{key}/{}x", "a/".repeat(levels)), b"1").unwrap();
            }
            let list = || {
                let begun = work_time();
                assert_eq!(all(&scene, None).0.len(), keys);
                work_time().saturating_sub(begun)
            };
            (0..5).map(|_| list()).min().unwrap_or(Duration::MAX)
        };
        let (few, many) = (time(60), time(480));
        assert!(many < few * 20, "{few:?} {many:?}");
    }
}
