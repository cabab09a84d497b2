//! The suite that every backend must pass, on a directory.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Context, Maintenance as _, conformance};
use backend_posix::{Durability, Metadata, Options, PosixBackend, SweepOptions, Symlinks};

async fn run(options: Options) {
    let metadata = options.metadata;
    let root = tempfile::tempdir().unwrap();
    let backend: Arc<dyn Backend> = Arc::new(PosixBackend::open(root.path(), options).unwrap());
    // For file systems where each level of a key is a call to a server (tests/file_systems).
    conformance::run(backend, std::env::var_os("SLIPWAY_SHALLOW").is_none()).await;
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
    assert!(left.iter().all(|name| metadata == Some(Metadata::Sidecar) && name == ".slipway"), "{left:?}");
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
