//! A load of uploads in parts. Uploads run one after another, each with as many parts at once as
//! there are lanes. The first thread begins and completes uploads; all threads send parts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::{Semaphore, watch};

use super::lane::{Context, Lane};
use super::stop::Stop;
use crate::request::{Block, Body, Operation, Payload, Prepared, Signing, Subject};
use crate::xml;
use s3_client::Credentials;

/// The number of times that a part is sent before its upload is aborted.
const ATTEMPTS: u32 = 3;
/// The largest number of bytes that are read of an answer with an upload's id.
const DOCUMENT_MAX: usize = 64 << 10;

/// A load that uploads the same object again and again.
pub(crate) struct Uploads<'a> {
    pub credentials: &'a Credentials,
    pub payload: Payload,
    pub block: &'a Block,
    pub bucket: &'a str,
    pub key: &'a str,
    pub size: u64,
    pub part_size: u64,
    /// The largest number of uploads; `None` for no such limit.
    pub most: Option<u64>,
    /// The time after which no further upload begins.
    pub duration: Duration,
}

/// One upload in progress.
struct Upload {
    /// The number of the upload, counted from 1.
    number: u64,
    id: String,
    next: AtomicUsize,
    failed: AtomicBool,
    etags: Mutex<Vec<String>>,
}

/// The work that the first thread has given to the others.
#[derive(Clone)]
enum Stage {
    Waiting,
    Parts(Arc<Upload>),
    Over,
}

impl Stage {
    /// True if the stage comes after the upload with this number: it is a later upload, or the end.
    fn is_after(&self, number: u64) -> bool {
        match self {
            Self::Waiting => false,
            Self::Parts(upload) => upload.number > number,
            Self::Over => true,
        }
    }
}

/// State that the threads of a load of uploads share. The first thread begins and completes
/// uploads, and all threads send parts.
pub(crate) struct Crew {
    /// The number of threads besides the first one.
    others: u32,
    stage: watch::Sender<Stage>,
    /// A semaphore with a permit for each of the other threads that has no more parts to send.
    done: Semaphore,
    /// The SHA-256 of parts in hex, by their length, computed before the clock starts.
    digests: BTreeMap<u64, String>,
}

impl Crew {
    /// Makes the state. Call it before the clock starts, since it computes digests.
    pub fn new(uploads: &Uploads<'_>, threads: usize) -> Self {
        let mut digests = BTreeMap::new();
        if uploads.payload == Payload::Signed {
            let mut signing = Signing::new(uploads.credentials, uploads.payload, uploads.block);
            for index in [0, uploads.parts() - 1] {
                let length = uploads.part_bytes(index);
                digests.insert(length, signing.digest(length));
            }
        }
        Self {
            others: u32::try_from(threads).unwrap_or(u32::MAX).saturating_sub(1),
            stage: watch::Sender::new(Stage::Waiting),
            done: Semaphore::new(0),
            digests,
        }
    }
}

/// A guard that the first thread holds. Dropping it ends the other threads, for whatever reason the
/// first thread ends.
struct Lead<'a>(&'a Crew);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.stage.send_replace(Stage::Over);
    }
}

impl Uploads<'_> {
    fn parts(&self) -> usize {
        usize::try_from(self.size.div_ceil(self.part_size).max(1)).unwrap_or(usize::MAX)
    }

    fn part_bytes(&self, index: usize) -> u64 {
        self.size.saturating_sub(index as u64 * self.part_size).min(self.part_size)
    }

    /// Runs one thread's share of the load on the connections of that thread (`lanes`). `leads` is
    /// true for the first thread.
    pub async fn run(&self, context: &Context<'_>, crew: &Crew, lanes: Vec<Lane>, leads: bool, stop: &Stop) {
        let signing = Signing::new(self.credentials, self.payload, self.block).with(crew.digests.clone());
        let worker = Worker { uploads: self, context, crew, signing: RefCell::new(signing), stop };
        if leads {
            worker.lead(lanes).await;
        } else {
            worker.follow(lanes).await;
        }
        context.tally.borrow_mut().exhausted = true;
    }
}

/// The state of one thread.
struct Worker<'a, 'b> {
    uploads: &'a Uploads<'a>,
    context: &'a Context<'b>,
    crew: &'a Crew,
    signing: RefCell<Signing<'a>>,
    stop: &'a Stop,
}

impl Worker<'_, '_> {
    async fn lead(&self, mut lanes: Vec<Lane>) {
        let _lead = Lead(self.crew);
        let mut done = 0;
        while done == 0 || self.context.window.from.elapsed() < self.uploads.duration {
            if self.stop.is_stopped() || self.uploads.most.is_some_and(|most| done >= most) {
                break;
            }
            self.upload(done + 1, &mut lanes).await;
            done += 1;
        }
    }

    async fn follow(&self, mut lanes: Vec<Lane>) {
        let mut stages = self.crew.stage.subscribe();
        let mut last = 0;
        loop {
            let stage = stages.wait_for(|stage| stage.is_after(last)).await.map(|stage| stage.clone());
            let Ok(Stage::Parts(upload)) = stage else { return };
            last = upload.number;
            self.parts(&upload, &mut lanes).await;
            self.crew.done.add_permits(1);
        }
    }

    async fn upload(&self, number: u64, lanes: &mut [Lane]) {
        self.signing.borrow_mut().refresh();
        let Some(first) = lanes.first_mut() else { return };
        let no_body = Body::Block(0);
        let Some(create) = self.request(first, Operation::CreateMultipartUpload, "uploads=", no_body) else {
            return;
        };
        let (_, created) = first.perform(self.context, &create, Instant::now()).await;
        let id = xml::first(&first.kept, "UploadId").filter(|_| created);
        let Some(id) = id else { return };
        let upload = Arc::new(Upload {
            number,
            id: encoded(&id),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            etags: Mutex::new(vec![String::new(); self.uploads.parts()]),
        });
        self.crew.stage.send_replace(Stage::Parts(Arc::clone(&upload)));
        self.parts(&upload, lanes).await;
        if let Ok(all) = self.crew.done.acquire_many(self.crew.others).await {
            all.forget();
        }
        let Some(first) = lanes.first_mut() else { return };
        self.end(&upload, first).await;
    }

    /// Completes an upload, or aborts it if a part failed or the run was stopped.
    async fn end(&self, upload: &Upload, lane: &mut Lane) {
        let query = format!("uploadId={}", upload.id);
        let (operation, body) = if upload.failed.load(Ordering::Relaxed) || self.stop.is_stopped() {
            (Operation::AbortMultipartUpload, Body::Block(0))
        } else {
            let etags = upload.etags.lock().unwrap_or_else(PoisonError::into_inner);
            (Operation::CompleteMultipartUpload, Body::Text(document(&etags).into_bytes().into()))
        };
        if let Some(request) = self.request(lane, operation, &query, body) {
            lane.perform(self.context, &request, Instant::now()).await;
        }
    }

    /// Sends parts of an upload, one on each lane at a time, until no parts are left.
    async fn parts(&self, upload: &Upload, lanes: &mut [Lane]) {
        self.signing.borrow_mut().refresh();
        join_all(lanes.iter_mut().map(|lane| self.parts_of(upload, lane))).await;
    }

    async fn parts_of(&self, upload: &Upload, lane: &mut Lane) {
        while !upload.failed.load(Ordering::Relaxed) && !self.stop.is_stopped() {
            let index = upload.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.uploads.parts() {
                return;
            }
            let query = format!("partNumber={}&uploadId={}", index + 1, upload.id);
            let body = Body::Block(self.uploads.part_bytes(index));
            let Some(part) = self.request(lane, Operation::UploadPart, &query, body) else {
                return upload.failed.store(true, Ordering::Relaxed);
            };
            let mut sent = false;
            for _ in 0..ATTEMPTS {
                (_, sent) = lane.perform(self.context, &part, Instant::now()).await;
                if sent || self.stop.is_stopped() {
                    break;
                }
            }
            match lane.etag.take().filter(|_| sent) {
                Some(etag) => upload.etags.lock().unwrap_or_else(PoisonError::into_inner)[index] = etag,
                None => upload.failed.store(true, Ordering::Relaxed),
            }
        }
    }

    fn request(&self, lane: &Lane, operation: Operation, query: &str, body: Body) -> Option<Prepared> {
        let Uploads { bucket, key, .. } = *self.uploads;
        let subject = Subject { bucket, key, query, range: None };
        let endpoint = &self.context.endpoints[lane.endpoint];
        match self.signing.borrow_mut().request(endpoint, operation, &subject, body) {
            Ok(mut request) => {
                request.wanted.keep_bytes = if operation == Operation::UploadPart { 0 } else { DOCUMENT_MAX };
                request.wanted.etag = operation == Operation::UploadPart;
                Some(request)
            }
            Err(e) => {
                *self.context.tally.borrow_mut().outside.entry(e).or_default() += 1;
                None
            }
        }
    }
}

/// Returns the CompleteMultipartUpload document for parts with these ETags, numbered from 1.
fn document(etags: &[String]) -> String {
    let mut document = String::from("<CompleteMultipartUpload>");
    for (index, etag) in etags.iter().enumerate() {
        let number = index + 1;
        let etag = etag.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(document, "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
    }
    document.push_str("</CompleteMultipartUpload>");
    document
}

/// Percent-encodes an upload's id for a query.
pub(crate) fn encoded(id: &str) -> String {
    let mut out = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_encoded() {
        assert_eq!(encoded("aZ09-._~"), "aZ09-._~");
        assert_eq!(encoded("a+b/c=é"), "a%2Bb%2Fc%3D%C3%A9");
    }

    #[test]
    fn digests_of_parts_are_there_before_they_are_sent() {
        let credentials = Credentials {
            access_key: "AKID".to_owned(),
            secret_key: "hush".to_owned().into(),
            security_token: None,
            region: "us-east-1".to_owned(),
        };
        let block = Block::new();
        let uploads = |payload, size| Uploads {
            credentials: &credentials,
            payload,
            block: &block,
            bucket: "b",
            key: "k",
            size,
            part_size: 100,
            most: None,
            duration: Duration::ZERO,
        };
        let lengths = |payload, size| -> Vec<u64> {
            Crew::new(&uploads(payload, size), 2).digests.into_keys().collect()
        };
        assert_eq!(lengths(Payload::Signed, 250), [50, 100]);
        assert_eq!(lengths(Payload::Signed, 200), [100]);
        assert_eq!(lengths(Payload::Signed, 0), [0]);
        assert!(lengths(Payload::Unsigned, 250).is_empty());
    }
}
