//! Tests what answers say about versions, and what a version that is named needs.

use super::rows::Header;
use super::scene::Scene;

pub const SUSPENDED: &str = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";

const VERSION: &str = "x-amz-version-id";
const SOURCE_VERSION: &str = "x-amz-copy-source-version-id";

/// A PUT does not name the null version that it makes, and a copy does not name the one that it
/// reads, as recorded at Amazon S3.
#[tokio::test]
async fn the_null_version_is_named_where_versions_are_kept() {
    let scene = Scene::with_object();
    let attributes = [("x-amz-object-attributes", "ETag")];
    let etag = [("if-none-match", "*")];
    let copy = [("x-amz-copy-source", "bkt/k")];
    let requests: [(&str, &str, &[Header], u16, bool); 9] = [
        ("GET", "/bkt/k", &[], 200, true),
        ("GET", "/bkt/k?versionId=null", &[], 200, true),
        ("HEAD", "/bkt/k", &[], 200, true),
        ("HEAD", "/bkt/k?partNumber=1", &[], 206, true),
        ("GET", "/bkt/k", &etag, 304, true),
        ("GET", "/bkt/k?attributes", &attributes, 200, true),
        ("PUT", "/bkt/new", &[], 200, false),
        ("PUT", "/bkt/copy", &copy, 200, true),
        ("GET", "/bkt", &[], 200, false),
    ];
    for is_set in [false, true] {
        if is_set {
            assert_eq!(scene.ask("PUT", "/bkt?versioning", &[], SUSPENDED).await.0, 200);
        }
        for (method, target, headers, status, is_named) in requests {
            let (answered, told) = scene.ask_for_headers(method, target, headers, "").await;
            let version = told.get(VERSION).map(String::as_str);
            let expected = (is_set && is_named).then_some("null");
            assert_eq!((answered, version), (status, expected), "{method} {target} {headers:?}");
            assert_eq!(told.get(SOURCE_VERSION), None);
        }
    }
}

/// S3's way to make an old version current again.
#[tokio::test]
async fn a_version_that_is_named_is_copied_onto_its_key() {
    let scene = Scene::with_object();
    let copy = async |source| scene.ask("PUT", "/bkt/k", &[("x-amz-copy-source", source)], "").await.0;
    assert_eq!([copy("bkt/k").await, copy("bkt/k?versionId=null").await], [400, 400]);
    assert_eq!(scene.ask("PUT", "/bkt?versioning", &[], SUSPENDED).await.0, 200);
    assert_eq!([copy("bkt/k").await, copy("bkt/k?versionId=null").await], [400, 200]);
    assert_eq!(std::fs::read(scene.tree.path().join("bkt/k")).unwrap(), b"bytes");
}

/// The answers are those recorded at Amazon S3.
#[tokio::test]
async fn a_bucket_with_versions_is_not_deleted() {
    let scene = Scene::with_object();
    let delete = async || scene.ask("DELETE", "/bkt", &[], "").await;
    let says_versions =
        |answer: &str| answer.contains("not empty. You must delete all versions in the bucket.<");
    let (status, answer) = delete().await;
    assert_eq!((status, says_versions(&answer)), (409, false), "{answer}");
    assert_eq!(scene.ask("PUT", "/bkt?versioning", &[], SUSPENDED).await.0, 200);
    let (status, answer) = delete().await;
    assert_eq!((status, says_versions(&answer)), (409, true), "{answer}");
    assert!(answer.contains("<BucketName>bkt<") && scene.has("bkt/k"), "{answer}");
}
