//! The suite that every backend must pass, on a directory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;
mod own_devices;

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use backend::conformance::{self, Subject};
use backend::{BackendError, Call, CallObserver, Context, Maintenance as _, Metered, ReadOnly};
use backend_posix::{Durability, Metadata, Options, PosixBackend, SweepOptions, Symlinks};

async fn run(options: Options) {
    run_with(options, |root, options| own_devices::subject(root, PosixBackend::open(root, options).unwrap()))
        .await;
}

/// Runs the suite on what `subject` opens.
async fn run_with(options: Options, subject: impl FnOnce(&Path, Options) -> Subject) {
    let metadata = options.metadata;
    let root = tempfile::tempdir().unwrap();
    let subject = subject(root.path(), options);
    // For file systems where each level of a key is a call to a server (tests/file_systems).
    conformance::run(&subject, std::env::var_os("SLIPWAY_SHALLOW").is_none()).await;
    drop(subject);
    // Nothing is left: no bucket, no directory of our own but what says where records are.
    let mut left = fixture::names(root.path());
    // On FUSE, locks stay until it hears that they are closed; then the sweep removes them.
    let are_locks = |name: &OsString| name.to_string_lossy().starts_with(".slipway,deleting,");
    let sweep = SweepOptions { staging_age: Duration::ZERO, ..SweepOptions::default() };
    let sweeper = PosixBackend::open(root.path(), Options { metadata, sweep, ..Options::default() }).unwrap();
    for _ in 0..500 {
        if !left.iter().any(are_locks) {
            break;
        }
        assert!(!fixture::removes_open_files(), "{left:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
        sweeper.sweep_orphans(&Context::default()).await.unwrap();
        left = fixture::names(root.path());
    }
    // Of documents, only what is used again.
    assert!(left.iter().all(|name| name == ".slipway"), "{left:?}");
    let own = root.path().join(".slipway");
    let mut kept = fixture::names(&own);
    kept.sort();
    // Where versions can be kept, they were locked: the time of the locks stays.
    if let Some(at) = kept.iter().position(|name| name == "locked") {
        kept.remove(at);
        assert_eq!(fixture::names(&own.join("locked")), [",clock"]);
    }
    assert_eq!(kept, ["buckets", "format", "metadata", "tree.toml"]);
    assert_eq!(fixture::names(&own.join("buckets")), [",lock"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_defaults() {
    run(fixture::options()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_syncs_or_links() {
    run(Options { durability: Durability::None, symlinks: Symlinks::Refuse, ..fixture::options() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_records_beside_the_files() {
    if fixture::sidecars() {
        return eprintln!("\n*** SKIPPED: the same as with the defaults here ***\n");
    }
    run(Options { metadata: Some(Metadata::Sidecar), ..fixture::options() }).await;
}

/// One gateway reads what another one of the same tree writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_another_gateway() {
    let open = |root: &Path, options: Options| Subject {
        reader: Arc::new(PosixBackend::open(root, options.clone()).unwrap()),
        ..own_devices::subject(root, PosixBackend::open(root, options).unwrap())
    };
    run_with(fixture::options(), open).await;
}

/// A read-only gateway reads what another one writes, and refuses writes, which change nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_a_gateway_that_only_reads() {
    if std::env::var_os("SLIPWAY_SHALLOW").is_some() {
        return eprintln!(
            "\n*** SKIPPED: here reads need locks, which such a gateway does without, so it is NOT tested ***\n"
        );
    }
    let root = tempfile::tempdir().unwrap();
    let writer = PosixBackend::open(root.path(), fixture::options()).unwrap();
    let writer = own_devices::subject(root.path(), writer).writer;
    let reader = PosixBackend::open_to_read(root.path(), fixture::options()).unwrap();
    let subject = Subject { writer, reader: Arc::new(ReadOnly::new(Arc::new(reader))) };
    assert!(Arc::clone(&subject.reader).maintenance().is_none());
    conformance::refused_writes(&subject).await;
    conformance::run(&subject, true).await;
}

/// For each call, the number of reports, and of bytes.
struct CallCounts(Vec<(AtomicU64, AtomicU64)>);

impl CallObserver for CallCounts {
    fn call_ended(&self, call: Call, _: Duration, _: Option<&BackendError>) {
        self.0[call as usize].0.fetch_add(1, Relaxed);
    }

    fn bytes_moved(&self, call: Call, bytes: u64) {
        self.0[call as usize].1.fetch_add(bytes, Relaxed);
    }
}

/// The suite makes each call, and each is reported to the observer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_what_tells_of_its_calls() {
    let told = Arc::new(CallCounts(Call::ALL.iter().map(|_| Default::default()).collect()));
    let observer = Arc::clone(&told);
    let open = |root: &Path, options| {
        let tree = PosixBackend::open(root, options).unwrap();
        own_devices::subject(root, Metered::new(Arc::new(tree), observer))
    };
    run_with(fixture::options(), open).await;
    for call in Call::ALL.iter().filter(|call| !matches!(call, Call::Sweep | Call::SweepOrphans)) {
        let (calls, bytes) = &told.0[*call as usize];
        let moves_bytes = matches!(call, Call::GetObject | Call::Write | Call::CopyObject);
        assert!(calls.load(Relaxed) > 0, "{}", call.name());
        assert_eq!(bytes.load(Relaxed) > 0, moves_bytes, "{}", call.name());
    }
}
