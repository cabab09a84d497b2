//! Small objects that were read before, in memory.
//!
//! An entry is valid as long as its path leads to the file that it was read from, in the same
//! state. Each read checks that (decision 0013).

use std::sync::Arc;

use backend::{CacheStatistics, ObjectAttributes};
use bytes::Bytes;
use quick_cache::sync::Cache;
use s3_types::{ETag, ObjectMetadata};

use crate::fs::file_info::FileInfo;
use crate::limits::{CACHED_OBJECT_BYTES_MAX, CACHED_OBJECT_OVERHEAD_BYTES};
use crate::tree::unchanged::State;

/// An object as it was read.
#[derive(Debug)]
pub(crate) struct Entry {
    state: State,
    pub attributes: ObjectAttributes,
    /// All bytes of the object, if they were read.
    pub bytes: Option<Bytes>,
}

impl Entry {
    /// True if `info` describes the same file, in the same state.
    pub fn is_of(&self, info: &FileInfo) -> bool {
        self.state.is(info)
    }

    fn weight(&self, path: &str) -> u64 {
        let bytes = self.bytes.as_ref().map_or(0, Bytes::len);
        let etag = if let ETag::Opaque(text) = &self.attributes.etag { text.len() } else { 0 };
        let texts = path.len() + etag + metadata_bytes(&self.attributes.metadata);
        (bytes + texts + CACHED_OBJECT_OVERHEAD_BYTES) as u64
    }
}

/// Returns the memory of metadata in bytes besides the structure itself, including an allocation
/// for each text.
fn metadata_bytes(metadata: &ObjectMetadata) -> usize {
    let headers: usize = metadata.headers().into_iter().flatten().map(|text| text.len() + 16).sum();
    headers + metadata.user.iter().map(|(name, value)| name.len() + value.len() + 80).sum::<usize>()
}

#[derive(Debug, Clone)]
struct Weighter;

impl quick_cache::Weighter<Box<str>, Arc<Entry>> for Weighter {
    fn weight(&self, path: &Box<str>, entry: &Arc<Entry>) -> u64 {
        entry.weight(path)
    }
}

/// Entries by path, in bounded memory.
#[derive(Debug)]
pub(crate) struct ObjectCache(Option<Cache<Box<str>, Arc<Entry>, Weighter>>);

impl ObjectCache {
    /// Makes a cache of at most `bytes`; with 0, nothing is kept.
    pub fn new(bytes: usize) -> Self {
        let items = bytes / CACHED_OBJECT_OVERHEAD_BYTES / 8;
        Self((bytes > 0).then(|| Cache::with_weighter(items, bytes as u64, Weighter)))
    }

    /// Returns the figures of the cache. An entry that counts as found may have turned out to be
    /// outdated.
    pub fn statistics(&self) -> CacheStatistics {
        let name = "objects";
        self.0.as_ref().map_or(CacheStatistics { name, ..CacheStatistics::default() }, |cache| {
            CacheStatistics {
                name,
                hits: cache.hits(),
                misses: cache.misses(),
                bytes: cache.weight(),
                bytes_max: cache.capacity(),
            }
        })
    }

    /// Returns the entry for `path`, which begins with the bucket.
    pub fn get(&self, path: &str) -> Option<Arc<Entry>> {
        self.0.as_ref()?.get(path)
    }

    /// Keeps an object as it was read from a file in this state.
    pub fn keep(
        &self,
        state: Option<State>,
        path: String,
        attributes: &ObjectAttributes,
        bytes: Option<&Bytes>,
    ) {
        let (Some(cache), Some(state)) = (&self.0, state) else { return };
        let small = bytes.is_none_or(|bytes| bytes.len() <= CACHED_OBJECT_BYTES_MAX);
        if small && attributes.parts.is_none() {
            let entry = Entry { state, attributes: attributes.clone(), bytes: bytes.cloned() };
            cache.insert(path.into(), Arc::new(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::sync::Arc;
    use std::thread::sleep;

    use backend::{BackendError, NotAllowed, ObjectBody, ObjectCheck, ReadSelector};
    use s3_types::{Conditions, NeededFacts, ObjectFacts};

    use crate::layout::keymap::KeyPath;
    use crate::limits::TIMES_SETTLE;
    use crate::object::read::{ObjectReading, read, read_inline};
    use crate::testing::{Scene, just_after};

    fn request(scene: &Scene, key: &str) -> ObjectReading {
        ObjectReading {
            with_lock: false,
            bucket: scene.name.clone(),
            place: KeyPath::of(key),
            version: None,
            selector: ReadSelector::Whole,
            conditions: Conditions::default(),
            check: None,
            body: true,
        }
    }

    fn get(scene: &Scene, key: &str) -> Option<Vec<u8>> {
        match read_inline(&scene.store, &scene.caches.objects, &request(scene, key))?.ok()?.body {
            ObjectBody::Bytes(bytes) => Some(bytes.to_vec()),
            _ => None,
        }
    }

    fn is_kept(scene: &Scene, key: &str) -> bool {
        let path = format!("{}/{key}", scene.name);
        let entry = scene.caches.objects.get(&path);
        let info = crate::fs::file_info::at(&scene.bucket().fd, key);
        entry.zip(info.ok()).is_some_and(|(entry, info)| entry.is_of(&info) && entry.bytes.is_some())
    }

    /// [`get`] once, so that it is kept where that is safe.
    fn warm(scene: &Scene, key: &str) {
        sleep(TIMES_SETTLE * 2);
        get(scene, key);
        assert!(is_kept(scene, key), "{key}");
    }

    /// A check that denies everything.
    #[derive(Debug)]
    struct Denies;

    impl ObjectCheck for Denies {
        fn needs(&self) -> NeededFacts {
            NeededFacts::default()
        }

        fn check(&self, _: Option<&ObjectFacts<'_>>) -> Result<(), NotAllowed> {
            Err(NotAllowed)
        }
    }

    #[test]
    fn what_is_kept_is_not_told_before_a_check_is_asked() {
        if crate::testing::fixture::skips("objects that are kept in memory are") {
            return;
        }
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        warm(&scene, "a");
        let denied = ObjectReading { check: Some(Arc::new(Denies)), ..request(&scene, "a") };
        assert!(read_inline(&scene.store, &scene.caches.objects, &denied).is_none());
        assert!(matches!(read(&scene.store, &denied), Err(BackendError::NotAllowed)));
        assert_eq!(get(&scene, "a").unwrap(), b"1");
    }

    #[test]
    fn what_a_head_keeps_has_no_bytes_for_a_get() {
        let scene = Scene::new();
        scene.put("a", b"1").unwrap();
        sleep(TIMES_SETTLE * 2);
        let head = ObjectReading { body: false, ..request(&scene, "a") };
        read_inline(&scene.store, &scene.caches.objects, &head).unwrap().unwrap();
        let kept = scene.caches.objects.get(&format!("{}/a", scene.name)).unwrap();
        assert_eq!((kept.attributes.size_bytes, &kept.bytes), (1, &None));
        assert_eq!(get(&scene, "a").unwrap(), b"1");
    }

    #[test]
    fn what_changed_just_now_is_not_kept() {
        if crate::testing::fixture::skips("objects that are kept in memory are") {
            return;
        }
        let scene = Scene::new();
        let kept = just_after(|| {
            scene.put("a", b"1").unwrap();
            get(&scene, "a");
            is_kept(&scene, "a")
        });
        assert!(!kept);
        warm(&scene, "a");
    }

    /// Each change of a file is noticed, whether or not it comes in the same tick as a read, and
    /// whether or not it keeps size and mtime.
    #[test]
    fn every_change_shows() {
        if crate::testing::fixture::skips("objects that are kept in memory are") {
            return;
        }
        let scene = Scene::new();
        let path = scene.path().join("a");
        for round in 0..5 {
            scene.put("a", b"old").unwrap();
            warm(&scene, "a");
            let old = fs::metadata(&path).unwrap();
            // By hand, in place, with its old mtime given back.
            fs::write(&path, b"new").unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(old.modified().unwrap()).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mtime_nsec(), old.mtime_nsec());
            assert!(!is_kept(&scene, "a"), "{round}");
            scene.put("a", b"one").unwrap();
            warm(&scene, "a");
            scene.put("a", b"two").unwrap();
            assert_eq!(get(&scene, "a").unwrap(), b"two");
            warm(&scene, "a");
            fs::rename(&path, scene.path().join("b")).unwrap();
            assert_eq!(get(&scene, "a"), None);
            // Back again, it is the same file with a name that was given just now.
            fs::rename(scene.path().join("b"), &path).unwrap();
            assert_eq!(get(&scene, "a").unwrap(), b"two");
        }
    }

    #[test]
    fn a_directory_that_is_moved_takes_its_objects_along() {
        if crate::testing::fixture::skips("objects that are kept in memory are") {
            return;
        }
        let scene = Scene::new();
        scene.put("d/a", b"1").unwrap();
        scene.put("e/a", b"2").unwrap();
        sleep(TIMES_SETTLE * 2);
        for _ in 0..2 {
            assert_eq!(get(&scene, "d/a").unwrap(), b"1");
        }
        fs::rename(scene.path().join("d"), scene.path().join("f")).unwrap();
        assert_eq!(get(&scene, "d/a"), None);
        fs::rename(scene.path().join("e"), scene.path().join("d")).unwrap();
        assert_eq!(get(&scene, "d/a").unwrap(), b"2");
        assert_eq!(get(&scene, "f/a").unwrap(), b"1");
    }
}
