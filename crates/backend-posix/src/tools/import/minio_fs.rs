//! Makes records from the metadata that MinIO's file system backend left ("fs": one drive, until
//! 2022).
//!
//! Objects are plain files, at the paths of their keys. `.minio.sys/buckets/BUCKET/KEY/fs.json` has
//! a version, a map of headers and metadata (the ETag among them) and the sizes of parts. It was
//! written after the file, and does not contain the file's time. As with versitygw, only the file's
//! bytes show whether the ETag belongs to them. Whoever can write the tree can write `fs.json`, so
//! that nothing in it is trusted to be well-formed.

use std::path::Path;
use std::sync::Arc;

use backend::{ObjectPart, Result};
use rustix::fs::FileType;
use rustix::io::Errno;
use s3_types::limits::PARTS_MAX;
use s3_types::{BucketName, ETag, ObjectMetadata, Tags};
use serde::Deserialize;

use super::proof;
use super::report::{ImportOptions, ImportReporter, Imported};
use crate::error::{Io, Op};
use crate::facts::versitygw::{Attributes, is_token};
use crate::fs::{files, resolve};
use crate::layout::keymap::{self, join};
use crate::limits::FOREIGN_VALUE_BYTES_MAX;
use crate::tools::candidate::Candidate;
use crate::tools::opening::{CAN_BE_REPEATED, for_each_bucket, open};
use crate::tools::progress::Progress;
use crate::tools::tree::{self, WalkEntry};
use crate::tree::bucket::{Bucket, Directory};
use crate::tree::store::Store;

/// MinIO's own directory, beside the buckets.
const OWN: &str = ".minio.sys";
/// The kinds of data in that directory for which records have no place.
const LEFT: [(&str, &str); 3] = [
    (".minio.sys/config/iam", "users and policies"),
    (".minio.sys/multipart", "uploads in progress"),
    (".minio.sys/config", "configuration"),
];
const VERSIONS: [&str; 3] = ["1.0.0", "1.0.1", "1.0.2"];
/// The headers of transformations that only MinIO can undo, and the names of these.
const TRANSFORMED: [(&str, &str); 3] = [
    ("x-minio-internal-server-side-encryption", "encrypted"),
    ("x-minio-internal-encrypted", "encrypted"),
    ("x-minio-internal-compression", "compressed"),
];
const NOT_CARRIED: [(&str, &str); 4] = [
    ("x-amz-tagging", "tags"),
    ("x-amz-object-lock-mode", "retention"),
    ("x-amz-object-lock-legal-hold", "legal hold"),
    ("x-amz-acl", "ACL"),
];

#[derive(Deserialize)]
struct FormatFile {
    format: String,
}

#[derive(Deserialize)]
struct MetaFile {
    version: String,
    #[serde(default)]
    meta: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    parts: Option<Vec<MetaPart>>,
}

#[derive(Deserialize)]
struct MetaPart {
    number: u32,
    size: u64,
}

/// Makes records for the tree at `root` from MinIO's metadata, which stay as they are. Calls
/// `report` for each object, from several threads.
pub fn import_minio_fs(
    root: &Path,
    options: &ImportOptions,
    progress: &Progress,
    report: &(dyn Fn(&Path, Imported) + Sync),
) -> Result<(), String> {
    let store = open(root, options.dry_run, CAN_BE_REPEATED)?;
    check_format(&store).map_err(|why| format!("{}: {why}", root.display()))?;
    for (path, what) in LEFT {
        if resolve::at_path(&store.root, path).is_ok_and(|info| info.is_directory()) {
            report(&root.join(path), Imported::Left(format!("{what}: not imported")));
        }
    }
    let work = |name: &BucketName, path: &Path| {
        Import { options, progress, reporter: ImportReporter { report, path }, name }.run(&store)
    };
    for_each_bucket(&store, root, work, |path, error| report(path, Imported::Failed(error.to_string())))
}

fn check_format(store: &Store) -> Result<(), String> {
    let bytes = match files::read_own(&store.root, ".minio.sys/format.json") {
        Err(Errno::NOENT | Errno::NOTDIR) => {
            return Err("MinIO has not served this directory: there is no .minio.sys/format.json".to_owned());
        }
        result => result.map_err(|errno| format!(".minio.sys/format.json: {errno}"))?,
    };
    match serde_json::from_slice::<FormatFile>(&bytes) {
        Ok(FormatFile { format }) if format == "fs" => Ok(()),
        Ok(FormatFile { format }) => Err(format!(
            "MinIO stored the objects here in its format {format:?}, not \"fs\", so that they are not plain files. \
             Copy them through S3, from a running MinIO"
        )),
        Err(_) => Err(".minio.sys/format.json is not in the form that MinIO writes".to_owned()),
    }
}

struct Import<'a> {
    options: &'a ImportOptions,
    progress: &'a Progress,
    reporter: ImportReporter<'a>,
    name: &'a BucketName,
}

impl Import<'_> {
    fn run(&self, store: &Store) -> Result<()> {
        let bucket = store.bucket(self.name)?;
        let own = format!("{OWN}/buckets/{}", self.name);
        if resolve::at_path(&store.root, &join(&own, ".metadata.bin")).is_ok() {
            self.reporter.report("", Imported::Left("the bucket's configuration: not imported".to_owned()));
        }
        tree::for_each(&bucket, "", self.options.jobs, self.progress, &|found| {
            let (path, result) = match found {
                WalkEntry::Unreadable(path, error) => (path, Err(error)),
                // Directories were no objects of its own: it showed those that are empty.
                WalkEntry::Directory(_) | WalkEntry::NotText(_) => return,
                WalkEntry::Entry { directory, name, kind } => {
                    let path = join(&directory.path, &name);
                    if kind != FileType::RegularFile || keymap::key_of_file(&path).is_none() {
                        return;
                    }
                    let meta = format!("{own}/{path}/fs.json");
                    (path, self.file(&bucket, &directory, &name, &meta))
                }
            };
            self.reporter.report_any(&path, result);
        })
    }

    /// Imports a file; `None` if it is gone.
    fn file(
        &self,
        bucket: &Bucket<'_>,
        directory: &Directory,
        name: &str,
        meta: &str,
    ) -> Result<Option<Imported>> {
        let Some(mut file) = Candidate::open(bucket, directory, name)? else { return Ok(None) };
        let path = join(&directory.path, name);
        if let Some(known) = proof::standing(&mut file, self.name, &path)? {
            return Ok(Some(known));
        }
        let Some(bytes) = read_meta(bucket.store, meta).op("read an fs.json")? else {
            return Ok(Some(Imported::Foreign));
        };
        let theirs = match parse(&bytes) {
            Ok(theirs) => theirs,
            Err(Unusable::Malformed) => return Ok(Some(Imported::Stale("its fs.json is damaged"))),
            Err(Unusable::NoETag) => return Ok(Some(Imported::Stale("its fs.json has no ETag"))),
            Err(Unusable::Transformed(how)) => {
                return Ok(Some(Imported::Failed(format!(
                    "MinIO stored it {how}, which only MinIO can undo: copy it through a running MinIO; Slipway \
                     serves the stored bytes unchanged"
                ))));
            }
        };
        // Written before the file was last: then only its bytes can show whether that is true.
        let younger = resolve::at_path(&bucket.store.root, meta)
            .is_ok_and(|info| info.stamp.modified_ns >= file.info.stamp.modified_ns);
        let trust = self.options.trust_etags && younger;
        let record = match proof::record(&mut file, theirs.attributes, trust, self.progress)? {
            Ok(record) => record,
            Err(why) => return Ok(Some(Imported::Stale(why))),
        };
        if !theirs.left.is_empty() {
            self.reporter.report(&path, Imported::Left(format!("not imported: {}", theirs.left.join(", "))));
        }
        let done = self.options.dry_run || file.adopt(|old| proof::imported(&record, old))?;
        Ok(Some(if done { Imported::Done } else { Imported::Changed }))
    }
}

/// Reads the `fs.json` at `path`. `None` if it does not exist, or is only a directory of that name,
/// for an object with a longer key.
fn read_meta(store: &Store, path: &str) -> Io<Option<Vec<u8>>> {
    match resolve::at_path(&store.root, path) {
        Ok(info) if info.is_file() => files::read_own(&store.root, path).map(Some),
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
        Err(errno) => Err(errno),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Unusable {
    Malformed,
    NoETag,
    Transformed(&'static str),
}

#[derive(Debug)]
struct Meta {
    attributes: Attributes,
    /// The kinds of data for which a record has no place.
    left: Vec<&'static str>,
}

fn parse(bytes: &[u8]) -> Result<Meta, Unusable> {
    let file: MetaFile = serde_json::from_slice(bytes).map_err(|_| Unusable::Malformed)?;
    if !VERSIONS.contains(&file.version.as_str()) {
        return Err(Unusable::Malformed);
    }
    let headers: Vec<(String, String)> =
        file.meta.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    let has = |prefix: &str| headers.iter().any(|(name, _)| name.starts_with(prefix));
    if let Some((_, how)) = TRANSFORMED.into_iter().find(|(prefix, _)| has(prefix)) {
        return Err(Unusable::Transformed(how));
    }
    let header = |wanted: &str| {
        let value = headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        value.filter(|value| is_header_value(value)).cloned()
    };
    let user = headers.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("x-amz-meta-").filter(|name| is_token(name))?;
        is_header_value(value).then(|| (name.to_owned(), value.clone()))
    });
    let metadata = ObjectMetadata {
        content_type: header("content-type"),
        content_encoding: header("content-encoding"),
        content_language: header("content-language"),
        content_disposition: header("content-disposition"),
        cache_control: header("cache-control"),
        expires: header("expires"),
        website_redirect_location: header("x-amz-website-redirect-location"),
        user: user.collect(),
    };
    let etag = header("etag").map(|etag| ETag::parse(&etag)).ok_or(Unusable::NoETag)?;
    let parts = parts(file.parts);
    let attributes = Attributes { etag, checksum: None, metadata, parts, tags: Some(Tags::default()) };
    let left = NOT_CARRIED.into_iter().filter(|(name, _)| has(name)).map(|(_, what)| what).collect();
    Ok(Meta { attributes, left })
}

fn parts(parts: Option<Vec<MetaPart>>) -> Option<Arc<[ObjectPart]>> {
    let parts = parts.filter(|parts| !parts.is_empty() && parts.len() <= PARTS_MAX as usize)?;
    let ascend = parts.is_sorted_by(|a, b| a.number < b.number);
    let valid = parts.iter().all(|part| (1..=PARTS_MAX).contains(&part.number));
    let object_part =
        |part: MetaPart| ObjectPart { part_number: part.number, size_bytes: part.size, checksum: None };
    (ascend && valid).then(|| parts.into_iter().map(object_part).collect())
}

fn is_header_value(value: &str) -> bool {
    value.len() <= FOREIGN_VALUE_BYTES_MAX && !value.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use super::*;
    use crate::record::{self, ObjectRecord, Reading};
    use crate::testing::Scene;

    #[test]
    fn what_is_transformed_or_unknown_is_not_usable() {
        let with = |meta: &str| {
            format!(r#"{{"version":"1.0.2","meta":{{"etag":"0cc175b9c0f1b6a831c399e269772661",{meta}}}}}"#)
        };
        for (meta, how) in [
            (r#""X-Minio-Internal-compression":"klauspost/compress/s2""#, "compressed"),
            (r#""X-Minio-Internal-Server-Side-Encryption-Iv":"x""#, "encrypted"),
            (r#""X-Minio-Internal-Encrypted-Multipart":"""#, "encrypted"),
        ] {
            assert_eq!(parse(with(meta).as_bytes()).unwrap_err(), Unusable::Transformed(how));
        }
        for bad in ["", "{}", "[1]", r#"{"version":"2.0.0","meta":{}}"#, r#"{"version":1}"#] {
            assert_eq!(parse(bad.as_bytes()).unwrap_err(), Unusable::Malformed, "{bad}");
        }
        assert_eq!(parse(br#"{"version":"1.0.1"}"#).unwrap_err(), Unusable::NoETag);
    }

    /// Metadata that no response could carry, and ETags that no listing could, are not imported.
    #[test]
    fn what_no_record_holds_leaves_the_file_foreign() {
        let scene = Scene::new();
        let own = scene.path().parent().unwrap().join(OWN);
        let user: Vec<_> = (0..120_000).map(|n| format!(r#""x-amz-meta-{n:x}":"x","#)).collect();
        let user = user.concat();
        let many = format!(r#"{user}"etag":"0cc175b9c0f1b6a831c399e269772661""#);
        let etags = ["e".repeat(129), "a b".to_owned()].map(|etag| format!(r#""etag":"{etag}""#));
        for (key, meta) in [("many", &many), ("long", &etags[0]), ("blank", &etags[1])] {
            fs::write(scene.path().join(key), "a").unwrap();
            let directory = own.join("buckets/bucket").join(key);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("fs.json"), format!(r#"{{"version":"1.0.2","meta":{{{meta}}}}}"#))
                .unwrap();
        }
        fs::write(own.join("format.json"), r#"{"format":"fs"}"#).unwrap();
        for trust_etags in [false, true] {
            let options =
                ImportOptions { sidecar: None, dry_run: false, keep_attributes: false, trust_etags, jobs: 1 };
            let stale = Mutex::new(0);
            import_minio_fs(own.parent().unwrap(), &options, &Progress::default(), &|path, what| {
                assert!(matches!(what, Imported::Stale(_)), "{path:?}: {what:?}");
                *stale.lock().unwrap() += 1;
            })
            .unwrap();
            assert_eq!(stale.into_inner().unwrap(), 3);
        }
        let file = fs::File::open(scene.path().join("many")).unwrap();
        assert_eq!(record::peek(&file).unwrap(), Reading::<ObjectRecord>::Nothing);
    }

    #[test]
    fn names_are_lower_case_and_values_are_checked() {
        let meta = parse(
            br#"{"version":"1.0.2","checksum":{"algorithm":"","blocksize":0,"hashes":null},
                 "meta":{"etag":"e","X-Amz-Meta-Colour":"blue","x-amz-meta-bad name":"1","x-amz-meta-line":"a\nb","X-Amz-Tagging":"a=b"},
                 "parts":[{"number":2,"etag":"","size":7,"actualSize":7},{"number":5,"size":1}]}"#,
        )
        .unwrap();
        assert_eq!(meta.attributes.metadata.user, [("colour".to_owned(), "blue".to_owned())]);
        assert_eq!(meta.left, ["tags"]);
        let parts: Vec<_> =
            meta.attributes.parts.unwrap().iter().map(|p| (p.part_number, p.size_bytes)).collect();
        assert_eq!(parts, [(2, 7), (5, 1)]);
    }
}
