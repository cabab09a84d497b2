//! Searches for the number of requests at once that makes a step fastest.

use std::time::Duration;

use super::runner::{Pass, Runner};
use crate::error::Result;
use crate::load::Job;

/// The time for which each number is tried, after a quarter of that as a warm-up.
const TRIAL: Duration = Duration::from_secs(1);
/// The largest number of requests at once that is tried.
const MOST: usize = 1024;
/// The factor by which a number must be faster than all smaller numbers for the search to go on.
const WORTH_MORE: f64 = 1.05;
/// The number of tries in a row without a gain after which the search ends. A single one may be
/// slow by chance.
const IN_VAIN: usize = 2;
/// The share of the highest rate from which on a rate counts as equally good. The smallest number
/// with such a rate is the best: more requests at once would only wait for each other.
const AS_GOOD: f64 = 0.97;

impl Runner<'_> {
    /// Tries 1, 2, 4, ... requests at once. Returns each number with the answers a second that it
    /// reached.
    pub(super) fn trials(&mut self, pass: &Pass, written: &str) -> Result<Vec<(usize, f64)>> {
        let mut trials = Vec::new();
        while let Some(concurrency) = next(&trials) {
            if self.stop.is_stopped() {
                break;
            }
            let mut pass = Pass { title: format!("{}, trying", pass.title), ..pass.clone() };
            pass.step.concurrency = concurrency;
            let work = self.work(&pass.step, written)?;
            trials.push((concurrency, self.rate(&pass, Job::Requests(&work), TRIAL)?));
        }
        Ok(trials)
    }
}

/// Returns the next number of requests at once to try; `None` if more requests at once would not be
/// faster.
fn next(trials: &[(usize, f64)]) -> Option<usize> {
    let Some((last, _)) = trials.last() else { return Some(1) };
    let mut highest = 0.0;
    let mut in_vain = 0;
    for (_, rate) in trials {
        in_vain = if *rate >= highest * WORTH_MORE { 0 } else { in_vain + 1 };
        highest = rate.max(highest);
    }
    (in_vain < IN_VAIN && *last < MOST).then_some(last * 2)
}

/// Returns the best of the numbers that were tried; `None` if no request was answered.
pub(super) fn best(trials: &[(usize, f64)]) -> Option<usize> {
    let highest = trials.iter().map(|(_, rate)| *rate).reduce(f64::max).filter(|rate| *rate > 0.0)?;
    let good = trials.iter().filter(|(_, rate)| *rate >= highest * AS_GOOD);
    good.map(|(concurrency, _)| *concurrency).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a known rate for each number. Returns the numbers that were tried, and the
    /// best.
    fn search(rate: impl Fn(usize) -> f64) -> (Vec<usize>, Option<usize>) {
        let mut trials = Vec::new();
        while let Some(concurrency) = next(&trials) {
            trials.push((concurrency, rate(concurrency)));
        }
        (trials.iter().map(|(concurrency, _)| *concurrency).collect(), best(&trials))
    }

    #[test]
    fn it_ends_where_more_is_no_faster() {
        assert_eq!(
            search(|n| [0.0, 100.0, 190.0, 0.0, 300.0].get(n).copied().unwrap_or(305.0)),
            (vec![1, 2, 4, 8, 16], Some(4))
        );
        // One that is slow by chance does not end it.
        let hiccup = |n: usize| if n == 4 { 1.0 } else { f64::from(u32::try_from(n.min(16)).unwrap()) };
        assert_eq!(search(hiccup), (vec![1, 2, 4, 8, 16, 32, 64], Some(16)));
        assert_eq!(search(|n| 1000.0 / f64::from(u32::try_from(n).unwrap())), (vec![1, 2, 4], Some(1)));
    }

    #[test]
    fn it_ends_at_the_most() {
        let (tried, best) = search(|n| f64::from(u32::try_from(n).unwrap()));
        assert_eq!((tried.last(), best), (Some(&MOST), Some(MOST)));
    }

    #[test]
    fn nothing_answered_is_no_rate() {
        assert_eq!(search(|_| 0.0).1, None);
        assert_eq!(best(&[]), None);
    }
}
