//! Files that other programs made, and what becomes of the tree.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;
mod own_devices;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use backend::conformance::{Fixture, collect, digests, if_match, key};
use backend::{
    Backend, BackendError, CreateUploadRequest, ListPartsQuery, PutRequest, ReadSelector, WriteOptions,
};
use backend_posix::{Options, PosixBackend, SweepOptions, Symlinks};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, XattrFlags, mknodat, renameat_with};
use rustix::io::Errno;
use s3_types::{Conditions, ETag, ObjectMetadata};
use tempfile::TempDir;

struct Tree {
    fixture: Fixture,
    backend: PosixBackend,
    bucket: PathBuf,
    root: TempDir,
}

async fn tree_with(options: Options) -> Tree {
    let root = tempfile::tempdir().unwrap();
    let backend = PosixBackend::open(root.path(), options).unwrap();
    let fixture = Fixture::new(&own_devices::subject(root.path(), backend.clone()), "files").await;
    let bucket = root.path().join("conformance-files");
    Tree { fixture, backend, bucket, root }
}

async fn tree() -> Tree {
    tree_with(fixture::options()).await
}

/// All paths below, `.slipway` and records left out.
fn paths(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name == ".slipway" || (fixture::sidecars() && name == ".slipway,records") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(paths(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
            found.push(format!("{name}/"));
        } else {
            found.push(name);
        }
    }
    found.sort();
    found
}

fn names_in(directory: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

fn staging(tree: &Tree) -> usize {
    fs::read_dir(tree.bucket.join(".slipway/staging")).map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_file_is_an_object_whoever_made_it() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    fs::create_dir_all(bucket.join("photos/empty")).unwrap();
    fs::write(bucket.join("photos/cat.jpg"), b"meow").unwrap();
    assert_eq!(fixture.keys().await, ["photos/cat.jpg"]);
    let head = fixture.head("photos/cat.jpg").await.unwrap().attributes;
    assert_eq!(head.metadata.content_type.as_deref(), Some("image/jpeg"));
    assert!(matches!(head.etag, ETag::Opaque(_)) && head.checksum.is_none());
    assert_eq!(head.size_bytes, 4);
    let file = fs::metadata(bucket.join("photos/cat.jpg")).unwrap();
    assert_eq!(head.last_modified.as_second(), file.mtime());
    assert_eq!(fixture.get("photos/cat.jpg").await.unwrap(), b"meow");
    // A directory that a person made is no object, and stays when its last object goes.
    assert_eq!(fixture.get("photos/").await, None);
    fixture.put("photos/2024/dog.jpg", b"woof").await;
    for name in ["photos/2024/dog.jpg", "photos/cat.jpg"] {
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }
    assert_eq!(paths(&bucket), ["photos/", "photos/empty/"]);
    // To S3 the bucket is empty, so it goes.
    fixture.finish().await;
}

/// Directories of the file system, or of programs that take snapshots, are not part of the bucket
/// that they are in.
#[tokio::test]
async fn what_is_the_file_systems_own_has_no_keys() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    let theirs = [
        ".snapshot/daily/a",
        "d/.snapshots/1/a",
        "d/.snap/x/a",
        ".zfs/snapshot/x/a",
        "lost+found/#12",
        ".nfsx",
    ];
    for path in theirs {
        fs::create_dir_all(bucket.join(path).parent().unwrap()).unwrap();
        fs::write(bucket.join(path), b"deleted long ago").unwrap();
        assert_eq!(fixture.get(path).await, None, "{path}");
    }
    symlink(".snapshot/daily", bucket.join("link")).unwrap();
    assert_eq!(fixture.get("link/a").await, None);
    assert_eq!(fixture.keys().await, Vec::<String>::new());
    for path in theirs {
        fixture.put(path, b"through S3").await;
        assert_eq!(fixture.get(path).await.unwrap(), b"through S3", "{path}");
        assert_eq!(fixture.keys().await, [path]);
        assert!(fixture.delete(path, &Conditions::default()).await.unwrap());
        assert_eq!(fs::read(bucket.join(path)).unwrap(), b"deleted long ago", "{path}");
    }
    assert_eq!(fixture.keys().await, Vec::<String>::new());
    let deleted = fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
    assert!(matches!(deleted, Err(BackendError::BucketHoldsFiles { .. })), "{deleted:?}");
    for path in theirs {
        assert_eq!(fs::read(bucket.join(path)).unwrap(), b"deleted long ago", "{path}");
    }
}

/// An acknowledged PUT is in the bucket that has the name then, whatever its size.
#[tokio::test]
async fn a_put_whose_bucket_is_renamed_meanwhile_is_not_lost() {
    for (size, made_anew, name) in [1000, 3 << 20]
        .into_iter()
        .flat_map(|size| [(size, true, "a"), (size, true, "d/a"), (size, false, "a"), (size, false, "d/a")])
    {
        let Tree { fixture, bucket, root, .. } = tree().await;
        fs::create_dir(bucket.join("d")).unwrap();
        let (key, body) = (key(name), vec![7; size]);
        let options = WriteOptions::default();
        let mut writer = fixture
            .writer
            .put_object(&fixture.cx, PutRequest { object: fixture.object(&key), options, check: None })
            .await
            .unwrap();
        writer.write(body.clone().into()).await.unwrap();
        let renamed = root.path().join("renamed");
        if made_anew {
            // At once: large bodies are written in the background, which may not find a name that
            // is free for a moment.
            fs::create_dir(&renamed).unwrap();
            if renameat_with(CWD, &bucket, CWD, &renamed, RenameFlags::EXCHANGE).is_err() {
                eprintln!("\n*** SKIPPED: no RENAME_EXCHANGE here ***\n");
                return;
            }
        } else {
            fs::rename(&bucket, &renamed).unwrap();
        }
        let done = writer.commit(digests(&body)).await;
        let device = |path: &Path| fs::metadata(path).unwrap().dev();
        if made_anew && device(&renamed) != device(root.path()) && done.is_err() {
            // The bytes of a large body are on the device of the bucket that was there.
            assert_eq!(fixture.get(name).await, None);
        } else if made_anew {
            assert!(done.is_ok(), "{size} {name} {done:?}");
            assert_eq!(fixture.get(name).await.unwrap(), body, "{size} {name}");
        } else {
            assert!(matches!(done, Err(BackendError::NoSuchBucket)), "{size} {name} {done:?}");
        }
        assert_eq!(paths(&renamed), ["d/"], "{size} {name}");
    }
}

#[tokio::test]
async fn an_edited_file_has_nothing_of_the_old_one() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    let metadata = ObjectMetadata { content_type: Some("x/y".into()), ..ObjectMetadata::default() };
    let written = fixture
        .put_with("a.txt", b"old", WriteOptions { metadata, ..WriteOptions::default() })
        .await
        .unwrap();
    // An edit of the same length within the same tick of the file system's clock cannot be told.
    let whole_seconds = fs::metadata(bucket.join("a.txt")).unwrap().mtime_nsec() == 0;
    std::thread::sleep(Duration::from_millis(if whole_seconds { 1100 } else { 20 }));
    fs::write(bucket.join("a.txt"), b"new").unwrap();
    let read = fixture.read("a.txt", ReadSelector::Whole, &Conditions::default()).await.unwrap();
    assert!(matches!(read.attributes.etag, ETag::Opaque(_)) && read.attributes.checksum.is_none());
    assert_eq!(read.attributes.metadata.content_type.as_deref(), Some("text/plain"));
    assert_eq!(collect(read.body).await, b"new");
    let stale = fixture.put_if("a.txt", b"newer", if_match(&written.etag)).await;
    assert!(matches!(stale, Err(BackendError::PreconditionFailed(_))));
    let edited = fixture.head("a.txt").await.unwrap().attributes.etag;
    fixture.put_if("a.txt", b"newer", if_match(&edited)).await.unwrap();
    assert_eq!(fixture.head("a.txt").await.unwrap().attributes.etag, digests(b"newer").etag);
}

/// Copies a file with its attributes and times, as `cp -a` does: bindfs, with libfuse 2, does not
/// set one of the times alone.
fn copy_as_it_is(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
    let mut record = vec![0; 65536];
    let length = rustix::fs::getxattr(from, "user.slipway", &mut record).unwrap();
    rustix::fs::setxattr(to, "user.slipway", &record[..length], XattrFlags::CREATE).unwrap();
    let info = fs::metadata(from).unwrap();
    let times =
        fs::FileTimes::new().set_accessed(info.accessed().unwrap()).set_modified(info.modified().unwrap());
    fs::File::options().write(true).open(to).unwrap().set_times(times).unwrap();
}

#[tokio::test]
async fn a_copied_file_keeps_its_record_and_a_moved_one_too() {
    if fixture::skips("files that take them along are") {
        return;
    }
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    fixture.put("a", b"1").await;
    copy_as_it_is(&bucket.join("a"), &bucket.join("b"));
    fs::rename(bucket.join("a"), bucket.join("c")).unwrap();
    for name in ["b", "c"] {
        assert_eq!(fixture.head(name).await.unwrap().attributes.etag, digests(b"1").etag);
    }
}

#[tokio::test]
async fn special_files_are_no_objects() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    if mknodat(CWD, bucket.join("fifo"), FileType::Fifo, Mode::RWXU, 0) == Err(Errno::PERM) {
        return eprintln!("\n*** SKIPPED: no special files here, so they are NOT tested ***\n");
    }
    let _socket = std::os::unix::net::UnixListener::bind(bucket.join("socket")).unwrap();
    fixture.put("file", b"").await;
    assert_eq!(fixture.keys().await, ["file"]);
    for name in ["fifo", "socket", "fifo/below"] {
        let read = tokio::time::timeout(Duration::from_secs(5), fixture.get(name)).await.unwrap();
        assert_eq!(read, None, "{name}");
        assert!(!fixture.delete(name, &Conditions::default()).await.unwrap());
    }
    for name in ["fifo", "fifo/below"] {
        let put = fixture.put_with(name, b"x", WriteOptions::default()).await;
        assert!(put.is_err(), "{name}");
    }
    assert!(fs::symlink_metadata(bucket.join("fifo")).unwrap().file_type().is_fifo());
    fixture.delete("file", &Conditions::default()).await.unwrap();
    assert!(matches!(
        fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await,
        Err(BackendError::BucketHoldsFiles { .. })
    ));
}

fn lay_links(tree: &Tree) {
    let Tree { bucket, root, .. } = tree;
    fs::write(root.path().join("secret"), b"secret").unwrap();
    fs::create_dir(root.path().join("other-bucket")).unwrap();
    fs::write(root.path().join("other-bucket/secret"), b"secret").unwrap();
    fs::create_dir_all(bucket.join("real/deep")).unwrap();
    fs::write(bucket.join("real/file"), b"inside").unwrap();
    fs::create_dir_all(bucket.join(".slipway/uploads")).unwrap();
    fs::write(bucket.join(".slipway/uploads/part"), b"secret").unwrap();
    for (target, link) in [
        ("../secret", "out"),
        ("../other-bucket/secret", "other"),
        ("../other-bucket", "other-dir"),
        ("/etc/passwd", "absolute"),
        ("/proc/self/root/etc/passwd", "magic"),
        (".slipway/uploads/part", "own"),
        (".slipway", "own-dir"),
        ("real/../.slipway/uploads", "own-around"),
        ("nowhere", "dangling"),
        ("loop", "loop"),
        ("real/file", "link"),
        ("real", "dir"),
        ("..", "real/deep/up"),
        ("../../real", "real/deep/up2"),
    ] {
        symlink(target, bucket.join(link)).unwrap();
    }
}

#[tokio::test]
async fn links_lead_nowhere_but_within_the_bucket() {
    let tree = tree().await;
    lay_links(&tree);
    let Tree { fixture, bucket, .. } = &tree;
    let inside = ["dir/file", "link", "real/file"];
    assert_eq!(fixture.keys().await, inside);
    assert_eq!(fixture.list("", Some("/"), 2).await, ["dir/", "link", "real/"]);
    for name in inside {
        assert_eq!(fixture.get(name).await.as_deref(), Some(&b"inside"[..]), "{name}");
    }
    for name in [
        "out",
        "other",
        "other-dir/secret",
        "absolute",
        "magic",
        "own",
        "own-dir/uploads/part",
        "own-around/part",
        "dangling",
        "loop",
        "loop/x",
    ] {
        assert_eq!(fixture.get(name).await, None, "{name}");
        assert!(!fixture.delete(name, &Conditions::default()).await.unwrap(), "{name}");
        assert!(fixture.put_with(name, b"x", WriteOptions::default()).await.is_err(), "{name}");
        assert!(fixture.list(name, None, 9).await.is_empty(), "{name}");
    }
    assert_eq!(fs::read(tree.root.path().join("other-bucket/secret")).unwrap(), b"secret");
    assert_eq!(fs::read(bucket.join(".slipway/uploads/part")).unwrap(), b"secret");

    // A write goes where the link leads, and replaces a link that is an object itself.
    fixture.put("dir/new", b"new").await;
    assert_eq!(fs::read(bucket.join("real/new")).unwrap(), b"new");
    fixture.put("link", b"own").await;
    assert!(fs::symlink_metadata(bucket.join("link")).unwrap().is_file());
    assert_eq!(fixture.get("real/file").await.as_deref(), Some(&b"inside"[..]));
}

#[tokio::test]
async fn refused_links_are_not_there() {
    let tree = tree_with(Options { symlinks: Symlinks::Refuse, ..fixture::options() }).await;
    lay_links(&tree);
    assert_eq!(tree.fixture.keys().await, ["real/file"]);
    assert_eq!(tree.fixture.get("link").await, None);
    assert_eq!(tree.fixture.get("dir/file").await, None);
    assert!(tree.fixture.put_with("dir/x", b"", WriteOptions::default()).await.is_err());
}

#[tokio::test]
async fn our_own_directory_is_no_key_at_any_depth() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    fixture.put("a", b"1").await;
    fixture.put("a", b"2").await;
    // As after `cp -r bucket/* bucket/sub`.
    fs::create_dir_all(bucket.join("sub/.slipway/uploads")).unwrap();
    fs::write(bucket.join("sub/.slipway/uploads/x"), b"").unwrap();
    fs::write(bucket.join(".slipway,made-up"), b"").unwrap();
    fs::create_dir(bucket.join(".slipway,+made")).unwrap();
    fs::write(bucket.join(".slipway,+made/.slipway,.up"), b"").unwrap();
    assert_eq!(fixture.keys().await, ["a"]);
    for name in
        [".slipway/locks/00", ".slipway/", "sub/.slipway/uploads/x", ".slipway,made-up", ".slipway,+made/x"]
    {
        assert_eq!(fixture.get(name).await, None, "{name}");
    }
    assert_eq!(fixture.list("", Some("/"), 9).await, ["a"]);
    // A name that is not text is not a key.
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe");
    fs::write(bucket.join(odd), b"").unwrap();
    assert_eq!(fixture.keys().await, ["a"]);
}

#[tokio::test]
async fn the_tree_looks_as_one_would_expect() {
    let Tree { fixture, bucket, root: _root, .. } = tree().await;
    for name in ["plain", "a/b/c.txt", "dir/", "both", "both/x", "data/"] {
        fixture.put(name, if name == "dir/" { b"" } else { b"x" }).await;
    }
    assert_eq!(
        paths(&bucket),
        [
            "a/",
            "a/b/",
            "a/b/c.txt",
            "both/",
            "both/.slipway,self",
            "both/x",
            "data/",
            "data/.slipway,dir",
            "dir/",
            "plain"
        ]
    );
    let expected = ["a/b/c.txt", "both", "both/x", "data/", "dir/", "plain"];
    assert_eq!(fixture.keys().await, expected);
    for name in expected {
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }
    assert!(paths(&bucket).is_empty());
}

#[tokio::test]
async fn writers_that_are_dropped_leave_nothing() {
    let tree = tree().await;
    let fixture = &tree.fixture;
    fixture.put("a", b"kept").await;
    for size in [10, 300_000, 5_000_000] {
        for name in ["a", "new/dir/b"] {
            let name = key(name);
            let writer = fixture
                .writer
                .put_object(
                    &fixture.cx,
                    PutRequest {
                        object: fixture.object(&name),
                        options: WriteOptions::default(),
                        check: None,
                    },
                )
                .await;
            let mut writer = writer.unwrap();
            writer.write(vec![0; size].into()).await.unwrap();
        }
    }
    // A write that fails on its condition, too.
    let name = key("new/c");
    let options = WriteOptions { conditions: backend::conformance::if_absent(), ..WriteOptions::default() };
    let mut writer = fixture
        .writer
        .put_object(&fixture.cx, PutRequest { object: fixture.object(&name), options, check: None })
        .await
        .unwrap();
    writer.write(vec![0; 300_000].into()).await.unwrap();
    fixture.put("new/c", b"first").await;
    assert!(writer.commit(digests(b"")).await.is_err());
    // What was being written when it was dropped goes when that is done, which a slow file system
    // takes its time for.
    for _ in 0..100 {
        if staging(&tree) == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(staging(&tree), 0, "{:?}", names_in(&tree.bucket.join(".slipway/staging")));
    assert_eq!(paths(&tree.bucket), ["a", "new/", "new/c"]);
    assert_eq!(fixture.get("a").await.as_deref(), Some(&b"kept"[..]));
}

#[tokio::test]
async fn records_beyond_the_file_systems_limit_have_companions() {
    if fixture::skips("companions are") {
        return;
    }
    let tree = tree().await;
    let fixture = &tree.fixture;
    let overflow = || fs::read_dir(tree.bucket.join(".slipway/overflow")).map_or(0, Iterator::count);
    // As much as a record holds; with the rest of it, more than any attribute.
    let user = (10..74).map(|n| (format!("name-{n}"), "v".repeat(1016))).collect();
    let metadata = ObjectMetadata { user, ..ObjectMetadata::default() };
    let options = || WriteOptions { metadata: metadata.clone(), ..WriteOptions::default() };
    for name in ["a", "d/", "e/"] {
        let body = if name == "e/" { &b""[..] } else { b"x" };
        for _ in 0..2 {
            fixture.put_with(name, body, options()).await.unwrap();
            assert_eq!(overflow(), 1, "{name}");
            let head = fixture.head(name).await.unwrap().attributes;
            assert_eq!(head.metadata, metadata);
            assert_eq!((&head.etag, head.checksum), (&digests(body).etag, digests(body).checksum));
        }
        fixture.put(name, body).await;
        assert_eq!(overflow(), 0, "{name}");
        fixture.put_with(name, body, options()).await.unwrap();
        fixture.delete(name, &Conditions::default()).await.unwrap();
        assert_eq!(overflow(), 0, "{name}");
        // A write that fails takes its companion with it.
        let failed = WriteOptions { conditions: if_match(&ETag::Md5([0; 16])), ..options() };
        assert!(fixture.put_with(name, body, failed).await.is_err());
        assert_eq!(overflow(), 0, "{name}");
    }
    // Without its companion a file still has what its attribute says.
    fixture.put_with("a.txt", b"x", options()).await.unwrap();
    fs::remove_dir_all(tree.bucket.join(".slipway/overflow")).unwrap();
    let head = fixture.head("a.txt").await.unwrap().attributes;
    assert_eq!((head.etag, head.metadata.content_type.as_deref()), (digests(b"x").etag, Some("text/plain")));
}

#[tokio::test]
async fn the_sweep_removes_what_no_one_has() {
    let tree = tree().await;
    let fixture = &tree.fixture;
    fixture.put("a", b"1").await;
    fixture.put("a", b"2").await;
    let staging_path = tree.bucket.join(".slipway/staging");
    let [leftover, directory, held] = [7, 8, 9].map(|number| staging_path.join(format!("{number:032x}")));
    fs::write(leftover, b"").unwrap();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join(".slipway,self"), b"").unwrap();
    let held = fs::File::create(held).unwrap();
    held.lock().unwrap();
    let name = key("u");
    let object = fixture.object(&name);
    let id = fixture
        .writer
        .create_upload(&fixture.cx, CreateUploadRequest { object, upload: backend::NewUpload::default() })
        .await
        .unwrap()
        .id;

    let sweep = async |options| tree.backend.sweep_with(&fixture.bucket, options).await.unwrap();
    assert_eq!(sweep(SweepOptions::default()).await, backend::SweepReport::default());
    let zero = Duration::ZERO;
    let all = SweepOptions { staging_age: zero, completed_age: zero, upload_age: None, all_chains: true };
    assert_eq!(sweep(all.clone()).await.staging, 2);
    assert_eq!(staging(&tree), 1);
    drop(held);
    let report = sweep(SweepOptions { upload_age: Some(zero), ..all }).await;
    assert_eq!((report.staging, report.uploads), (1, 1));
    let upload = backend::UploadRef { object, id: &id };
    assert!(matches!(
        fixture.reader.list_parts(&fixture.cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await,
        Err(BackendError::NoSuchUpload)
    ));
    assert_eq!(fixture.get("a").await.as_deref(), Some(&b"2"[..]));
}

#[tokio::test]
async fn buckets_that_people_made_are_buckets() {
    let tree = tree().await;
    let cx = backend::Context::default();
    fs::create_dir(tree.root.path().join("by-hand")).unwrap();
    fs::create_dir(tree.root.path().join("Not_A_Bucket")).unwrap();
    fs::create_dir_all(tree.root.path().join(".slipway")).unwrap();
    fs::write(tree.root.path().join("a-file"), b"").unwrap();
    symlink("by-hand", tree.root.path().join("a-link")).unwrap();
    let query = backend::ListBucketsQuery { max_buckets: 10, ..Default::default() };
    let page = tree.backend.list_buckets(&cx, &query).await.unwrap();
    let names: Vec<_> = page.buckets.iter().map(|bucket| bucket.name.as_str()).collect();
    assert_eq!(names, ["by-hand", "conformance-files"]);
    let now = s3_types::Timestamp::now();
    assert!((now.as_second() - page.buckets[0].created.as_second()).abs() < 60);
    for name in ["a-file", "a-link"] {
        let name = s3_types::BucketName::new(name).unwrap();
        assert!(!tree.backend.bucket_exists(&cx, &name).await.unwrap());
    }
    let by_hand = s3_types::BucketName::new("by-hand").unwrap();
    tree.backend.delete_bucket(&cx, &by_hand).await.unwrap();
}

/// The record of an ordinary object takes no space beyond its inode, on ext4 with 256-byte inodes.
#[tokio::test]
async fn an_ordinary_record_takes_no_block() {
    if fixture::skips("the size of records in inodes is") {
        return;
    }
    let tree = tree().await;
    if rustix::fs::statfs(tree.root.path()).unwrap().f_type != 0xef53 {
        eprintln!("\n*** SKIPPED: not on ext4, so the size of records in inodes is NOT tested ***\n");
        return;
    }
    let metadata =
        ObjectMetadata { content_type: Some("application/json".into()), ..ObjectMetadata::default() };
    let options = WriteOptions { metadata, ..WriteOptions::default() };
    tree.fixture.put_with("a", &[1; 4096], options).await.unwrap();
    assert_eq!(fs::metadata(tree.bucket.join("a")).unwrap().blocks() * 512, 4096);
}
