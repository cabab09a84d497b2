//! Uploads in parts: one after another, each with as many parts at once as there are lanes.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::Stop;
use super::lane::{Context, Lane};
use crate::credentials::Credentials;
use crate::request::{Block, Body, Operation, Payload, Prepared, Signing, Subject};
use crate::xml;

/// How often a part is sent before its upload is given up.
const ATTEMPTS: u32 = 3;
/// How long an answer with an upload's id may be.
const DOCUMENT_MAX: usize = 64 << 10;

/// Uploads of one object, over and over.
pub(crate) struct Uploads<'a> {
    pub credentials: &'a Credentials,
    pub payload: Payload,
    pub block: &'a Block,
    pub bucket: &'a str,
    pub key: &'a str,
    pub size: u64,
    pub part_size: u64,
    /// How many at the most.
    pub most: Option<u64>,
    /// After what time no further one is begun.
    pub duration: Duration,
}

/// One upload in progress.
struct Upload<'a> {
    signing: &'a RefCell<Signing<'a>>,
    id: String,
    next: Cell<usize>,
    failed: Cell<bool>,
    etags: RefCell<Vec<String>>,
}

impl Uploads<'_> {
    fn parts(&self) -> usize {
        usize::try_from(self.size.div_ceil(self.part_size).max(1)).unwrap_or(usize::MAX)
    }

    fn part_bytes(&self, index: usize) -> u64 {
        self.size.saturating_sub(index as u64 * self.part_size).min(self.part_size)
    }

    pub async fn run(&self, context: &Context<'_>, mut lanes: Vec<Lane>, stop: &Stop) {
        let signing = RefCell::new(Signing::new(self.credentials, self.payload, self.block));
        let mut done = 0;
        while done == 0 || context.window.from.elapsed() < self.duration {
            if stop.is_stopped() || self.most.is_some_and(|most| done >= most) {
                break;
            }
            signing.borrow_mut().refresh();
            self.upload(context, &signing, &mut lanes, stop).await;
            done += 1;
        }
        context.tally.borrow_mut().exhausted = true;
    }

    async fn upload<'a>(
        &'a self,
        context: &Context<'_>,
        signing: &'a RefCell<Signing<'a>>,
        lanes: &mut [Lane],
        stop: &Stop,
    ) {
        let Some(first) = lanes.first_mut() else { return };
        let no_body = Body::Block(0);
        let Some(create) =
            self.request(context, signing, first, Operation::CreateMultipartUpload, "uploads=", no_body)
        else {
            return;
        };
        let (_, created) = first.perform(context, &create, Instant::now()).await;
        let id = xml::first(&first.kept, "UploadId").filter(|_| created);
        let Some(id) = id else { return };
        let upload = Upload {
            signing,
            id: encoded(&id),
            next: Cell::new(0),
            failed: Cell::new(false),
            etags: RefCell::new(vec![String::new(); self.parts()]),
        };
        join_all(lanes.iter_mut().map(|lane| self.parts_of(context, &upload, lane, stop))).await;
        let Some(first) = lanes.first_mut() else { return };
        let query = format!("uploadId={}", upload.id);
        if upload.failed.get() || stop.is_stopped() {
            let body = Body::Block(0);
            if let Some(abort) =
                self.request(context, signing, first, Operation::AbortMultipartUpload, &query, body)
            {
                first.perform(context, &abort, Instant::now()).await;
            }
            return;
        }
        let mut document = String::from("<CompleteMultipartUpload>");
        for (index, etag) in upload.etags.borrow().iter().enumerate() {
            let number = index + 1;
            let etag = etag.replace('&', "&amp;").replace('<', "&lt;");
            let _ = write!(document, "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        document.push_str("</CompleteMultipartUpload>");
        let body = Body::Text(document.into_bytes().into());
        if let Some(complete) =
            self.request(context, signing, first, Operation::CompleteMultipartUpload, &query, body)
        {
            first.perform(context, &complete, Instant::now()).await;
        }
    }

    /// Sends parts until there are no more.
    async fn parts_of(&self, context: &Context<'_>, upload: &Upload<'_>, lane: &mut Lane, stop: &Stop) {
        loop {
            let index = upload.next.get();
            if index >= self.parts() || upload.failed.get() || stop.is_stopped() {
                return;
            }
            upload.next.set(index + 1);
            let query = format!("partNumber={}&uploadId={}", index + 1, upload.id);
            let body = Body::Block(self.part_bytes(index));
            let Some(part) = self.request(context, upload.signing, lane, Operation::UploadPart, &query, body)
            else {
                return upload.failed.set(true);
            };
            let mut sent = false;
            for _ in 0..ATTEMPTS {
                (_, sent) = lane.perform(context, &part, Instant::now()).await;
                if sent || stop.is_stopped() {
                    break;
                }
            }
            match lane.etag.take().filter(|_| sent) {
                Some(etag) => upload.etags.borrow_mut()[index] = etag,
                None => upload.failed.set(true),
            }
        }
    }

    fn request(
        &self,
        context: &Context<'_>,
        signing: &RefCell<Signing<'_>>,
        lane: &Lane,
        operation: Operation,
        query: &str,
        body: Body,
    ) -> Option<Prepared> {
        let subject = Subject { bucket: self.bucket, key: self.key, query, range: None };
        let endpoint = &context.endpoints[lane.endpoint];
        match signing.borrow_mut().request(endpoint, operation, &subject, body) {
            Ok(mut request) => {
                request.wanted.keep_bytes = if operation == Operation::UploadPart { 0 } else { DOCUMENT_MAX };
                request.wanted.etag = operation == Operation::UploadPart;
                Some(request)
            }
            Err(e) => {
                *context.tally.borrow_mut().outside.entry(e).or_default() += 1;
                None
            }
        }
    }
}

/// An upload's id, as it goes into a query.
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
}
