//! scratch
use std::sync::Arc;
use backend::*;
use backend_posix::{Options, PosixBackend};
use s3_types::*;

#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let b: Arc<dyn Backend> = Arc::new(PosixBackend::open(dir.path(), Options::default()).unwrap());
    let cx = Context::default();
    let bucket = BucketName::new("bucket").unwrap();
    b.create_bucket(&cx, &bucket).await.unwrap();
    for k in ["a", "a/b", "a/", "x/y/z", "a//b", ".", "..", ".slipway/x", "z/", "a-b"] {
        let key = ObjectKey::new(k).unwrap();
        let o = ObjectRef { bucket: &bucket, key: &key };
        for round in 0..2 {
        let mut w = b.put_object(&cx, o, WriteOptions::default()).await.unwrap();
        let mut d = Digester::new(Some(ChecksumAlgorithm::Crc64Nvme));
        let body = if k.ends_with("z/") {vec![]} else {format!("{k}{round}").into_bytes()};
        d.update(&body);
        w.write(bytes::Bytes::from(body.clone())).await.unwrap();
        w.commit(d.finish()).await.unwrap();
        let r = b.get_object(&cx, o, ReadSelector::Whole, &Conditions::default()).await.unwrap();
        match r.body { ObjectBody::Bytes(x) => assert_eq!(x, body), ObjectBody::Empty => assert!(body.is_empty()), _ => panic!() }
        }
    }
    let q = ListObjectsQuery { bucket: &bucket, prefix: "", delimiter: None, start: None, max_items: 1000 };
    let p = b.list_objects(&cx, &q).await.unwrap();
    println!("{:?}", p.items.iter().map(|i| match i { ListItem::Object(o) => o.key.as_str().to_owned(), ListItem::CommonPrefix(p) => format!("P:{p}") }).collect::<Vec<_>>());
    let q = ListObjectsQuery { bucket: &bucket, prefix: "", delimiter: Some("/"), start: None, max_items: 1000 };
    let p = b.list_objects(&cx, &q).await.unwrap();
    println!("{:?}", p.items.iter().map(|i| match i { ListItem::Object(o) => o.key.as_str().to_owned(), ListItem::CommonPrefix(p) => format!("P:{p}") }).collect::<Vec<_>>());
    println!("{}", String::from_utf8(std::process::Command::new("find").arg(dir.path()).output().unwrap().stdout).unwrap());
    assert!(matches!(b.delete_bucket(&cx, &bucket).await, Err(BackendError::BucketNotEmpty)));
    for i in p.items { println!("{i:?}"); }
    for k in ["a", "a/b", "a/", "x/y/z", "a//b", ".", "..", ".slipway/x", "z/", "a-b"] {
        let key = ObjectKey::new(k).unwrap();
        let o = ObjectRef { bucket: &bucket, key: &key };
        assert!(b.delete_object(&cx, o, &Conditions::default()).await.unwrap().existed, "{k}");
        assert!(!b.delete_object(&cx, o, &Conditions::default()).await.unwrap().existed);
    }
    println!("{}", String::from_utf8(std::process::Command::new("find").arg(dir.path()).output().unwrap().stdout).unwrap());
    b.delete_bucket(&cx, &bucket).await.unwrap();
    assert!(matches!(b.head_bucket(&cx, &bucket).await, Err(BackendError::NoSuchBucket)));
    println!("{}", String::from_utf8(std::process::Command::new("find").arg(dir.path()).output().unwrap().stdout).unwrap());
}
