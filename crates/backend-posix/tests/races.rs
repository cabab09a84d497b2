//! Gateways on one tree: two backends that know nothing of each other.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;
mod own_devices;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use backend::conformance::{Fixture, Subject, collect, digests, if_absent, if_match, key, on_behalf_of};
use backend::{
    AbortRequest, BackendError, CompleteRequest, Context, CreateBucketRequest, CreateUploadRequest,
    DeleteRequest, DocumentChanges, DocumentKind, Documents, ListPartsQuery, ObjectRef, PutPartRequest,
    PutRequest, ReadRequest, ReadSelector, WriteOptions, replace_documents,
};
use backend_posix::{Durability, Options, PosixBackend};
use bytes::Bytes;
use s3_types::{BucketName, CompletedPart, Conditions};
use tokio::task::JoinSet;

fn open(root: &Path) -> Subject {
    open_with(root, false)
}

fn open_with(root: &Path, chown: bool) -> Subject {
    let options = Options { durability: Durability::None, chown, ..fixture::options() };
    own_devices::subject(root, PosixBackend::open(root, options).unwrap())
}

/// For tests that delete a bucket while others write to it: their buckets are what they make.
fn open_plain(root: &Path) -> Subject {
    let options = Options { durability: Durability::None, ..fixture::options() };
    Subject::of(PosixBackend::open(root, options).unwrap())
}

async fn two(root: &Path) -> [Arc<Fixture>; 2] {
    let first = Fixture::new(&open(root), "races").await;
    let second = Fixture::of(&open(root), first.bucket.clone());
    [Arc::new(first), Arc::new(second)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn if_none_match_has_one_winner() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    for round in 0..fixture::rounds(50) {
        // A new name, the name of a directory, and a directory's own.
        let name = match round % 3 {
            0 => format!("new/{round}"),
            1 => {
                gateways[0].put(&format!("both{round}/below"), b"").await;
                format!("both{round}")
            }
            _ => format!("object{round}/"),
        };
        let mut tasks = JoinSet::new();
        for n in 0..8 {
            let (gateway, name) = (Arc::clone(&gateways[n % 2]), name.clone());
            tasks.spawn(async move {
                let body = format!("{n}").into_bytes();
                match gateway.put_if(&name, &body, if_absent()).await {
                    Ok(_) => Some(body),
                    Err(BackendError::PreconditionFailed(_)) => None,
                    Err(error) => panic!("{error}"),
                }
            });
        }
        let winners: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1, "{name}");
        assert_eq!(gateways[1].get(&name).await.as_ref(), winners.first());
    }
}

/// Each increment with `If-Match` counts, by whichever gateway it is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn if_match_loses_no_update() {
    let each = fixture::rounds(25);
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    for name in ["counter", "d/", "shared"] {
        gateways[0].put("shared/below", b"").await;
        gateways[0].put(name, b"0").await;
        let mut tasks = JoinSet::new();
        for n in 0..8 {
            let gateway = Arc::clone(&gateways[n % 2]);
            tasks.spawn(async move {
                let mut done = 0;
                while done < each {
                    let read = gateway.read(name, ReadSelector::Whole, &Conditions::default()).await.unwrap();
                    let etag = read.attributes.etag.clone();
                    let value: u32 = String::from_utf8(collect(read.body).await).unwrap().parse().unwrap();
                    let next = (value + 1).to_string().into_bytes();
                    match gateway.put_if(name, &next, if_match(&etag)).await {
                        Ok(_) => done += 1,
                        Err(BackendError::PreconditionFailed(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        tasks.join_all().await;
        assert_eq!(gateways[0].get(name).await, Some((8 * each).to_string().into_bytes()), "{name}");
    }
}

/// New directories belong to the requester that was first to need them, and are removed with their
/// last objects.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn new_directories_belong_to_who_made_them() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("\n*** SKIPPED: only root may give files away, so owners are NOT tested ***\n");
    }
    if !fixture::keeps_owners(tempfile::tempdir().unwrap().path()) {
        return eprintln!("\n*** SKIPPED: all files are one user's here, so owners are NOT tested ***\n");
    }
    for setgid in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let gateways = two(root.path()).await;
        let at = root.path().join("conformance-races");
        if setgid {
            fs::set_permissions(&at, fs::Permissions::from_mode(0o2770)).unwrap();
        }
        let account = on_behalf_of(1234, 4321);
        // Directories of others are not removed by a gateway that gives none away.
        let giving = open_with(root.path(), true);
        let giving = Fixture::of(&giving, gateways[0].bucket.clone());
        for round in 0..fixture::rounds(100) {
            let mut tasks = JoinSet::new();
            for n in 0..8 {
                let subject = open_with(root.path(), true);
                let gateway =
                    Fixture { cx: account.clone(), ..Fixture::of(&subject, gateways[0].bucket.clone()) };
                tasks.spawn(async move { gateway.put(&format!("{round}/d/{n}"), b"").await });
            }
            tasks.join_all().await;
            for directory in [at.join(format!("{round}")), at.join(format!("{round}/d"))] {
                let info = fs::metadata(&directory).unwrap();
                assert_eq!((info.uid(), info.gid()), (1234, 4321), "{}", directory.display());
                assert_eq!(info.mode() & 0o2000 != 0, setgid);
            }
            for n in 0..8 {
                assert!(giving.delete(&format!("{round}/d/{n}"), &Conditions::default()).await.unwrap());
            }
            assert!(!at.join(format!("{round}")).exists(), "{round}");
        }
        assert_eq!(fs::read_dir(at.join(".slipway/staging")).unwrap().count(), 0);
    }
}

/// Puts and deletes below shared directories, which are made and removed all the time, lose no
/// acknowledged object.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn directories_that_come_and_go_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    let mut tasks = JoinSet::new();
    for n in 0..6 {
        let gateway = Arc::clone(&gateways[n % 2]);
        tasks.spawn(async move {
            let none = Conditions::default();
            // Each key is one task's own; the directories, and the files that become directories,
            // are everyone's.
            let names = ["a", "a/", "a/b", "a/b/c", "a/b/c/d", "a/b/"];
            let name = names[n];
            for round in 0..fixture::rounds(60) {
                let body = format!("{name} {round}").into_bytes();
                let body = if round % 3 == 0 && name.ends_with('/') { Vec::new() } else { body };
                gateway.put(name, &body).await;
                assert_eq!(gateway.get(name).await.as_ref(), Some(&body), "{name} {round}");
                assert!(gateway.keys().await.contains(&name.to_owned()), "{name} {round}");
                assert!(gateway.delete(name, &none).await.unwrap(), "{name} {round}");
                assert_eq!(gateway.get(name).await, None);
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    assert!(gateways[0].keys().await.is_empty());
    let [gateway, _] = gateways;
    gateway.writer.delete_bucket(&gateway.cx, &gateway.bucket).await.unwrap();
}

/// A directory that is filled again as it is about to be removed stays, and no note of it remains.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn directories_that_come_and_go_leave_no_notes() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let gateway = Arc::clone(&gateways[n % 2]);
        tasks.spawn(async move {
            let name = ["d/a/b", "d/a/", "d/a/c", "d/a"][n / 2];
            for _ in 0..fixture::rounds(200) {
                gateway.put(name, b"").await;
                gateway.delete(name, &Conditions::default()).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let staging = root.path().join(gateways[0].bucket.as_str()).join(".slipway/staging");
    assert_eq!(fs::read_dir(staging).unwrap().count(), 0);
}

/// A file that becomes a directory is never missing to anyone who looks, also where that takes two
/// steps.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_that_becomes_a_directory_is_never_missed() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    let none = Conditions::default();
    for round in 0..fixture::rounds(60) {
        let [name, first, second] = ["", "/1", "/2"].map(|end| format!("d/{round}{end}"));
        gateways[0].put(&name, b"whole").await;
        let looking = async {
            for _ in 0..6 {
                assert_eq!(gateways[1].get(&name).await.as_deref(), Some(&b"whole"[..]), "{name}");
                let refused = gateways[1].put_if(&name, b"new", if_absent()).await;
                assert!(matches!(refused, Err(BackendError::PreconditionFailed(_))), "{refused:?}");
            }
        };
        let listing = async {
            for _ in 0..3 {
                assert!(gateways[1].list("d/", None, 1000).await.contains(&name), "{name}");
                assert_eq!(gateways[1].list("", Some("/"), 1000).await, ["d/"]);
            }
        };
        tokio::join!(gateways[0].put(&first, b""), gateways[1].put(&second, b""), looking, listing);
        assert!(gateways[0].get(&first).await.is_some() && gateways[1].get(&second).await.is_some());
        // One that is being deleted meanwhile is gone for good.
        let gone = format!("d/gone{round}");
        gateways[0].put(&gone, b"").await;
        let below = format!("{gone}/1");
        let (deleted, ()) = tokio::join!(gateways[1].delete(&gone, &none), async {
            gateways[0].put(&below, b"").await;
        });
        assert!(deleted.unwrap(), "{gone}");
        assert_eq!(gateways[0].get(&gone).await, None);
        for name in [name, first, second, below] {
            assert!(gateways[0].delete(&name, &none).await.unwrap(), "{name}");
        }
    }
    assert!(gateways[0].keys().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deleted_bucket_takes_no_acknowledged_object_with_it() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (open_plain(root.path()).writer, open_plain(root.path()).writer);
    let bucket = BucketName::new("bucket").unwrap();
    let cx = Context::default();
    let (mut deleted, mut kept) = (0, 0);
    for round in 0..fixture::rounds(200) {
        match first.create_bucket(&cx, CreateBucketRequest::plain(&bucket)).await {
            Ok(()) | Err(BackendError::BucketExists) => {}
            Err(error) => panic!("{error}"),
        }
        // Some rounds overwrite, which makes locks and staging, or make directories.
        let name = key(["a", "d/e", "d/"][round % 3]);
        let body = vec![1; if round % 2 == 0 { 10 } else { 300_000 }];
        let put = async {
            tokio::time::sleep(std::time::Duration::from_micros(500 * (round as u64 % 25))).await;
            let object = ObjectRef::current(&bucket, &name);
            let mut writer = second
                .put_object(&cx, PutRequest { object, options: WriteOptions::default(), check: None })
                .await?;
            writer.write(body.clone().into()).await?;
            writer.commit(digests(&body)).await
        };
        let upload_key = key("upload");
        let upload_object = ObjectRef::current(&bucket, &upload_key);
        let new = CreateUploadRequest { object: upload_object, upload: backend::NewUpload::default() };
        let id = first.create_upload(&cx, new).await.unwrap().id;
        let upload = backend::UploadRef { object: upload_object, id: &id };
        let (put, delete) = tokio::join!(put, first.delete_bucket(&cx, &bucket));
        let (object, none) = (ObjectRef::current(&bucket, &name), Conditions::default());
        let whole = ReadRequest {
            object,
            selector: ReadSelector::Whole,
            conditions: &none,
            with_lock: false,
            check: None,
        };
        let read = first.get_object(&cx, whole).await;
        match (put, delete) {
            (Ok(_), Ok(())) => panic!("an acknowledged object went with its bucket"),
            (Ok(_), Err(BackendError::BucketNotEmpty | BackendError::Contended(_))) => {
                read.unwrap();
                kept += 1;
                // What failed has done nothing.
                first.list_parts(&cx, ListPartsQuery { upload, after: 0, max_parts: 1 }).await.unwrap();
                let request =
                    DeleteRequest { object, conditions: &none, bypass_governance: false, check: None };
                first.delete_object(&cx, request).await.unwrap();
                first.delete_bucket(&cx, &bucket).await.unwrap();
            }
            (Err(BackendError::NoSuchBucket), Ok(())) => {
                assert!(matches!(read, Err(BackendError::NoSuchBucket)));
                deleted += 1;
            }
            (put, delete) => panic!("{put:?} {delete:?}"),
        }
    }
    let left = fixture::names(root.path());
    assert!(left.is_empty() || left == ["bucket"], "{left:?}");
    println!("{deleted} deleted, {kept} kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn uploads_complete_once() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    for round in 0..10 {
        let name = key("object");
        let cx = Context::default();
        let object = gateways[0].object(&name);
        let id = gateways[0]
            .writer
            .create_upload(&cx, CreateUploadRequest { object, upload: backend::NewUpload::default() })
            .await
            .unwrap()
            .id;
        let upload = backend::UploadRef { object, id: &id };
        let mut writer = gateways[0]
            .writer
            .put_part(&cx, PutPartRequest { upload, part_number: 1, size_hint: None, checksum: None })
            .await
            .unwrap()
            .writer;
        writer.write(b"part".to_vec().into()).await.unwrap();
        let part = writer.commit(digests(b"part")).await.unwrap();
        let parts = vec![CompletedPart { part_number: 1, etag: part.etag, checksum: None }];
        let complete = || backend::CompleteUpload { parts: parts.clone(), ..Default::default() };
        let (first, second, abort) = tokio::join!(
            gateways[0]
                .writer
                .complete_upload(&cx, CompleteRequest { upload, complete: complete(), check: None }),
            gateways[1]
                .writer
                .complete_upload(&cx, CompleteRequest { upload, complete: complete(), check: None }),
            async {
                if round % 2 == 0 {
                    gateways[1].writer.abort_upload(&cx, AbortRequest { upload, if_initiated: None }).await
                } else {
                    Err(BackendError::NoSuchUpload)
                }
            },
        );
        // Who comes while another is at it waits, and gets the same answer.
        let again = gateways[0]
            .writer
            .complete_upload(&cx, CompleteRequest { upload, complete: complete(), check: None })
            .await;
        let (completes, aborted) = ([first, second], abort.is_ok());
        assert!(aborted || matches!(abort, Err(BackendError::NoSuchUpload)), "{abort:?}");
        for result in completes {
            match (result, &again) {
                (Ok(receipt), Ok(again)) if !aborted => assert_eq!(receipt, *again),
                (Err(BackendError::NoSuchUpload), Err(BackendError::NoSuchUpload)) if aborted => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(again.is_err(), aborted, "{again:?}");
    }
}

/// Objects that are replaced all the while are in every listing, both in directories that are read
/// anew each time and in those whose index is kept. On btrfs, replacing a file gives it another
/// place in its directory, so that a reader may miss both.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_replaced_is_listed_all_the_while() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    for (directory, count) in [("few", 60), ("many", 400)] {
        let names: Arc<Vec<_>> = Arc::new((0..count).map(|n| format!("{directory}/{n:03}")).collect());
        for name in names.iter() {
            gateways[0].put(name, b"").await;
        }
        let mut writers = JoinSet::new();
        for n in 0..4 {
            let (gateway, names) = (Arc::clone(&gateways[0]), Arc::clone(&names));
            writers.spawn(async move {
                for round in 0.. {
                    gateway.put(&names[(round * 4 + n) % names.len()], b"").await;
                }
            });
        }
        for round in 0..fixture::rounds(150) {
            // Now and then one that knows nothing of the directory.
            let reader = if round % 10 == 0 {
                let bucket = gateways[0].bucket.clone();
                Arc::new(Fixture::of(&open(root.path()), bucket))
            } else {
                Arc::clone(&gateways[1])
            };
            assert_eq!(reader.list(&format!("{directory}/"), None, 1000).await, *names);
            assert_eq!(reader.list("", Some("/"), 1000).await.last(), Some(&format!("{directory}/")));
        }
        writers.shutdown().await;
    }
}

/// Parts that are uploaded again, each by one client, are in every listing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parts_that_are_uploaded_again_are_listed_all_the_while() {
    let root = tempfile::tempdir().unwrap();
    let gateways = two(root.path()).await;
    let (cx, name) = (Context::default(), key("object"));
    let object = gateways[0].object(&name);
    let id = gateways[0]
        .writer
        .create_upload(&cx, CreateUploadRequest { object, upload: backend::NewUpload::default() })
        .await
        .unwrap()
        .id;
    // Without their length announced they are files of their own, one taking the name of the other.
    let put = |gateway: Arc<Fixture>, number: u32, id: s3_types::UploadId| async move {
        let (cx, name) = (Context::default(), key("object"));
        let upload = backend::UploadRef { object: gateway.object(&name), id: &id };
        let mut writer = gateway
            .writer
            .put_part(&cx, PutPartRequest { upload, part_number: number, size_hint: None, checksum: None })
            .await
            .unwrap()
            .writer;
        writer.write(b"part".to_vec().into()).await.unwrap();
        writer.commit(digests(b"part")).await.unwrap();
    };
    for number in 1..=16 {
        put(Arc::clone(&gateways[0]), number, id.clone()).await;
    }
    let mut writers = JoinSet::new();
    for n in 0..4 {
        let (gateway, id) = (Arc::clone(&gateways[0]), id.clone());
        writers.spawn(async move {
            for round in 0.. {
                put(Arc::clone(&gateway), 1 + (round * 4 + n) % 16, id.clone()).await;
            }
        });
    }
    let upload = backend::UploadRef { object, id: &id };
    for _ in 0..fixture::rounds(200) {
        let query = ListPartsQuery { upload, after: 0, max_parts: 1000 };
        let page = gateways[1].reader.list_parts(&cx, query).await.unwrap();
        let numbers: Vec<_> = page.parts.iter().map(|part| part.part_number).collect();
        assert_eq!(numbers, (1..=16).collect::<Vec<_>>());
    }
    writers.shutdown().await;
}

/// Buckets of one name are made with documents and without, changed and deleted by several
/// gateways: nobody ever sees one with another's documents, which would close it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_bucket_has_the_documents_of_another() {
    let root = tempfile::tempdir().unwrap();
    let gateways: Vec<_> = (0..4).map(|_| open_plain(root.path()).writer).collect();
    let bucket = BucketName::new("bucket").unwrap();
    let document = || Some(Bytes::from_static(b"document"));
    let rounds = fixture::rounds(150);
    let mut tasks = JoinSet::new();
    for (n, gateway) in gateways.iter().cloned().enumerate() {
        let (bucket, cx) = (bucket.clone(), Context::default());
        tasks.spawn(async move {
            let mut seen = 0;
            for round in 0..rounds {
                match (n, round % 2) {
                    (0, _) => match gateway.delete_bucket(&cx, &bucket).await {
                        Ok(()) | Err(BackendError::NoSuchBucket) => {}
                        Err(error) => panic!("{error}"),
                    },
                    (1, with) => {
                        let documents = document().into_iter().map(|text| (DocumentKind::Acl, text));
                        let documents: Documents = documents.take(with).collect();
                        let request =
                            CreateBucketRequest { documents, ..CreateBucketRequest::plain(&bucket) };
                        match gateway.create_bucket(&cx, request).await {
                            Ok(()) | Err(BackendError::BucketExists) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    (2, _) => {
                        let changes = DocumentChanges::from([(DocumentKind::Policy, document())]);
                        match replace_documents(gateway.as_ref(), &cx, &bucket, &changes).await {
                            Ok(_) | Err(BackendError::NoSuchBucket | BackendError::BucketChanged) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    _ => {}
                }
                for _ in 0..5 {
                    match gateway.load_bucket(&cx, &bucket).await {
                        Ok(state) => {
                            assert_eq!(state.closed, None);
                            seen += state.documents.len();
                        }
                        Err(BackendError::NoSuchBucket) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            seen
        });
    }
    let seen: usize = tasks.join_all().await.into_iter().sum();
    assert!(seen > 0, "no bucket had documents");
    let cx = Context::default();
    match gateways[0].delete_bucket(&cx, &bucket).await {
        Ok(()) | Err(BackendError::NoSuchBucket) => {}
        Err(error) => panic!("{error}"),
    }
    let mut left = fixture::names(&root.path().join(".slipway/buckets"));
    // What was removed while it was open, which libfuse may leave.
    left.retain(|name| !name.to_string_lossy().starts_with(".fuse_hidden"));
    assert_eq!(left, [",lock"]);
}
