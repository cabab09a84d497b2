//! Trees deeper than a stack, keys with more levels than there are descriptors, and no descriptors
//! at all. One test, since the limit on descriptors is the whole process's.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fixture;

use std::fs::File;
use std::path::Path;

use backend::conformance::{Fixture, Subject, digests, key};
use backend::{BackendError, ListBucketsQuery, PutRequest, WriteOptions};
use backend_posix::{Durability, Options, PosixBackend};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use s3_types::Conditions;

/// Makes a chain of directories of one name.
fn nest(top: &Path, name: &str, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = openat(CWD, top, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&directory, name, Mode::RWXU).unwrap();
        directory = openat(&directory, name, flags, Mode::empty()).unwrap();
    }
}

/// The names in a directory, without the gateway's own.
fn plain_names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name != ".slipway" && name != ".slipway,records").collect()
}

/// Takes all descriptors, and asks for something, which must be refused for that. A thread of the
/// backend's that looks at something now and then may have had one until after that: then again.
async fn refused_without_descriptors(
    what: &str,
    taken: &mut Vec<File>,
    ask: impl AsyncFn() -> Result<(), BackendError>,
) {
    for _ in 0..100 {
        while let Ok(file) = File::open("/dev/null") {
            taken.push(file);
        }
        match ask().await {
            Ok(()) => {}
            Err(BackendError::OutOf(_)) => return,
            Err(error) => panic!("{what}: {error:?}"),
        }
    }
    panic!("{what}: never refused");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "no other test is in this process")]
async fn depth_costs_neither_stack_nor_descriptors() {
    let root = tempfile::tempdir().unwrap();
    let deep = fixture::goes_beyond_paths(root.path());
    let options = Options { durability: Durability::None, ..fixture::options() };
    let subject = Subject::of(PosixBackend::open(root.path(), options).unwrap());
    let fixture = Fixture::new(&subject, "depths").await;
    let bucket = root.path().join("conformance-depths");
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(80), ..limit }).unwrap();

    let mut names = vec!["/".repeat(1024), "a/".repeat(511) + "b", "z".to_owned()];
    if !deep {
        let refused = fixture.put_if(&names.remove(0), b"x", Conditions::default()).await;
        assert!(matches!(refused, Err(BackendError::KeyNotStorable(_))), "{refused:?}");
        assert!(fixture.keys().await.is_empty());
        assert_eq!(plain_names(&bucket), Vec::<String>::new(), "nothing is left of what was refused");
        names.insert(0, "/".repeat(100));
    }
    for name in &names {
        fixture.put(name, b"x").await;
    }
    assert_eq!(fixture.keys().await, names);
    assert_eq!(fixture.list("", Some("/"), 10).await, ["/", "a/", "z"]);
    assert_eq!(fixture.list("/", Some("//"), 10).await, ["///"]);
    for name in &names {
        fixture.delete(name, &Conditions::default()).await.unwrap();
    }

    // Made by hand: chains that are no key's, short and long, and plain directories.
    let levels = |bytes: usize| if deep { 6000 } else { 3800 / (bytes + 1) };
    nest(&bucket, ".slipway,+", levels(10));
    nest(&bucket, &format!(".slipway,+{}", "x".repeat(240)), levels(250));
    nest(&bucket, "deep", levels(4));
    fixture.put("z", b"").await;
    assert_eq!(fixture.keys().await, ["z"]);
    assert_eq!(fixture.list("", Some("/"), 10).await, ["z"]);
    let refused = fixture.writer.delete_bucket(&fixture.cx, &fixture.bucket).await;
    assert!(matches!(refused, Err(BackendError::BucketNotEmpty)), "{refused:?}");

    let mut taken = Vec::new();
    refused_without_descriptors("PUT", &mut taken, async || {
        let name = key("z");
        let (object, options) = (fixture.object(&name), WriteOptions::default());
        let request = PutRequest { object, options, check: None };
        fixture.writer.put_object(&fixture.cx, request).await.map(|_| ())
    })
    .await;
    refused_without_descriptors("HEAD", &mut taken, async || fixture.head("z").await.map(|_| ())).await;
    let query = ListBucketsQuery { max_buckets: 10, ..ListBucketsQuery::default() };
    refused_without_descriptors("ListBuckets", &mut taken, async || {
        fixture.reader.list_buckets(&fixture.cx, &query).await.map(|_| ())
    })
    .await;
    drop(taken);
    assert_eq!(fixture.head("z").await.unwrap().attributes.etag, digests(b"").etag);

    // Of a bucket that is deleted, trees like these are no matter either.
    let removed = std::process::Command::new("rm").arg("-rf").arg(bucket.join("deep")).status();
    assert!(removed.unwrap().success());
    setrlimit(Resource::Nofile, limit).unwrap();
    std::process::Command::new("rm").arg("-rf").arg(&bucket).status().unwrap();
}
