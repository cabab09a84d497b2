//! Measures what parts of one upload wait for when several are in flight: writers in parallel put
//! parts of 8 MiB, each of which is on disk before it is acknowledged. Prints MiB a second, and how
//! long the acknowledgement of a part took after its last byte.
//!
//! `cargo run --release -p backend-posix --example part_flushes DIRECTORY [WRITERS [PARTS]]`

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement, run by hand")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use backend::{
    Backend, Context, CreateBucketRequest, CreateUploadRequest, NewUpload, ObjectRef, PutPartRequest,
    UploadRef, VersionRef,
};
use backend_posix::{Options, PosixBackend};
use bytes::Bytes;
use s3_types::{BucketName, Digests, ETag, ObjectKey};

const PART_BYTES: usize = 8 << 20;
const CHUNK_BYTES: usize = 256 << 10;

/// Puts one part; how long its acknowledgement took.
async fn put(tree: &PosixBackend, upload: UploadRef<'_>, part_number: u32, chunk: &Bytes) -> Duration {
    let size_hint = Some(PART_BYTES as u64);
    let request = PutPartRequest { upload, part_number, size_hint, checksum: None };
    let mut writer = tree.put_part(&Context::default(), request).await.unwrap().writer;
    for _ in 0..PART_BYTES / CHUNK_BYTES {
        writer.write(chunk.clone()).await.unwrap();
    }
    let begun = Instant::now();
    writer.commit(Digests { etag: ETag::Md5([1; 16]), checksum: None }).await.unwrap();
    begun.elapsed()
}

async fn round(tree: &PosixBackend, bucket: &BucketName, writers: u32, parts: u32) {
    let key = ObjectKey::new("a").unwrap();
    let object = ObjectRef { bucket, key: &key, version: VersionRef::Current };
    let created = CreateUploadRequest { object, upload: NewUpload::default() };
    let id = tree.create_upload(&Context::default(), created).await.unwrap().id;
    let (next, chunk) = (Arc::new(AtomicU32::new(1)), Bytes::from(vec![7; CHUNK_BYTES]));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| {
            let (tree, next, chunk) = (tree.clone(), Arc::clone(&next), chunk.clone());
            let (bucket, key, id) = (bucket.clone(), key.clone(), id.clone());
            tokio::spawn(async move {
                let object = ObjectRef { bucket: &bucket, key: &key, version: VersionRef::Current };
                let upload = UploadRef { object, id: &id };
                let mut waits = Vec::new();
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number > parts {
                        return waits;
                    }
                    waits.push(put(&tree, upload, number, &chunk).await);
                }
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.append(&mut task.await.unwrap());
    }
    let elapsed = begun.elapsed();
    waits.sort();
    let mib = f64::from(parts) * 8.0 / elapsed.as_secs_f64();
    let (median, longest) = (waits[waits.len() / 2].as_millis(), waits[waits.len() - 1].as_millis());
    println!("{mib:8.0} MiB/s; acknowledged after {median} ms (median), {longest} ms (longest)");
    let object = ObjectRef { bucket, key: &key, version: VersionRef::Current };
    let abort = backend::AbortRequest { upload: UploadRef { object, id: &id }, if_initiated: None };
    tree.abort_upload(&Context::default(), abort).await.unwrap();
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (writers, parts) = (number(16), number(64));
    let root = root.join(format!("part-flushes-{}", std::process::id()));
    std::fs::create_dir(&root).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let tree = PosixBackend::open(&root, Options::default()).unwrap();
        let bucket = BucketName::new("bucket").unwrap();
        let request = CreateBucketRequest::plain(&bucket);
        tree.create_bucket(&Context::default(), request).await.unwrap();
        for _ in 0..3 {
            round(&tree, &bucket, writers, parts).await;
        }
    });
    std::fs::remove_dir_all(&root).unwrap();
}
