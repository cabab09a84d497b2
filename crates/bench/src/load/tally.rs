//! Counts the results of requests while a load runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::request::Operation;

/// The longest latency that is measured: an hour, in nanoseconds. Longer ones count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The measured time. Only requests in it count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub from: Instant,
    pub until: Instant,
}

/// The endpoint and the stream that a request belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part {
    /// The number of the endpoint, if there are several.
    pub endpoint: Option<usize>,
    /// The number of the stream, if there are several.
    pub stream: Option<usize>,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub operation: Operation,
    pub part: Part,
    pub began: Instant,
    pub ended: Instant,
}

/// The counts of one endpoint or one stream, for all operations together.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartCounts {
    /// The latencies, as in [`Counts::latency`]. `None` for streams, since there may be thousands
    /// of them.
    pub latency: Option<Box<Histogram<u64>>>,
    pub answers: u64,
    pub bytes: u64,
    pub errors: u64,
}

/// The counts of one operation.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    /// The latencies of successful requests that began in the window, in nanoseconds.
    pub latency: Histogram<u64>,
    /// The number of successful answers that ended in the window.
    pub answers: u64,
    /// The number of bytes of bodies, of request or answer, that belong to these answers.
    pub bytes: u64,
    /// The number of failed requests by the name of the error. They began or ended in the window.
    pub errors: BTreeMap<String, u64>,
}

fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new_with_bounds(1, LONGEST_NS, 3) else {
        unreachable!("the bounds are right")
    };
    histogram
}

fn add(ours: &mut Histogram<u64>, theirs: &Histogram<u64>) {
    if ours.add(theirs).is_err() {
        unreachable!("all have the same bounds");
    }
}

impl Counts {
    fn new() -> Self {
        Self { latency: histogram(), answers: 0, bytes: 0, errors: BTreeMap::new() }
    }
}

/// Returns the counts at `index`, and creates them if they do not exist.
fn at(parts: &mut Vec<PartCounts>, index: usize) -> &mut PartCounts {
    if parts.len() <= index {
        parts.resize_with(index + 1, PartCounts::default);
    }
    &mut parts[index]
}

/// The counts of all operations, by one thread or by all threads.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    operations: [Option<Box<Counts>>; Operation::COUNT],
    order: Vec<Operation>,
    /// The counts by endpoint, if there are several.
    pub endpoints: Vec<PartCounts>,
    /// The counts by stream, if there are any.
    pub streams: Vec<PartCounts>,
    /// The time of the last answer in the window.
    pub last: Option<Instant>,
    /// The number of failed requests before the window, and of requests that were due but never
    /// sent, by the name of the error.
    pub outside: BTreeMap<String, u64>,
    /// True if a client ended before the load's time was over, since no requests were left.
    pub exhausted: bool,
}

/// The largest number of different errors that are counted separately. The names of errors come
/// from servers, which could make up any number of them.
const ERROR_NAMES_MAX: usize = 100;

fn count_error(errors: &mut BTreeMap<String, u64>, name: String) {
    let is_new = errors.len() >= ERROR_NAMES_MAX && !errors.contains_key(&name);
    *errors.entry(if is_new { "other errors".to_owned() } else { name }).or_default() += 1;
}

impl Tally {
    fn of(&mut self, operation: Operation) -> &mut Counts {
        let slot = &mut self.operations[operation.index()];
        if slot.is_none() {
            self.order.push(operation);
        }
        slot.get_or_insert_with(|| Box::new(Counts::new()))
    }

    pub fn success(&mut self, window: Window, request: &Done, bytes: u64) {
        let Done { operation, part, began, ended } = *request;
        let (counts, last) = (began >= window.from, ended >= window.from && ended <= window.until);
        if counts {
            let latency = u64::try_from((ended - began).as_nanos()).unwrap_or(LONGEST_NS);
            self.of(operation).latency.saturating_record(latency);
            if let Some(endpoint) = part.endpoint {
                let of = &mut at(&mut self.endpoints, endpoint).latency;
                of.get_or_insert_with(|| Box::new(histogram())).saturating_record(latency);
            }
        }
        if last {
            let of = self.of(operation);
            of.answers += 1;
            of.bytes += bytes;
            for of in self.parts(part) {
                of.answers += 1;
                of.bytes += bytes;
            }
            self.last = Some(ended);
        }
    }

    pub fn failure(&mut self, window: Window, request: &Done, name: String) {
        let Done { operation, part, began, ended } = *request;
        if began < window.from && ended < window.from {
            return count_error(&mut self.outside, name);
        }
        count_error(&mut self.of(operation).errors, name);
        self.parts(part).for_each(|of| of.errors += 1);
    }

    fn parts(&mut self, part: Part) -> impl Iterator<Item = &mut PartCounts> {
        let endpoint = part.endpoint.map(|index| at(&mut self.endpoints, index));
        endpoint.into_iter().chain(part.stream.map(|index| at(&mut self.streams, index)))
    }

    pub fn merge(&mut self, other: Self) {
        for operation in other.order {
            let Some(theirs) = other.operations[operation.index()].as_deref() else { continue };
            let ours = self.of(operation);
            add(&mut ours.latency, &theirs.latency);
            ours.answers += theirs.answers;
            ours.bytes += theirs.bytes;
            for (name, count) in &theirs.errors {
                *ours.errors.entry(name.clone()).or_default() += count;
            }
        }
        merge_parts(&mut self.endpoints, other.endpoints);
        merge_parts(&mut self.streams, other.streams);
        for (name, count) in other.outside {
            *self.outside.entry(name).or_default() += count;
        }
        self.last = self.last.max(other.last);
        self.exhausted |= other.exhausted;
    }

    /// Returns the operations that occurred, with their counts.
    pub fn operations(&self) -> impl Iterator<Item = (Operation, &Counts)> {
        let mut order = self.order.clone();
        order.sort_unstable();
        order
            .into_iter()
            .filter_map(|operation| Some((operation, self.operations[operation.index()].as_deref()?)))
    }

    pub fn answers(&self) -> u64 {
        self.operations().map(|(_, counts)| counts.answers).sum()
    }

    /// Returns the measured time. It ends with the window or, if the load ended before, with the
    /// last answer.
    pub fn elapsed(&self, window: Window, stopped: bool) -> Duration {
        let end = if self.exhausted || stopped { self.last.unwrap_or(window.from) } else { window.until };
        end.saturating_duration_since(window.from)
    }
}

fn merge_parts(ours: &mut Vec<PartCounts>, theirs: Vec<PartCounts>) {
    for (index, theirs) in theirs.into_iter().enumerate() {
        let ours = at(ours, index);
        if let Some(latency) = theirs.latency {
            add(ours.latency.get_or_insert_with(|| Box::new(histogram())), &latency);
        }
        ours.answers += theirs.answers;
        ours.bytes += theirs.bytes;
        ours.errors += theirs.errors;
    }
}

/// The progress of a thread, for other threads to read. It has a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Live {
    pub answers: AtomicU64,
    pub errors: AtomicU64,
    /// The number of objects and parts that were stored. `stored_bytes` is the number of their
    /// bytes.
    pub stored: AtomicU64,
    pub stored_bytes: AtomicU64,
}

impl Live {
    /// Adds 1. Only one thread writes to a counter, so that the load and the store together need
    /// not be atomic.
    pub fn count(counter: &AtomicU64) {
        Self::add(counter, 1);
    }

    pub fn add(counter: &AtomicU64, number: u64) {
        counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(began: Instant, ended: Instant) -> Done {
        Done { operation: Operation::GetObject, part: Part::default(), began, ended }
    }

    #[test]
    fn parts_add_up() {
        let start = Instant::now();
        let window = Window { from: start, until: start + Duration::from_secs(1) };
        let of = |endpoint, stream, ms| Done {
            part: Part { endpoint: Some(endpoint), stream: Some(stream) },
            ..request(start, start + Duration::from_millis(ms))
        };
        let (mut all, mut other) = (Tally::default(), Tally::default());
        all.success(window, &of(0, 0, 10), 5);
        other.success(window, &of(1, 3, 20), 7);
        other.success(window, &of(0, 2, 30), 1);
        // Too late for a rate, but not for a latency.
        other.success(window, &of(1, 3, 2000), 7);
        other.failure(window, &of(1, 3, 40), "503".to_owned());
        all.merge(other);
        let figures = |parts: &[PartCounts]| -> Vec<(u64, u64, u64)> {
            parts.iter().map(|part| (part.answers, part.bytes, part.errors)).collect()
        };
        assert_eq!(figures(&all.endpoints), [(2, 6, 0), (1, 7, 1)]);
        assert_eq!(figures(&all.streams), [(1, 5, 0), (0, 0, 0), (1, 1, 0), (1, 7, 1)]);
        let latencies = all.endpoints.iter().map(|part| part.latency.as_ref().map_or(0, |l| l.len()));
        assert_eq!(latencies.collect::<Vec<_>>(), [2, 2]);
        assert!(all.streams.iter().all(|part| part.latency.is_none()));
    }

    #[test]
    fn the_window_decides() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let window = Window { from: at(100), until: at(200) };
        let mut tally = Tally::default();
        for (began, ended) in [(10, 90), (90, 110), (110, 190), (190, 250)] {
            tally.success(window, &request(at(began), at(ended)), 1);
        }
        tally.failure(window, &request(at(10), at(20)), "503".to_owned());
        tally.failure(window, &request(at(90), at(120)), "503".to_owned());
        let mut all = Tally::default();
        all.merge(tally);
        let (operation, counts) = all.operations().next().unwrap();
        assert_eq!((operation, counts.answers, counts.bytes), (Operation::GetObject, 2, 2));
        // One that began before does not count, one that ended later does.
        assert_eq!(counts.latency.len(), 2);
        let slowest = counts.latency.max();
        assert!((79_900_000..=80_100_000).contains(&slowest), "{slowest}");
        assert_eq!((counts.errors["503"], all.outside["503"]), (1, 1));
        assert_eq!(all.elapsed(window, false), Duration::from_millis(100));
        assert_eq!(all.elapsed(window, true), Duration::from_millis(90));
    }

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let start = Instant::now();
        let window = Window { from: start, until: start + Duration::from_hours(1) };
        let mut tally = Tally::default();
        for n in 1..=10_000 {
            let ended = start + Duration::from_micros(n);
            tally.success(window, &request(start, ended), 0);
        }
        let (_, counts) = tally.operations().next().unwrap();
        for (quantile, ns) in [(0.5, 5_000_000_u64), (0.99, 9_900_000), (0.999, 9_990_000), (1.0, 10_000_000)]
        {
            let found = counts.latency.value_at_quantile(quantile);
            assert!(found.abs_diff(ns) <= ns / 1000, "{quantile}: {found}");
        }
    }
}
