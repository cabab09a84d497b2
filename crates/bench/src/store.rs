//! The bucket in which a run works: makes it, fills it, empties it and removes it.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use s3_types::hex;
use s3_types::limits::PARTS_MAX;
use tokio::runtime::{Builder, Runtime};

use crate::connection::{Connection, Shared};
use crate::error::Result;
use crate::load::multipart::Uploads;
use crate::load::sets::Sets;
use crate::load::work::Work;
use crate::load::{self, Job, Load, Moment, Stop};
use crate::plan::Plan;
use crate::request::{Block, Body, Operation, Payload, Prepared, Signing, Subject};
use crate::xml;

/// The number of requests at once while objects are made and removed.
const AT_ONCE: usize = 16;
/// The number of parts at once while an object is made in parts.
const PARTS_AT_ONCE: usize = 4;
/// The size in bytes from which on objects are made in parts.
const PARTS_FROM: u64 = 256 << 20;
/// The size of these parts, in bytes.
const PART: u64 = 32 << 20;
/// The time limit of preparations, which is longer than any of them takes.
const ENDLESS: Duration = Duration::from_hours(24);
/// The number of keys, or uploads, on a page of a listing.
const PAGE: usize = 1000;
/// The largest document that is read, in bytes.
const DOCUMENT_MAX: usize = 16 << 20;

/// The bucket that a run works in, or a prefix in an existing bucket.
pub(crate) struct Store<'a> {
    plan: &'a Plan,
    pub block: Block,
    pub bucket: String,
    /// The prefix of all keys, which is empty if the run has made the bucket.
    prefix: String,
    /// True if this run has made the bucket.
    own: bool,
    runtime: Runtime,
    never: Stop,
    /// The number of keys that were generated: there can be no more objects.
    named: Cell<usize>,
}

impl<'a> Store<'a> {
    /// Makes a bucket, or checks that the given bucket exists.
    pub fn open(plan: &'a Plan) -> Result<Self> {
        let mut random = [0; 6];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| e.to_string())?;
        let unique = hex::encode(&random);
        let name = format!("slipway-bench-{unique}");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let (bucket, prefix, own) = match &plan.bucket {
            Some(bucket) => (bucket.clone(), format!("{name}/"), false),
            None => (name, String::new(), true),
        };
        let (never, named) = (Stop::default(), Cell::default());
        let store = Self { plan, block: Block::new(), bucket, prefix, own, runtime, never, named };
        if own {
            store.call_at(0, Operation::CreateBucket, "", "")?;
        }
        // Also shows that all endpoints have the bucket, and know the keys.
        let looks = (0..plan.endpoints.len()).map(|endpoint| store.look(endpoint));
        let Err(wrong) = looks.collect::<Result<()>>() else { return Ok(store) };
        // Nothing was made in a bucket that was there.
        let left = if own { store.close().err() } else { None };
        Err(match left {
            Some(left) => format!("{wrong}; {left}"),
            None => wrong,
        })
    }

    fn look(&self, endpoint: usize) -> Result<()> {
        self.call_at(endpoint, Operation::ListObjectsV2, "", "list-type=2&max-keys=1").map(drop)
    }

    /// Returns the key of an object in a group. The key contains the size, for servers that store
    /// nothing (`slipway serve null:`).
    pub fn key(&self, group: &str, number: usize, size: u64) -> String {
        self.named.set(self.named.get() + 1);
        format!("{}{group}/{number:07}-{size}", self.prefix)
    }

    /// Signs one request per object, for each endpoint.
    pub fn sets(&self, operation: Operation, group: &str, count: usize, size: u64) -> Result<Sets> {
        let body = if operation == Operation::PutObject { size } else { 0 };
        self.sign(|endpoint, signing| {
            let one = |number| {
                let key = self.key(group, number, size);
                let subject = Subject { bucket: &self.bucket, key: &key, ..Subject::default() };
                let mut request = signing.request(
                    &self.plan.endpoints[endpoint],
                    operation,
                    &subject,
                    Body::Block(body),
                )?;
                request.expected_bytes = (operation == Operation::GetObject).then_some(size);
                Ok(request)
            };
            (0..count).map(one).collect()
        })
    }

    /// Signs one request per range of each object.
    pub fn range_sets(&self, group: &str, count: usize, size: u64, ranges: &[(u64, u64)]) -> Result<Sets> {
        self.sign(|endpoint, signing| {
            let mut requests = Vec::new();
            for number in 0..count {
                let key = self.key(group, number, size);
                for &(first, last) in ranges {
                    let subject = Subject {
                        bucket: &self.bucket,
                        key: &key,
                        range: Some((first, last)),
                        ..Subject::default()
                    };
                    let at = &self.plan.endpoints[endpoint];
                    let mut request = signing.request(at, Operation::GetObject, &subject, Body::Block(0))?;
                    request.expected_bytes = Some(last - first + 1);
                    requests.push(request);
                }
            }
            Ok(requests)
        })
    }

    /// Signs one request per page of a listing of a group.
    pub fn page_sets(&self, group: &str, count: usize, size: u64, page: usize) -> Result<Sets> {
        self.sign(|endpoint, signing| {
            let one = |start: usize| {
                let mut query = format!("list-type=2&max-keys={page}&prefix={}{group}/", self.prefix);
                if let Some(before) = start.checked_sub(1) {
                    query.push_str("&start-after=");
                    query.push_str(&self.key(group, before, size));
                }
                let subject = Subject { bucket: &self.bucket, query: &query, ..Subject::default() };
                signing.request(
                    &self.plan.endpoints[endpoint],
                    Operation::ListObjectsV2,
                    &subject,
                    Body::Block(0),
                )
            };
            (0..count).step_by(page.max(1)).map(one).collect()
        })
    }

    fn sign(&self, requests: impl Fn(usize, &mut Signing<'_>) -> Result<Vec<Prepared>>) -> Result<Sets> {
        self.sign_for(self.all_endpoints(), requests)
    }

    fn sign_for(
        &self,
        endpoints: Range<usize>,
        requests: impl Fn(usize, &mut Signing<'_>) -> Result<Vec<Prepared>>,
    ) -> Result<Sets> {
        let mut signing = Signing::new(&self.plan.credentials, self.plan.payload, &self.block);
        endpoints.map(|endpoint| requests(endpoint, &mut signing)).collect()
    }

    fn all_endpoints(&self) -> Range<usize> {
        0..self.plan.endpoints.len()
    }

    /// Makes the objects of a group.
    pub fn fill(
        &self,
        group: &str,
        count: usize,
        size: u64,
        stop: &Stop,
        watch: impl FnMut(&Moment),
    ) -> Result<()> {
        if size < PARTS_FROM {
            let sets = self.sets(Operation::PutObject, group, count, size)?;
            return self.all(sets, self.all_endpoints(), stop, watch);
        }
        for number in 0..count {
            let uploads = Uploads {
                credentials: &self.plan.credentials,
                payload: Payload::Unsigned,
                block: &self.block,
                bucket: &self.bucket,
                key: &self.key(group, number, size),
                size,
                part_size: PART.max(size.div_ceil(u64::from(PARTS_MAX))),
                most: Some(1),
                duration: ENDLESS,
            };
            self.run(Job::Uploads(&uploads), PARTS_AT_ONCE, self.all_endpoints(), stop, |_| {})?;
        }
        Ok(())
    }

    /// Sends each request of a set once, to these endpoints. Fails if a request fails.
    fn all(
        &self,
        sets: Sets,
        endpoints: Range<usize>,
        stop: &Stop,
        watch: impl FnMut(&Moment),
    ) -> Result<()> {
        let most = sets.first().map(|set| set.len() as u64);
        self.run(Job::Requests(&Work::ring(sets, most)), AT_ONCE, endpoints, stop, watch)
    }

    fn run(
        &self,
        job: Job<'_>,
        concurrency: usize,
        endpoints: Range<usize>,
        stop: &Stop,
        watch: impl FnMut(&Moment),
    ) -> Result<()> {
        let load = Load {
            endpoints: &self.plan.endpoints[endpoints],
            block: &self.block,
            concurrency,
            threads: 1,
            warm_up: Duration::ZERO,
            duration: ENDLESS,
            rate: None,
            timeout: self.plan.timeout,
            stop,
        };
        let measured = load::run(&load, job, watch)?;
        let mut failed: Vec<String> = Vec::new();
        for (operation, counts) in measured.tally.operations() {
            failed.extend(counts.errors.iter().map(|(name, n)| format!("{n} x {} {name}", operation.name())));
        }
        failed.extend(measured.tally.outside.iter().map(|(name, n)| format!("{n} x {name}")));
        if failed.is_empty() { Ok(()) } else { Err(failed.join(", ")) }
    }

    /// Returns the index of the first endpoint that answers, since some may have stopped; the index
    /// 0 if none does.
    fn answering(&self) -> usize {
        self.all_endpoints().find(|endpoint| self.look(*endpoint).is_ok()).unwrap_or_default()
    }

    /// Removes the objects of a group, and its uploads in progress. If `group` is empty, removes
    /// those of all groups.
    pub fn empty(&self, group: &str) -> Result<()> {
        let prefix = if group.is_empty() { self.prefix.clone() } else { format!("{}{group}/", self.prefix) };
        let endpoint = self.answering();
        let uploads =
            self.call_at(endpoint, Operation::ListMultipartUploads, "", &format!("prefix={prefix}&uploads="));
        // Not every server lists uploads of which there are none.
        let uploads = uploads.unwrap_or_default();
        for (key, id) in xml::all(&uploads, "Key").iter().zip(xml::all(&uploads, "UploadId")).take(PAGE) {
            self.check_ours(key, &prefix)?;
            let query = format!("uploadId={}", load::multipart::encoded(&id));
            self.call_at(endpoint, Operation::AbortMultipartUpload, key, &query)?;
        }
        let mut deleted = HashSet::new();
        loop {
            let query = format!("list-type=2&max-keys={PAGE}&prefix={prefix}");
            let page = self.call_at(endpoint, Operation::ListObjectsV2, "", &query)?;
            let mut keys = xml::all(&page, "Key");
            if keys.is_empty() {
                return Ok(());
            }
            keys.iter().try_for_each(|key| self.check_ours(key, &prefix))?;
            keys.retain(|key| deleted.insert(key.clone()));
            if keys.is_empty() {
                return Err("the server still lists objects that it deleted".to_owned());
            }
            if deleted.len() > self.named.get() {
                return Err("the server lists more objects than were created".to_owned());
            }
            // By whoever has them: another endpoint may have other buckets.
            let sets = self.sign_for(endpoint..endpoint + 1, |endpoint, signing| {
                let one = |key: &String| {
                    let subject = Subject { bucket: &self.bucket, key, ..Subject::default() };
                    let at = &self.plan.endpoints[endpoint];
                    signing.request(at, Operation::DeleteObject, &subject, Body::Block(0))
                };
                keys.iter().map(one).collect()
            })?;
            self.all(sets, endpoint..endpoint + 1, &self.never, |_| {})?;
        }
    }

    /// Fails for a key that this program cannot have made, or that does not begin with `prefix`.
    /// The check is needed because a server may list other keys than it was asked for.
    fn check_ours(&self, key: &str, prefix: &str) -> Result<()> {
        let rest = key.strip_prefix(prefix).and(key.strip_prefix(&*self.prefix));
        if rest.is_some_and(is_made_by_us) {
            return Ok(());
        }
        Err(format!(
            "{}/{key} is listed by the server, but was not created by this run: nothing more is removed",
            self.bucket
        ))
    }

    /// Removes the objects that the run has made, and the bucket if the run has made it.
    pub fn close(&self) -> Result<()> {
        let place = self.place();
        let left = |e| format!("what this run created in {place} could not be removed completely: {e}");
        self.empty("").map_err(left)?;
        if self.own {
            let endpoint = self.answering();
            self.call_at(endpoint, Operation::DeleteBucket, "", "").map_err(left)?;
        }
        Ok(())
    }

    /// Returns the name of the bucket that was made, or the prefix in the given bucket.
    pub fn place(&self) -> String {
        if self.own { self.bucket.clone() } else { format!("{}/{}", self.bucket, self.prefix) }
    }

    /// Sends one request to an endpoint. Returns the body of the answer, or a sentence about the
    /// failure as an error.
    fn call_at(&self, endpoint: usize, operation: Operation, key: &str, query: &str) -> Result<Vec<u8>> {
        let endpoint = &self.plan.endpoints[endpoint];
        let subject = Subject { bucket: &self.bucket, key, query, range: None };
        let mut signing = Signing::new(&self.plan.credentials, Payload::Unsigned, &self.block);
        let mut request = signing.request(endpoint, operation, &subject, Body::Block(0))?;
        request.wanted.keep_bytes = DOCUMENT_MAX;
        let shared = Shared::new(&self.block);
        let exchange = async {
            let mut connection = Connection::open(endpoint).await?;
            connection.exchange(&request, &shared).await?;
            Ok(connection.answer)
        };
        let answer = self.runtime.block_on(async { tokio::time::timeout(self.plan.timeout, exchange).await });
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err::<_, crate::connection::Trouble>(trouble)) => {
                return Err(format!("{}: {}", endpoint.url, trouble.name()));
            }
            Err(_) => return Err(format!("{}: no answer in time", endpoint.url)),
        };
        if answer.status < 300 {
            return Ok(answer.kept);
        }
        let (code, message) = (xml::first(&answer.kept, "Code"), xml::first(&answer.kept, "Message"));
        let said = match (&code, message) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(code), None) => code.clone(),
            _ => "the answer contains no S3 error: is this an S3 endpoint?".to_owned(),
        };
        Err(format!(
            "{}: {}: {} {said}{}",
            endpoint.url,
            operation.name(),
            answer.status,
            hint(code.as_deref(), self.own)
        ))
    }
}

/// True for a key of the form that [`Store::key`] makes, without the prefix: `put-1/0000007-1024`.
fn is_made_by_us(key: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((group, name)) = key.split_once('/') else { return false };
    !group.is_empty()
        && group.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && name.split_once('-').is_some_and(|(at, size)| number(at) && number(size))
}

/// Returns advice to put at the end of an error.
fn hint(code: Option<&str>, own_bucket: bool) -> &'static str {
    match code {
        Some("InvalidAccessKeyId" | "SignatureDoesNotMatch") => {
            " (the keys are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from --credentials-file)"
        }
        Some("AuthorizationHeaderMalformed" | "AuthorizationQueryParametersError") => {
            " (the region is taken from --region, AWS_REGION or AWS_DEFAULT_REGION)"
        }
        Some("RequestTimeTooSkewed") => " (the clocks of this machine and the server differ)",
        Some("NoSuchBucket") if own_bucket => {
            " (the bucket was just created: the endpoints do not have the same buckets)"
        }
        Some("NoSuchBucket") => " (without --bucket, a bucket is created for the run)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_made_is_told_apart() {
        for ours in ["put-1/0000007-1024", "list/0000000-0", "data-1048576/12345678-1048576"] {
            assert!(is_made_by_us(ours), "{ours}");
        }
        for other in
            ["", "/", "put-1/", "/0000007-1", "../x/0000007-1", "a/../1-1", "a/1-1/x", "a/1-", "a b/1-1"]
        {
            assert!(!is_made_by_us(other), "{other}");
        }
    }
}
