//! Full disks. Needs root, to mount small file systems.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use backend::conformance::{Fixture, if_match, key};
use backend::{Backend, BackendError, WriteOptions};
use backend_posix::{Options, PosixBackend};
use s3_types::Conditions;

/// A mounted tmpfs; unmounted when dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    /// `None`, loudly, where mounting is not allowed.
    fn new(options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(directory.path())
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Self(directory));
        }
        eprintln!("\n*** SKIPPED: cannot mount a tmpfs (not root?), so full disks are NOT tested ***\n");
        None
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

async fn fixture(mount: &Mount) -> Fixture {
    let backend: Arc<dyn Backend> = Arc::new(PosixBackend::open(mount.path(), Options::default()).unwrap());
    Fixture::new(&backend, "space").await
}

fn used(mount: &Mount) -> u64 {
    let stat = rustix::fs::statvfs(mount.path()).unwrap();
    stat.f_blocks - stat.f_bfree
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_leaves_no_trace() {
    let Some(mount) = Mount::new("size=2m") else { return };
    let fixture = fixture(&mount).await;
    fixture.put("kept", &vec![1; 100_000]).await;
    fixture.put("kept", &vec![2; 100_000]).await;
    let (before, names) = (used(&mount), fixture.keys().await);
    for (name, hint) in [("new", None), ("kept", None), ("new/dir/x", Some(3_000_000)), ("new/dir/", None)] {
        let options = WriteOptions { size_hint: hint, ..WriteOptions::default() };
        let error = fixture.put_with(name, &vec![3; 3_000_000], options).await.unwrap_err();
        assert!(matches!(error, BackendError::OutOfSpace), "{name}: {error}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert_eq!(used(&mount), before, "{name}");
        assert_eq!(fixture.keys().await, names);
    }
    // With a reservation, the end is told at the first megabyte.
    let name = key("new");
    let options = WriteOptions { size_hint: Some(3_000_000), ..WriteOptions::default() };
    let mut writer = fixture.backend.put_object(&fixture.cx, fixture.object(&name), options).await.unwrap();
    writer.write(vec![0; 300_000].into()).await.unwrap();
    let early = writer.write(vec![0; 1_100_000].into()).await;
    let passed_over = match early {
        Err(BackendError::OutOfSpace) => writer.write(b"end".to_vec().into()).await,
        other => panic!("{other:?}"),
    };
    // Who goes on all the same gets no object of what is left.
    assert!(passed_over.is_err() || writer.commit(backend::conformance::digests(b"end")).await.is_err());
    assert_eq!(fixture.get("new").await, None);
    assert_eq!(fixture.get("kept").await.unwrap(), vec![2; 100_000]);
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_without_inodes_can_still_be_emptied() {
    let Some(mount) = Mount::new("size=4m,nr_inodes=200") else { return };
    let fixture = fixture(&mount).await;
    let mut names = Vec::new();
    let error = loop {
        let name = format!("d{}/{}", names.len() / 10, names.len());
        match fixture.put_with(&name, b"x", WriteOptions::default()).await {
            Ok(_) => names.push(name),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, BackendError::OutOfSpace), "{error}");
    names.sort();
    assert_eq!(fixture.keys().await, names);
    for name in &names {
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }
    assert!(fixture.keys().await.is_empty());
    fixture.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_tree_can_be_read() {
    let Some(mount) = Mount::new("size=4m") else { return };
    let written = fixture(&mount).await;
    let receipt = written.put("d/a", b"1").await;
    let status = Command::new("mount").args(["-o", "remount,ro"]).arg(mount.path()).status();
    assert!(status.unwrap().success());
    let backend: Arc<dyn Backend> = Arc::new(PosixBackend::open(mount.path(), Options::default()).unwrap());
    let fixture = Fixture { backend, cx: backend::Context::default(), bucket: written.bucket };
    assert_eq!(fixture.get("d/a").await.as_deref(), Some(&b"1"[..]));
    for result in [
        fixture.put_with("d/a", b"2", WriteOptions::default()).await.map(|_| ()),
        fixture.put_with("e/b", b"2", WriteOptions::default()).await.map(|_| ()),
        fixture.put_if("d/a", b"2", if_match(&receipt.etag)).await.map(|_| ()),
        fixture.delete("d/a", &Conditions::default()).await.map(|_| ()),
        fixture.backend.delete_bucket(&fixture.cx, &fixture.bucket).await,
    ] {
        assert!(matches!(result, Err(BackendError::ReadOnly)), "{result:?}");
    }
    assert_eq!(fixture.keys().await, ["d/a"]);
}
