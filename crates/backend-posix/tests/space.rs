//! Full disks. Needs root, to mount small file systems.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::ffi::CString;
use std::path::Path;

use backend::conformance::{Fixture, Subject, if_match, key};
use backend::{
    AbortRequest, BackendError, CompleteRequest, CreateUploadRequest, PutPartRequest, PutRequest,
    WriteOptions,
};
use backend_posix::{Metadata, Options, PosixBackend, SweepOptions};
use rustix::mount::{MountFlags, UnmountFlags, mount_remount, unmount};
use s3_types::{CompletedPart, Conditions};

/// Mounts by a system call: a program like mount(8) would share the locks of all tests until it
/// runs.
fn mount_tmpfs(directory: &Path, options: &str) -> rustix::io::Result<()> {
    let options = CString::new(options).unwrap();
    rustix::mount::mount("tmpfs", directory, "tmpfs", MountFlags::empty(), options.as_c_str())
}

/// A mounted tmpfs; unmounted when dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    /// Mounts a tmpfs. `None`, with a message, if mounting is not allowed.
    fn new(options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        if mount_tmpfs(directory.path(), options).is_ok() {
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
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}

async fn fixture(mount: &Mount) -> Fixture {
    let subject = Subject::of(PosixBackend::open(mount.path(), fixture::options()).unwrap());
    Fixture::new(&subject, "space").await
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
    // What is announced and can't fit is refused at once, an upload's part too.
    let name = key("new");
    let object = fixture.object(&name);
    let options = WriteOptions { size_hint: Some(3_000_000), ..WriteOptions::default() };
    let early =
        fixture.writer.put_object(&fixture.cx, PutRequest { object, options, check: None }).await.map(|_| ());
    assert!(matches!(early, Err(BackendError::OutOfSpace)), "{early:?}");
    let id = fixture
        .writer
        .create_upload(&fixture.cx, CreateUploadRequest { object, upload: backend::NewUpload::default() })
        .await
        .unwrap()
        .id;
    let upload = backend::UploadRef { object, id: &id };
    let early = fixture
        .writer
        .put_part(
            &fixture.cx,
            PutPartRequest { upload, part_number: 1, size_hint: Some(3_000_000), checksum: None },
        )
        .await
        .map(|_| ());
    assert!(matches!(early, Err(BackendError::OutOfSpace)), "{early:?}");
    fixture.writer.abort_upload(&fixture.cx, AbortRequest { upload, if_initiated: None }).await.unwrap();
    // Who goes on after an error gets no object of what is left.
    let none = WriteOptions::default();
    let mut writer = fixture
        .writer
        .put_object(&fixture.cx, PutRequest { object, options: none, check: None })
        .await
        .unwrap();
    let mut failed = false;
    for _ in 0..30 {
        failed |= writer.write(vec![0; 100_000].into()).await.is_err();
    }
    assert!(failed | writer.commit(backend::conformance::digests(b"")).await.is_err());
    assert_eq!(fixture.get("new").await, None);
    assert_eq!(fixture.get("kept").await.unwrap(), vec![2; 100_000]);
    fixture.finish().await;
}

/// The size of a part.
const PART: usize = 5 << 20;

/// Puts a part of so many bytes, which are all the same.
async fn put_part(
    fixture: &Fixture,
    upload: backend::UploadRef<'_>,
    part_number: u32,
    byte: u8,
    announced: bool,
) -> CompletedPart {
    let size_hint = announced.then_some(PART as u64);
    let request = PutPartRequest { upload, part_number, size_hint, checksum: None };
    let mut writer = fixture.writer.put_part(&fixture.cx, request).await.unwrap().writer;
    let body = vec![byte; PART];
    for chunk in body.chunks(400_000) {
        writer.write(chunk.to_vec().into()).await.unwrap();
    }
    let etag = writer.commit(backend::conformance::digests(&body)).await.unwrap().etag;
    CompletedPart { part_number, etag, checksum: None }
}

/// A part that does not fit, and a Complete that needs more than there is, leave the upload and the
/// space as they were.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_survive_a_full_disk() {
    // Parts that are not in place are copied, all of them.
    let (size, filler_bytes) =
        if fixture::sidecars() { ("size=36m", 18 << 20) } else { ("size=27m", 9 << 20) };
    let Some(mount) = Mount::new(size) else { return };
    let fixture = fixture(&mount).await;
    let name = key("object");
    let object = fixture.object(&name);
    let id = fixture
        .writer
        .create_upload(&fixture.cx, CreateUploadRequest { object, upload: backend::NewUpload::default() })
        .await
        .unwrap()
        .id;
    let upload = backend::UploadRef { object, id: &id };
    let mut parts: Vec<CompletedPart> = Vec::new();
    for (number, byte, announced) in [(1, 1, true), (3, 3, true), (2, 2, false)] {
        parts.push(put_part(&fixture, upload, number, byte, announced).await);
    }
    parts.sort_by_key(|part| part.part_number);
    // Others take the space while it is being written, so that the announcement still fits.
    let before = used(&mount);
    let filler = mount.path().join("conformance-space/filler");
    let mut writer = fixture
        .writer
        .put_part(
            &fixture.cx,
            PutPartRequest { upload, part_number: 4, size_hint: Some(PART as u64), checksum: None },
        )
        .await
        .unwrap()
        .writer;
    std::fs::write(&filler, vec![0; filler_bytes]).unwrap();
    let mut failed = false;
    for _ in 0..5 {
        failed |= writer.write(vec![4; 1 << 20].into()).await.is_err();
    }
    failed |= writer.commit(backend::conformance::digests(b"")).await.is_err();
    assert!(failed);
    std::fs::remove_file(&filler).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(used(&mount) <= before + 4, "{} {before}", used(&mount));

    // Part 2 has to be copied to its slot.
    std::fs::write(&filler, vec![0; filler_bytes]).unwrap();
    let before = used(&mount);
    let complete = backend::CompleteUpload { parts: parts.clone(), ..Default::default() };
    let full = fixture
        .writer
        .complete_upload(&fixture.cx, CompleteRequest { upload, complete: complete.clone(), check: None })
        .await;
    assert!(matches!(full, Err(BackendError::OutOfSpace)), "{full:?}");
    assert!(used(&mount) <= before + 4, "{} {before}", used(&mount));
    let query = backend::ListPartsQuery { upload, after: 0, max_parts: 10 };
    assert_eq!(fixture.reader.list_parts(&fixture.cx, query).await.unwrap().parts.len(), 3);
    std::fs::remove_file(&filler).unwrap();
    fixture
        .writer
        .complete_upload(&fixture.cx, CompleteRequest { upload, complete, check: None })
        .await
        .unwrap();
    let body = fixture.get("object").await.unwrap();
    assert!(body == [vec![1; PART], vec![2; PART], vec![3; PART]].concat());
    fixture.finish().await;
}

/// A claim takes no disk: many large ones at once are all let in, and only what arrives is used.
#[tokio::test(flavor = "multi_thread")]
async fn claims_take_no_space() {
    let Some(mount) = Mount::new("size=600m") else { return };
    let fixture = fixture(&mount).await;
    let (before, mut writers) = (used(&mount), Vec::new());
    for n in 0..4 {
        let name = key(&format!("claim{n}"));
        let options = WriteOptions { size_hint: Some(300 << 20), ..WriteOptions::default() };
        let object = fixture.object(&name);
        let mut writer = fixture
            .writer
            .put_object(&fixture.cx, PutRequest { object, options, check: None })
            .await
            .unwrap();
        writer.write(vec![0; 300_000].into()).await.unwrap();
        writers.push(writer);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        if n == 0 {
            let taken = (used(&mount) - before) * 4096;
            assert!(taken < 70 << 20, "{taken}");
        }
    }
}

/// If something is mounted inside a bucket, only the target's own directory is on its file system.
#[tokio::test(flavor = "multi_thread")]
async fn mounts_inside_a_bucket_are_part_of_it() {
    let Some(mount) = Mount::new("size=4m") else { return };
    let backend = PosixBackend::open(mount.path(), fixture::options()).unwrap();
    let fixture = Fixture::new(&Subject::of(backend.clone()), "space").await;
    let inner = mount.path().join("conformance-space/inner");
    std::fs::create_dir(&inner).unwrap();
    mount_tmpfs(&inner, "size=4m").unwrap();
    for name in ["inner/a", "inner/a/b", "inner/a/", "inner/a/b/c"] {
        for body in [&b"1"[..], b"2"] {
            fixture.put(name, body).await;
            assert_eq!(fixture.get(name).await.as_deref(), Some(body), "{name}");
        }
    }
    assert_eq!(fixture.keys().await, ["inner/a", "inner/a/", "inner/a/b", "inner/a/b/c"]);
    // What a crash left there.
    std::fs::write(inner.join(format!(".slipway,t{:032x}", 1)), b"").unwrap();
    std::fs::create_dir(inner.join(format!(".slipway,t{:032x}", 2))).unwrap();
    let options = SweepOptions { staging_age: std::time::Duration::ZERO, ..SweepOptions::default() };
    assert_eq!(backend.sweep_with(&fixture.bucket, options).await.unwrap().staging, 2);
    for name in fixture.keys().await {
        fixture.delete(&name, &Conditions::default()).await.unwrap();
    }
    let left = std::fs::read_dir(&inner).unwrap().map(|entry| entry.unwrap().file_name());
    // A directory that a person made keeps its folder for records.
    assert!(left.collect::<Vec<_>>().iter().all(|name| fixture::sidecars() && name == ".slipway,records"));
    unmount(&inner, UnmountFlags::empty()).unwrap();
    std::fs::remove_dir(&inner).unwrap();
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

/// With records beside the files, a directory object leaves a file with the directory's mark: that
/// must not need space.
#[tokio::test(flavor = "multi_thread")]
async fn directory_objects_go_from_a_full_disk() {
    for (size, inodes_too) in [("size=4m,nr_inodes=400", false), ("size=4m,nr_inodes=200", true)] {
        let Some(mount) = Mount::new(size) else { return };
        let options = Options { metadata: Some(Metadata::Sidecar), ..Options::default() };
        let subject = Subject::of(PosixBackend::open(mount.path(), options).unwrap());
        let fixture = Fixture::new(&subject, "space").await;
        for name in ["d/", "d/x", "e/", "f/g/", "f/g/y"] {
            let body: &[u8] = if name == "f/g/" { b"bytes" } else { b"" };
            fixture.put(name, body).await;
        }
        // The locks are there, as on any tree that was used; then no space is left.
        let bucket = mount.path().join("conformance-space");
        std::fs::write(mount.path().join("filler"), vec![0; 8 << 20]).unwrap_err();
        if inodes_too {
            let full = (0..400).find(|n| std::fs::write(mount.path().join(format!("f{n}")), "").is_err());
            assert!(full.is_some());
        }
        for name in ["d/", "e/", "f/g/"] {
            fixture.delete(name, &Conditions::default()).await.unwrap();
        }
        assert_eq!(fixture.keys().await, ["d/x", "f/g/y"]);
        assert!(!bucket.join("e").exists(), "{size}");
        for name in ["d/x", "f/g/y"] {
            fixture.delete(name, &Conditions::default()).await.unwrap();
        }
        // Their marks outlived the directory objects.
        assert!(!bucket.join("d").exists() && !bucket.join("f").exists(), "{size}");
        std::fs::remove_file(mount.path().join("filler")).unwrap();
        // DeleteBucket needs locks that no one has made yet.
        for n in 0..100 {
            let _ = std::fs::remove_file(mount.path().join(format!("f{n}")));
        }
        fixture.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_tree_can_be_read() {
    let Some(mount) = Mount::new("size=4m") else { return };
    let written = fixture(&mount).await;
    let receipt = written.put("d/a", b"1").await;
    mount_remount(mount.path(), MountFlags::RDONLY, c"").unwrap();
    let subject = Subject::of(PosixBackend::open(mount.path(), fixture::options()).unwrap());
    let fixture = Fixture::of(&subject, written.bucket);
    assert_eq!(fixture.get("d/a").await.as_deref(), Some(&b"1"[..]));
    for result in [
        fixture.put_with("d/a", b"2", WriteOptions::default()).await.map(|_| ()),
        fixture.put_with("e/b", b"2", WriteOptions::default()).await.map(|_| ()),
        fixture.put_if("d/a", b"2", if_match(&receipt.etag)).await.map(|_| ()),
        fixture.delete("d/a", &Conditions::default()).await.map(|_| ()),
        fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await,
    ] {
        assert!(matches!(result, Err(BackendError::ReadOnly)), "{result:?}");
    }
    assert_eq!(fixture.keys().await, ["d/a"]);
}
