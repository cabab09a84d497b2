//! Measures the memory of the index of a large directory, at the allocator.
//!
//! `SLIPWAY_INDEX_KEYS=200000 cargo test -p backend-posix --test index_memory -- --nocapture`
//! prints the figures of as many keys.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use backend::conformance::{Fixture, Subject};
use backend_posix::{Durability, Options, PosixBackend};

/// The number of keys, unless the environment gives another: names take time to make.
const KEYS: usize = 20_000;
/// The most bytes that a key may take beyond its name.
const BYTES_MAX: usize = 64;
/// The number of names that an inode gets; file systems allow at least as many (ext4: 65,000).
const LINKS: usize = 50_000;
/// Changes between two listings.
const CHANGES: usize = 2000;

/// An allocator that counts the bytes that are allocated and not freed.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is the system allocator's; what is counted has no influence on it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PEAK.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        LIVE.fetch_sub(layout.size(), Relaxed);
        PEAK.fetch_max(LIVE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes a directory of `keys` files. Their names are links to a few inodes, since inodes are slow
/// to make.
fn fill(directory: &Path, outside: &Path, keys: usize, name_bytes: usize) {
    fs::create_dir(directory).unwrap();
    for number in 0..keys {
        let file = outside.join(format!("{name_bytes}-{}", number / LINKS));
        if number % LINKS == 0 {
            File::create(&file).unwrap();
        }
        fs::hard_link(&file, directory.join(name(number, keys, name_bytes))).unwrap();
    }
}

/// The name of a key. The directory's order is not that of the names, as with real ones.
fn name(number: usize, keys: usize, name_bytes: usize) -> String {
    format!("{:0width$}", number * 7919 % keys, width = name_bytes)
}

/// Gives files other names of the same length, which sort close to the old ones.
fn change(directory: &Path, numbers: Range<usize>, keys: usize, name_bytes: usize) {
    for old in numbers.map(|number| name(number, keys, name_bytes)) {
        let (start, last) = old.split_at(name_bytes - 1);
        let last = char::from(last.as_bytes()[0] - b'0' + b'a');
        fs::rename(directory.join(&old), directory.join(format!("{start}{last}"))).unwrap();
    }
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[tokio::test]
async fn an_index_takes_few_bytes_a_key() {
    let keys = std::env::var("SLIPWAY_INDEX_KEYS").map_or(KEYS, |keys| keys.parse().unwrap());
    let root = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, ..fixture::options() };
    let subject = Subject::of(PosixBackend::open(root.path(), options).unwrap());
    let fixture = Fixture::new(&subject, "memory").await;
    let bucket = root.path().join(fixture.bucket.as_str());
    // Threads, buffers and the first watch are there from now on.
    fill_few(&bucket.join("few"));
    assert_eq!(fixture.page("few/", None, None, 10).await.items.len(), 10);
    for name_bytes in [12, 40, 100] {
        let prefix = format!("names-of-{name_bytes}/");
        fill(&bucket.join(&prefix), root.path(), keys, name_bytes);
        let (live, resident) = (LIVE.load(Relaxed), resident_bytes());
        PEAK.store(live, Relaxed);
        let beyond = |bytes| beyond(bytes, keys, name_bytes);
        let kept = async || {
            assert_eq!(fixture.page(&prefix, None, None, 1000).await.items.len(), 1000);
            let growth = LIVE.load(Relaxed) - live;
            assert!(growth >= keys * name_bytes, "the index is kept");
            assert!(growth <= keys * (name_bytes + BYTES_MAX), "{:.1}", beyond(growth));
            growth
        };
        let growth = kept().await;
        println!(
            "{keys} names of {name_bytes} bytes: {growth} bytes are kept, {:.1} a key beyond its name \
             (at the most while it was read {:.1}; resident {:.1})",
            beyond(growth),
            beyond(PEAK.load(Relaxed) - live),
            beyond(resident_bytes().saturating_sub(resident)),
        );
        // As many as the watch's queue holds, several times; they are in all parts of the index.
        for batch in 0..keys / 10 / CHANGES {
            change(&bucket.join(&prefix), batch * CHANGES..(batch + 1) * CHANGES, keys, name_bytes);
            kept().await;
        }
        println!("  after a tenth of them was renamed: {:.1}", beyond(kept().await));
    }
}

fn fill_few(directory: &Path) {
    fs::create_dir(directory).unwrap();
    for number in 0..500 {
        File::create(directory.join(number.to_string())).unwrap();
    }
}

#[allow(clippy::cast_precision_loss, reason = "to be read")]
fn beyond(bytes: usize, keys: usize, name_bytes: usize) -> f64 {
    bytes as f64 / keys as f64 - name_bytes as f64
}
