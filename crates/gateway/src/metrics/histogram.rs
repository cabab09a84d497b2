//! Histograms of durations, in buckets whose bounds double.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The first bound, in microseconds.
const FIRST_US: u64 = 125;
/// The number of bounds, which are 125 us, 250 us, ... 65.536 s.
pub const BOUNDS: usize = 20;

/// Returns the bounds, in seconds. Longer durations are in a bucket of their own.
pub fn bounds_seconds() -> impl Iterator<Item = f64> {
    (0..BOUNDS).map(|n| Duration::from_micros(FIRST_US << n).as_secs_f64())
}

/// Counts of durations, by bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS + 1],
    sum_us: AtomicU64,
}

impl Histogram {
    /// Counts a duration.
    pub fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        // Bound n holds what takes 125 us times 2^n at most.
        let over = us.saturating_sub(1) / FIRST_US;
        let bucket = (u64::BITS - over.leading_zeros()) as usize;
        self.buckets[bucket.min(BOUNDS)].fetch_add(1, Relaxed);
        // Wraps after half a million years.
        self.sum_us.fetch_add(us.min(1 << 44), Relaxed);
    }

    /// Adds all counts to `counts`.
    pub fn add_to(&self, counts: &mut Counts) {
        for (sum, bucket) in counts.buckets.iter_mut().zip(&self.buckets) {
            *sum += bucket.load(Relaxed);
        }
        counts.sum_us += self.sum_us.load(Relaxed);
    }
}

/// The counts of one or several histograms.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The counts by bucket. A bucket does not include the durations of smaller buckets; the last
    /// one has the durations above all bounds.
    pub buckets: [u64; BOUNDS + 1],
    /// The sum of all durations, in microseconds.
    pub sum_us: u64,
}

impl Counts {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_bucket() {
        let bounds: Vec<_> = bounds_seconds().collect();
        assert_eq!((bounds[0], bounds[1], bounds[BOUNDS - 1]), (0.000_125, 0.000_25, 65.536));
        let bucket_of = |us| {
            let (histogram, mut counts) = (Histogram::default(), Counts::default());
            histogram.add(Duration::from_micros(us));
            histogram.add_to(&mut counts);
            assert_eq!((counts.count(), counts.sum_us), (1, us));
            counts.buckets.iter().position(|count| *count == 1)
        };
        for (us, bucket) in [
            (0, 0),
            (125, 0),
            (126, 1),
            (250, 1),
            (251, 2),
            (500, 2),
            (501, 3),
            (65_536_000, BOUNDS - 1),
            (65_536_001, BOUNDS),
            (1 << 43, BOUNDS),
        ] {
            assert_eq!(bucket_of(us), Some(bucket), "{us}");
        }
    }
}
