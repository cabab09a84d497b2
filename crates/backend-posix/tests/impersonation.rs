//! File calls of requests as their requesters, decided by the kernel.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::sync::Arc;

use backend::{
    Backend, BackendError, Context, CopyRequest, CopySide, CopySource, CreateBucketRequest,
    CreateUploadRequest, DeleteRequest, Documents, ListBucketsQuery, ListQuery, NewUpload, ObjectBody,
    ObjectRef, PutRequest, ReadRequest, ReadSelector, WriteOptions,
};
use backend_posix::{Options, PosixBackend};
use bytes::Bytes;
use s3_types::{
    BucketName, ChecksumAlgorithm, Conditions, Digester, ETagSource, ObjectKey, ObjectLock, UnixAccount,
    UnixIdentity,
};

const GROUP: u32 = 12_200;
const ANN: u32 = 12_101;
const BOB: u32 = 12_102;

/// A tree with a bucket of ann's, in which the group may write.
struct Tree {
    backend: Arc<PosixBackend>,
    root: tempfile::TempDir,
    bucket: BucketName,
}

/// A requester who is this user, in this group besides its own.
fn user(id: u32, groups: &[u32]) -> Context {
    let account = UnixAccount::new(id, id).unwrap();
    Context { unix: Some(Arc::new(UnixIdentity { account, groups: groups.into() })), ..Context::default() }
}

impl Tree {
    /// `None`, with a message, if this process can't act as others; and on a file system that is
    /// said to keep the groups of users (`tests/file_systems/run.py`), which must be refused.
    async fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() || fixture::sidecars() {
            eprintln!(
                "\n*** SKIPPED: not root, or records are in files, so that acting as users is NOT tested ***\n"
            );
            return None;
        }
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let options = Options { impersonate: true, ..fixture::options() };
        let opened = PosixBackend::open(root.path(), options);
        if env::var_os("SLIPWAY_KEEPS_GROUPS").is_some() {
            let refused = opened.unwrap_err().to_string();
            assert!(refused.contains("who has left a group"), "{refused}");
            return None;
        }
        let backend = Arc::new(opened.unwrap());
        let bucket = BucketName::new("bucket").unwrap();
        let new = CreateBucketRequest { name: &bucket, owner: None, documents: Documents::new() };
        backend.create_bucket(&user(ANN, &[]), new).await.unwrap();
        let tree = Self { backend, root, bucket };
        let place = tree.path("");
        assert_eq!(fs::metadata(&place).unwrap().uid(), ANN);
        chown(&place, None, Some(GROUP)).unwrap();
        fs::set_permissions(place, Permissions::from_mode(0o2770)).unwrap();
        Some(tree)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.root.path().join("bucket").join(key)
    }

    async fn put(&self, cx: &Context, key: &str, body: &'static [u8]) -> backend::Result<()> {
        let key = ObjectKey::new(key).unwrap();
        let options = WriteOptions { size_hint: Some(body.len() as u64), ..WriteOptions::default() };
        let object = ObjectRef::current(&self.bucket, &key);
        let mut writer = self.backend.put_object(cx, PutRequest { object, options, check: None }).await?;
        writer.write(Bytes::from_static(body)).await?;
        let mut digester = Digester::new(Some(ChecksumAlgorithm::Crc64Nvme), ETagSource::Md5);
        digester.update(body);
        writer.commit(digester.finish()).await.map(drop)
    }

    async fn get(&self, cx: &Context, key: &str) -> backend::Result<Bytes> {
        let (key, conditions) = (ObjectKey::new(key).unwrap(), Conditions::default());
        let object = ObjectRef::current(&self.bucket, &key);
        let request = ReadRequest {
            object,
            selector: ReadSelector::Whole,
            conditions: &conditions,
            with_lock: false,
            check: None,
        };
        match self.backend.get_object(cx, request).await?.body {
            ObjectBody::Bytes(bytes) => Ok(bytes),
            _ => panic!("not a small object"),
        }
    }

    async fn delete(&self, cx: &Context, key: &str) -> backend::Result<bool> {
        let (key, conditions) = (ObjectKey::new(key).unwrap(), Conditions::default());
        let object = ObjectRef::current(&self.bucket, &key);
        let request =
            DeleteRequest { object, conditions: &conditions, bypass_governance: false, check: None };
        self.backend.delete_object(cx, request).await.map(|receipt| receipt.existed)
    }

    async fn copy(&self, cx: &Context, from: &str, to: &str) -> backend::Result<()> {
        let (from, to) = (ObjectKey::new(from).unwrap(), ObjectKey::new(to).unwrap());
        let object = ObjectRef::current(&self.bucket, &from);
        let request = CopyRequest {
            source: CopySource { object, conditions: Conditions::default(), check: None },
            target: ObjectRef::current(&self.bucket, &to),
            metadata: None,
            tags: None,
            lock: ObjectLock::default(),
            website_redirect_location: None,
            checksum_algorithm: None,
            conditions: Conditions::default(),
            check: None,
        };
        self.backend.copy_object(cx, request).await.map(drop)
    }

    async fn begin_upload(&self, cx: &Context, key: &str) -> backend::Result<()> {
        let key = ObjectKey::new(key).unwrap();
        let upload = NewUpload::default();
        let request = CreateUploadRequest { object: ObjectRef::current(&self.bucket, &key), upload };
        self.backend.create_upload(cx, request).await.map(drop)
    }

    async fn list(&self, cx: &Context) -> backend::Result<usize> {
        self.list_below(cx, "").await
    }

    async fn list_below(&self, cx: &Context, prefix: &str) -> backend::Result<usize> {
        let query = ListQuery { bucket: &self.bucket, prefix, delimiter: None, start: None, max_items: 100 };
        self.backend.list_objects(cx, &query).await.map(|page| page.items.len())
    }
}

fn is_refused<T: std::fmt::Debug>(result: &backend::Result<T>) {
    assert!(matches!(result, Err(BackendError::NoPosixIdentity)), "{result:?}");
}

/// Returns the error of a copy's source.
fn of_source(error: BackendError) -> BackendError {
    match error {
        BackendError::Copy { side: CopySide::Source, error } => *error,
        other => panic!("{other:?}"),
    }
}

/// Demand that the server could not take the identity on, which is no refusal of the requester.
fn is_not_acted_as<T: std::fmt::Debug>(result: &backend::Result<T>, id: u32) {
    match result {
        Err(error @ BackendError::CannotAct { uid, .. }) => {
            assert!(*uid == id && error.is_of_storage(), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}

/// Demand that the kernel refused, with the requester's own rights, and that the error names the
/// directory or file that is closed: its path in the bucket, "" for the bucket itself.
fn is_closed<T: std::fmt::Debug>(result: &backend::Result<T>, closed: &str) {
    match result {
        Err(BackendError::DeniedToUser { path: Some(path), .. }) => {
            assert_eq!(format!("bucket/{closed}").trim_end_matches('/'), &**path, "{result:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_decides() {
    let Some(tree) = Tree::new().await else { return };
    let (ann, bob, stranger) = (user(ANN, &[]), user(BOB, &[GROUP]), user(BOB, &[]));
    for (cx, key) in [(&ann, "a"), (&bob, "d/e/b"), (&bob, "d/")] {
        tree.put(cx, key, b"1").await.unwrap();
        tree.put(cx, key, b"2").await.unwrap();
    }
    for (name, uid) in [("a", ANN), ("d", BOB), ("d/e", BOB), ("d/e/b", BOB), ("d/.slipway,dir", BOB)] {
        let info = fs::metadata(tree.path(name)).unwrap();
        assert_eq!((info.uid(), info.gid()), (uid, GROUP), "{name}");
    }
    fs::set_permissions(tree.path("a"), Permissions::from_mode(0o600)).unwrap();
    for _ in 0..3 {
        // In turns on the same threads.
        assert_eq!(tree.get(&ann, "a").await.unwrap(), "2");
        is_closed(&tree.get(&bob, "a").await, "a");
        assert_eq!(tree.get(&bob, "d/e/b").await.unwrap(), "2");
        is_closed(&tree.get(&stranger, "d/e/b").await, "");
        assert_eq!(tree.list(&bob).await.unwrap(), 3);
        is_closed(&tree.list(&stranger).await, "");
        is_closed(&tree.put(&stranger, "new", b"1").await, "");
        is_closed(&tree.delete(&stranger, "d/e/b").await, "");
        is_closed(&tree.delete(&stranger, "missing").await, "");
    }
    assert!(tree.delete(&bob, "d/e/b").await.unwrap() && tree.delete(&bob, "d/").await.unwrap());
    assert!(!tree.path("d").exists());
}

/// An operator who looks for the reason has to know where to look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_names_what_is_closed() {
    let Some(tree) = Tree::new().await else { return };
    let (ann, bob) = (user(ANN, &[]), user(BOB, &[GROUP]));
    for key in ["d/e/f", "d/e/g/", "h"] {
        tree.put(&ann, key, b"1").await.unwrap();
    }
    tree.put(&bob, "mine", b"1").await.unwrap();
    let set = |key: &str, mode| fs::set_permissions(tree.path(key), Permissions::from_mode(mode)).unwrap();
    for (mode, in_d) in [(0o700, "d"), (0o750, "d/e")] {
        // Closed altogether, and then to writers; below that another one is.
        set("d", mode);
        set("d/e", if mode == 0o700 { 0o770 } else { 0o700 });
        for key in ["d/e/f", "d/e/g/", "d/e/new", "d/e/new/new"] {
            is_closed(&tree.get(&bob, key).await, in_d);
            is_closed(&tree.put(&bob, key, b"2").await, in_d);
            is_closed(&tree.delete(&bob, key).await, in_d);
        }
    }
    is_closed(&tree.put(&bob, "d/new", b"2").await, "d");
    // In several hops, the first of which makes the file.
    is_closed(&tree.put(&bob, "d/new", vec![0; 3 << 20].leak()).await, "d");
    set("h", 0o600);
    is_closed(&tree.get(&bob, "h").await, "h");
    is_closed(&tree.copy(&bob, "h", "i").await.map_err(of_source), "h");
    is_closed(&tree.copy(&bob, "mine", "d/new").await, "d");
    is_closed(&tree.begin_upload(&bob, "d/new").await, "d");
    set("d", 0o710);
    is_closed(&tree.list_below(&bob, "d/").await, "d");
    // The directories above what is to be made have to be read, too.
    set("", 0o2730);
    is_closed(&tree.list(&bob).await, "");
    is_closed(&tree.get(&bob, "missing").await, "");
    set("", 0o2700);
    is_closed(&tree.backend.bucket_exists(&bob, &tree.bucket).await, "");
    is_closed(&tree.backend.delete_bucket(&bob, &tree.bucket).await, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_nobody_reaches_no_file() {
    let Some(tree) = Tree::new().await else { return };
    tree.put(&user(ANN, &[]), "a", b"1").await.unwrap();
    fs::set_permissions(tree.path(""), Permissions::from_mode(0o777)).unwrap();
    let nobody = Context::default();
    is_refused(&tree.get(&nobody, "a").await);
    is_refused(&tree.put(&nobody, "b", b"1").await);
    is_refused(&tree.delete(&nobody, "a").await);
    is_refused(&tree.list(&nobody).await);
    is_refused(&tree.backend.list_buckets(&nobody, &ListBucketsQuery::default()).await);
    is_refused(&tree.backend.bucket_exists(&nobody, &tree.bucket).await);
    is_refused(&tree.backend.delete_bucket(&nobody, &tree.bucket).await);
    let other = BucketName::new("other").unwrap();
    assert!(!tree.backend.bucket_exists(&nobody, &other).await.unwrap());
    let new = CreateBucketRequest { name: &other, owner: None, documents: Documents::new() };
    is_refused(&tree.backend.create_bucket(&nobody, new).await);
    // Root is nobody here: the identity is refused before anything is done.
    is_not_acted_as(&tree.get(&user(0, &[]), "a").await, 0);
    is_not_acted_as(&tree.get(&user(ANN, &[0]), "a").await, ANN);
}

#[tokio::test]
async fn records_in_files_contradict_it() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("\n*** SKIPPED: not root, so that acting as users is NOT tested ***\n");
    }
    let root = tempfile::tempdir().unwrap();
    let options =
        Options { impersonate: true, metadata: Some(backend_posix::Metadata::Sidecar), ..Options::default() };
    let refused = PosixBackend::open(root.path(), options).unwrap_err().to_string();
    assert!(refused.contains("--impersonate: it does not go with --metadata sidecar"), "{refused}");
}
