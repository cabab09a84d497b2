//! Keeps attributes that were read from the records of files, while the files do not change, so
//! that listing a page again takes one call per key.

use backend::ObjectAttributes;
use quick_cache::sync::Cache;
use s3_types::{Checksum, ETag, Timestamp};

use crate::fs::file_info::FileInfo;
use crate::limits::KNOWN_RECORD_BYTES;
use crate::tree::unchanged::State;

/// The attributes of an object that listings show.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub size_bytes: u64,
    pub last_modified: Timestamp,
    pub etag: ETag,
    pub checksum: Option<Checksum>,
}

impl From<ObjectAttributes> for Shown {
    fn from(attributes: ObjectAttributes) -> Self {
        let ObjectAttributes {
            size_bytes,
            last_modified,
            etag,
            checksum,
            metadata: _,
            parts: _,
            version: _,
            tag_count: _,
        } = attributes;
        Self { size_bytes, last_modified, etag, checksum }
    }
}

/// The attributes of a file's object, which are valid for one state of the file.
#[derive(Debug, Clone)]
struct Known {
    state: State,
    shown: Shown,
}

/// The attributes by device and inode of the file, in bounded memory.
#[derive(Debug)]
pub(super) struct KnownRecords(Option<Cache<(u64, u64), Known>>);

impl KnownRecords {
    /// Makes a cache of at most about `bytes`; with 0, nothing is kept.
    pub fn new(bytes: usize) -> Self {
        let items = bytes / KNOWN_RECORD_BYTES;
        Self((items > 0).then(|| Cache::new(items)))
    }

    /// Returns the attributes of a file's object, if they are kept and the file has not changed.
    pub(super) fn get(&self, info: &FileInfo) -> Option<Shown> {
        let known = self.0.as_ref()?.get(&info.id())?;
        known.state.is(info).then_some(known.shown)
    }

    /// Keeps the attributes of a file in this state.
    pub(super) fn keep(&self, state: Option<State>, info: &FileInfo, shown: &Shown) {
        if let (Some(cache), Some(state)) = (&self.0, state) {
            cache.insert(info.id(), Known { state, shown: shown.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread::sleep;

    use backend::{ListItem, ObjectSummary};

    use crate::fs::file_info;
    use crate::limits::TIMES_SETTLE;
    use crate::listing::{Query, list};
    use crate::testing::{Scene, digests, just_after};

    fn listed(scene: &Scene) -> Vec<ObjectSummary> {
        let bucket = scene.name.clone();
        let query = Query { bucket, prefix: String::new(), delimiter: None, start: None, max_items: 10 };
        let object = |item| match item {
            ListItem::Object(object) => object,
            ListItem::CommonPrefix(prefix) => panic!("{prefix}"),
        };
        list(scene, &query).unwrap().items.into_iter().map(object).collect()
    }

    fn is_known(scene: &Scene, name: &str) -> bool {
        scene.caches.listing.known_records.get(&file_info::at(&scene.bucket().fd, name).unwrap()).is_some()
    }

    #[test]
    fn a_page_again_is_as_true_as_the_first() {
        if crate::testing::fixture::skips("records that are kept in memory are") {
            return;
        }
        let scene = Scene::new();
        let known = just_after(|| {
            scene.put("a", b"a").unwrap();
            listed(&scene);
            is_known(&scene, "a")
        });
        assert!(!known, "its next change might not show");
        for key in ["b", "c"] {
            scene.put(key, key.as_bytes()).unwrap();
        }
        let first = listed(&scene);
        sleep(TIMES_SETTLE * 2);
        assert_eq!((listed(&scene), is_known(&scene, "a")), (first.clone(), true));
        assert_eq!(listed(&scene), first);

        scene.put("a", b"x").unwrap();
        fs::write(scene.path().join("b"), b"y").unwrap();
        fs::rename(scene.path().join("c"), scene.path().join("d")).unwrap();
        let then = listed(&scene);
        assert_eq!(then[0].etag, digests(b"x").etag);
        assert_ne!(then[1].etag, first[1].etag);
        assert_eq!((then[2].key.as_str(), &then[2].etag), ("d", &first[2].etag));
        sleep(TIMES_SETTLE * 2);
        for _ in 0..2 {
            assert_eq!(listed(&scene), then);
        }
    }
}
