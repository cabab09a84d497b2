//! What is counted while a load runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::request::Operation;

/// The longest latency that is told apart from longer ones: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// When it is that requests count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub from: Instant,
    pub until: Instant,
}

/// Of one operation.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    /// Of successful requests that began in the window, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Successful answers that ended in the window.
    pub answers: u64,
    /// Bytes of bodies in these, of request or answer.
    pub bytes: u64,
    /// Failed requests by what was said: those that began or ended in the window.
    pub errors: BTreeMap<String, u64>,
}

impl Counts {
    fn new() -> Self {
        let Ok(latency) = Histogram::new_with_bounds(1, LONGEST_NS, 3) else {
            unreachable!("the bounds are right")
        };
        Self { latency, answers: 0, bytes: 0, errors: BTreeMap::new() }
    }
}

/// Of all operations, by one thread or by all.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    operations: [Option<Box<Counts>>; Operation::COUNT],
    order: Vec<Operation>,
    /// The last answer in the window.
    pub last: Option<Instant>,
    /// Failed requests outside of the window.
    pub outside: BTreeMap<String, u64>,
    /// There was nothing more to do.
    pub exhausted: bool,
}

/// Names are what servers say: no more than so many are told apart.
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

    pub fn success(
        &mut self,
        window: Window,
        operation: Operation,
        began: Instant,
        ended: Instant,
        bytes: u64,
    ) {
        let (counts, last) = (began >= window.from, ended >= window.from && ended <= window.until);
        if counts {
            let latency = u64::try_from((ended - began).as_nanos()).unwrap_or(LONGEST_NS);
            self.of(operation).latency.saturating_record(latency);
        }
        if last {
            let of = self.of(operation);
            of.answers += 1;
            of.bytes += bytes;
            self.last = Some(ended);
        }
    }

    pub fn failure(
        &mut self,
        window: Window,
        operation: Operation,
        began: Instant,
        ended: Instant,
        name: String,
    ) {
        let errors = if began < window.from && ended < window.from {
            &mut self.outside
        } else {
            &mut self.of(operation).errors
        };
        count_error(errors, name);
    }

    pub fn merge(&mut self, other: Self) {
        for operation in other.order {
            let Some(theirs) = other.operations[operation.index()].as_deref() else { continue };
            let ours = self.of(operation);
            if ours.latency.add(&theirs.latency).is_err() {
                unreachable!("all have the same bounds");
            }
            ours.answers += theirs.answers;
            ours.bytes += theirs.bytes;
            for (name, count) in &theirs.errors {
                *ours.errors.entry(name.clone()).or_default() += count;
            }
        }
        for (name, count) in other.outside {
            *self.outside.entry(name).or_default() += count;
        }
        self.last = self.last.max(other.last);
        self.exhausted |= other.exhausted;
    }

    /// The operations that occurred.
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

    /// How long it was measured: to the end of the window, or of the work.
    pub fn elapsed(&self, window: Window, stopped: bool) -> Duration {
        let end = if self.exhausted || stopped { self.last.unwrap_or(window.from) } else { window.until };
        end.saturating_duration_since(window.from)
    }
}

/// What can be seen of a thread's progress from outside. On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Live {
    pub answers: AtomicU64,
    pub errors: AtomicU64,
    /// Objects and parts that were stored, and their bytes.
    pub stored: AtomicU64,
    pub stored_bytes: AtomicU64,
}

impl Live {
    /// Only one thread writes, so that nothing has to be atomic but the store.
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

    #[test]
    fn the_window_decides() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let window = Window { from: at(100), until: at(200) };
        let get = Operation::GetObject;
        let mut tally = Tally::default();
        tally.success(window, get, at(10), at(90), 1);
        tally.success(window, get, at(90), at(110), 1);
        tally.success(window, get, at(110), at(190), 1);
        tally.success(window, get, at(190), at(250), 1);
        tally.failure(window, get, at(10), at(20), "503".to_owned());
        tally.failure(window, get, at(90), at(120), "503".to_owned());
        let mut all = Tally::default();
        all.merge(tally);
        let (operation, counts) = all.operations().next().unwrap();
        assert_eq!((operation, counts.answers, counts.bytes), (get, 2, 2));
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
            tally.success(window, Operation::PutObject, start, ended, 0);
        }
        let (_, counts) = tally.operations().next().unwrap();
        for (quantile, ns) in [(0.5, 5_000_000_u64), (0.99, 9_900_000), (0.999, 9_990_000), (1.0, 10_000_000)]
        {
            let found = counts.latency.value_at_quantile(quantile);
            assert!(found.abs_diff(ns) <= ns / 1000, "{quantile}: {found}");
        }
    }
}
