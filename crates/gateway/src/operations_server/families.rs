//! The text of all metrics.

use std::sync::atomic::Ordering::Relaxed;

use backend::{Call, Statistics};
use s3_wire::ErrorCode;
use s3_wire::operation::{OPERATIONS, Operation};
use tokio::time::timeout;

use super::page::Page;
use super::process;
use crate::descriptors::Descriptors;
use crate::gateway::Gateway;
use crate::limits::READY_TIME_MAX;
use crate::metrics::{Metrics, table};
use crate::version;

/// The classes of statuses, by their first digit.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The label of requests whose operation never became known.
const NO_OPERATION: &str = "none";

/// Returns all metrics, in Prometheus' text format 0.0.4.
pub async fn text(
    metrics: &Metrics,
    gateway: &Gateway,
    descriptors: Option<Descriptors>,
    ready: bool,
) -> String {
    // A storage that hangs has nothing to tell, and must not hang who asks.
    let storage = timeout(READY_TIME_MAX, gateway.storage.statistics()).await.unwrap_or_default();
    let mut page = Page::new();
    page.family(&table::INFO).sample([version::NUMBER, version::COMMIT], 1);
    page.family(&table::READY).sample([], u8::from(ready));
    requests(&mut page, metrics);
    connections(&mut page, gateway);
    calls(&mut page, metrics);
    of_storage(&mut page, &storage);
    sweeps(&mut page, metrics);
    identities(&mut page, gateway);
    access_log(&mut page, gateway);
    audit_log(&mut page, gateway);
    traces(&mut page, gateway);
    process::write(&mut page, descriptors);
    page.text()
}

fn requests(page: &mut Page, metrics: &Metrics) {
    let named = OPERATIONS.iter().map(|row| (row.name, Some(row.operation)));
    let sums: Vec<_> = named
        .chain([(NO_OPERATION, None)])
        .map(|(name, operation): (_, Option<Operation>)| (name, metrics.requests.of(operation)))
        // A table of a hundred zeros for each metric tells nobody anything.
        .filter(|(_, sums)| sums.time.count() > 0)
        .collect();
    let mut family = page.family(&table::REQUESTS);
    for (name, sums) in &sums {
        for (class, count) in CLASSES.iter().zip(sums.statuses).filter(|(_, count)| *count > 0) {
            family.sample([name, class], count);
        }
    }
    let mut family = page.family(&table::ERRORS);
    for code in ErrorCode::ALL {
        let count = metrics.requests.errors(*code);
        if count > 0 {
            family.sample([(*code).into()], count);
        }
    }
    let mut family = page.family(&table::REQUEST_SECONDS);
    for (name, sums) in &sums {
        family.histogram(name, &sums.time);
    }
    let mut family = page.family(&table::RECEIVED);
    for (name, sums) in &sums {
        family.sample([name], sums.bytes_in);
    }
    let mut family = page.family(&table::SENT);
    for (name, sums) in &sums {
        family.sample([name], sums.bytes_out);
    }
}

fn connections(page: &mut Page, gateway: &Gateway) {
    let (places, connections) = (&gateway.requests, &gateway.connections);
    page.family(&table::IN_FLIGHT).sample([], places.taken());
    page.family(&table::IN_FLIGHT_MAX).sample([], places.count());
    page.family(&table::CONNECTIONS).sample([], connections.open());
    page.family(&table::CONNECTIONS_ACCEPTED).sample([], connections.accepted());
    page.family(&table::CONNECTIONS_REFUSED).sample([], connections.refused());
    page.family(&table::TLS_FAILED).sample([], connections.tls_failed());
    page.family(&table::PROXY_FAILED).sample([], connections.proxy_failed());
}

fn calls(page: &mut Page, metrics: &Metrics) {
    let sums: Vec<_> = Call::ALL
        .iter()
        .map(|call| (call.name(), metrics.calls.of(*call)))
        .filter(|(_, sums)| sums.time.count() > 0)
        .collect();
    let mut family = page.family(&table::STORAGE_SECONDS);
    for (name, sums) in &sums {
        family.histogram(name, &sums.time);
    }
    let mut family = page.family(&table::STORAGE_REFUSED);
    for (name, sums) in &sums {
        family.sample([name], sums.refused);
    }
    let mut family = page.family(&table::STORAGE_FAILED);
    for (name, sums) in &sums {
        family.sample([name], sums.failed);
    }
    let mut family = page.family(&table::STORAGE_BYTES);
    for call in Call::ALL {
        let bytes = metrics.calls.of(*call).bytes;
        if bytes > 0 {
            family.sample([call.name()], bytes);
        }
    }
}

fn of_storage(page: &mut Page, storage: &Statistics) {
    for (metric, value) in [
        (&table::CACHE_HITS, (|cache| cache.hits) as fn(&backend::CacheStatistics) -> u64),
        (&table::CACHE_MISSES, |cache| cache.misses),
        (&table::CACHE_BYTES, |cache| cache.bytes),
        (&table::CACHE_BYTES_MAX, |cache| cache.bytes_max),
    ] {
        let mut family = page.family(metric);
        for cache in &storage.caches {
            family.sample([cache.name], value(cache));
        }
    }
    let mut family = page.family(&table::VOLUME_ANSWERS);
    for volume in &storage.volumes {
        family.sample([volume.name.as_str()], 1);
    }
    for name in &storage.silent_volumes {
        family.sample([name.as_str()], 0);
    }
    for (metric, value) in [
        (&table::VOLUME_BYTES, (|volume| volume.bytes) as fn(&backend::VolumeStatistics) -> u64),
        (&table::VOLUME_FREE, |volume| volume.bytes_free),
        (&table::VOLUME_FILES, |volume| volume.files),
        (&table::VOLUME_FILES_FREE, |volume| volume.files_free),
        (&table::VOLUME_READ_ONLY, |volume| u64::from(volume.read_only)),
    ] {
        let mut family = page.family(metric);
        for volume in &storage.volumes {
            family.sample([volume.name.as_str()], value(volume));
        }
    }
    page.family(&table::UNREAD).sample([], storage.unread);
}

fn sweeps(page: &mut Page, metrics: &Metrics) {
    let sweeps = &metrics.sweeps;
    let mut family = page.family(&table::SWEPT);
    for (what, count) in
        [("staging", &sweeps.staging), ("completed", &sweeps.completed), ("uploads", &sweeps.uploads)]
    {
        family.sample([what], count.load(Relaxed));
    }
    page.family(&table::UNSWEPT).sample([], sweeps.unswept.load(Relaxed));
    page.family(&table::SWEEPS_FAILED).sample([], sweeps.failed.load(Relaxed));
    page.family(&table::LAST_SWEEP).sample([], sweeps.last.load(Relaxed));
}

fn identities(page: &mut Page, gateway: &Gateway) {
    let state = gateway.registry.last_known();
    let age = gateway.registry.age().unwrap_or_default();
    page.family(&table::IDENTITIES_AGE).sample([], age.as_secs_f64());
    page.family(&table::IDENTITIES_FAILED).sample([], gateway.looks.failed());
    page.family(&table::IDENTITIES_FAULTS).sample([], state.troubles().len());
}

fn access_log(page: &mut Page, gateway: &Gateway) {
    let access_log = gateway.observers.as_ref().and_then(|observers| observers.access_log.as_ref());
    let mut family = page.family(&table::ACCESS_LOG);
    if let Some(counts) = access_log.map(|access_log| access_log.counts()) {
        family.sample(["written"], counts.written.load(Relaxed));
        family.sample(["dropped"], counts.dropped.load(Relaxed));
    }
}

fn audit_log(page: &mut Page, gateway: &Gateway) {
    let mut family = page.family(&table::AUDIT_LOG);
    if let Some(counts) = gateway.audit.as_ref().map(|log| log.counts()) {
        family.sample(["written"], counts.written.load(Relaxed));
        family.sample(["dropped"], counts.dropped.load(Relaxed));
    }
}

fn traces(page: &mut Page, gateway: &Gateway) {
    let traces = gateway.observers.as_ref().and_then(|observers| observers.traces.as_ref());
    let mut family = page.family(&table::SPANS);
    if let Some(counts) = traces.map(|traces| traces.counts()) {
        family.sample(["exported"], counts.exported.load(Relaxed));
        family.sample(["dropped"], counts.dropped.load(Relaxed));
        family.sample(["failed"], counts.failed.load(Relaxed));
    }
}
