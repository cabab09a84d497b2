//! The plan of a run: the steps to measure, the servers, and the settings.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::device::Device;
use crate::endpoint::Endpoint;
use crate::request::Payload;
use crate::units::{Mix, Rate, show_size};
use s3_client::Credentials;

/// The largest number of requests that are signed beforehand for one step.
pub const SIGNED_MAX: u64 = 20_000;
/// The approximate number of bytes that are put into a bucket for one step, unless the number of
/// objects is given, or each object is large.
const DATA: u64 = 1 << 30;

/// The length of the ranges of streams in bytes, unless it is given.
pub(crate) const STREAM_RANGE: u64 = 128 << 10;

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// PutObject.
    Put,
    /// GetObject, whole or in ranges.
    Get,
    /// HeadObject.
    Head,
    /// ListObjectsV2.
    List,
    /// DeleteObject.
    Delete,
    /// Uploads in parts.
    Multipart,
    /// Several operations.
    Mixed,
    /// A number of objects: all are put, then all are read, then all are deleted.
    Burst,
    /// Objects that are written, read once, and deleted, while other objects exist.
    Churn,
    /// Readers, each of which reads a large object from its beginning to its end.
    Streams,
}

impl Test {
    /// True if the step changes no objects.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::List | Self::Streams)
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Head => "head",
            Self::List => "list",
            Self::Delete => "delete",
            Self::Multipart => "multipart",
            Self::Mixed => "mixed",
            Self::Burst => "burst",
            Self::Churn => "churn",
            Self::Streams => "streams",
        }
    }
}

/// One measurement, and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of the step.
    pub test: Test,
    /// The size of the objects in bytes.
    pub size: u64,
    /// The length of the ranges in bytes, for GetObject and streams. `None` if whole objects are
    /// read, or for the default length of streams.
    pub range: Option<u64>,
    /// The size of the parts of uploads in bytes.
    pub part_size: u64,
    /// The weight of each operation in a mix.
    pub mix: Mix,
    /// The number of keys on a page of a listing.
    pub page: usize,
    /// The number of requests at once.
    pub concurrency: usize,
    /// True if the run first searches for the number of requests at once that is fastest, and then
    /// measures with it.
    pub fastest: bool,
    /// The number of endpoints that take part.
    pub endpoints: usize,
    /// The largest number of requests, or uploads; `None` for no such limit.
    pub most: Option<u64>,
}

impl Step {
    /// Describes the step in words, without the number of requests at once: `get 10 GiB in ranges
    /// of 64 MiB`.
    pub fn title(&self) -> String {
        let size = show_size(self.size);
        match (self.test, self.range) {
            (Test::Get, Some(range)) => format!("get {size} in ranges of {}", show_size(range)),
            (Test::Streams, range) => {
                format!("streams of {size} in ranges of {}", show_size(range.unwrap_or(STREAM_RANGE)))
            }
            (Test::Multipart, _) => format!("multipart {size} in parts of {}", show_size(self.part_size)),
            (Test::List, _) => format!("list, pages of {}", self.page),
            (Test::Mixed, _) => {
                let Mix { get, put, head, delete, list } = self.mix;
                let all = [("get", get), ("put", put), ("head", head), ("delete", delete), ("list", list)];
                let there = all.iter().filter(|(_, weight)| *weight > 0);
                let weights: Vec<String> = there.map(|(name, weight)| format!("{name}={weight}")).collect();
                format!("mixed {size} {}", weights.join(","))
            }
            (test, _) => format!("{} {size}", test.name()),
        }
    }

    /// Returns the number of objects that the step needs: `given`, if it is a number, or else a
    /// default.
    pub(crate) fn objects(&self, given: Option<usize>) -> usize {
        let lanes = self.concurrency as u64;
        let fitting = DATA / self.size.max(1);
        let default = match self.test {
            Test::Put => fitting.clamp(lanes, 2000.max(lanes)),
            Test::Get | Test::Head => fitting.clamp(1, 1000),
            Test::List => 5000,
            Test::Delete => fitting.clamp(200, 10_000),
            Test::Multipart => 1,
            Test::Mixed => fitting.clamp(1, 1000),
            Test::Burst | Test::Streams => lanes,
            Test::Churn => fitting.clamp(lanes, 1000.max(lanes)),
        };
        given.unwrap_or_else(|| usize::try_from(default).unwrap_or(usize::MAX))
    }

    /// Returns the number of keys that a mix writes: at least two for each lane, one for an object
    /// that is written and one for an object that is deleted.
    pub(crate) fn keys_of_mix(&self, objects: usize) -> usize {
        objects.max(2 * self.concurrency)
    }

    /// Returns the number of keys for a churn with `alive` objects. Each lane needs a key without
    /// an object; with more of them, a key is not used again at once.
    pub(crate) fn keys_of_churn(&self, alive: usize) -> usize {
        (2 * alive).max(alive + self.concurrency)
    }

    /// Returns the first and the last byte of each range of one object. If there are too many
    /// ranges to sign, returns only some of them, at equal distances.
    pub(crate) fn ranges(&self, objects: usize) -> Vec<(u64, u64)> {
        let length = self.range.unwrap_or(self.size).clamp(1, self.size.max(1));
        let count = self.size.div_ceil(length);
        let every = (count * objects as u64).div_ceil(SIGNED_MAX).max(1);
        let starts = (0..count.div_ceil(every)).map(|n| n * every * length);
        starts.map(|first| (first, (first + length).min(self.size) - 1)).collect()
    }
}

/// The steps to measure, the servers, and the settings.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The servers. Connections are distributed over them in turn.
    pub endpoints: Vec<Endpoint>,
    /// The keys that requests are signed with.
    pub credentials: Credentials,
    /// The name of an existing bucket to use; `None` if the run makes a bucket and removes it.
    pub bucket: Option<String>,
    /// True if the run does not remove the objects and the bucket that it made.
    pub keep: bool,
    /// Whether the signature covers the body
    pub payload: Payload,
    /// The number of threads that send requests.
    pub threads: usize,
    /// The number of objects; `None` for the default of each step.
    pub objects: Option<usize>,
    /// The time for which each step is measured.
    pub duration: Duration,
    /// The time for which each step runs before it is measured.
    pub warm_up: Duration,
    /// The rate of an open loop; `None` for a closed loop.
    pub rate: Option<Rate>,
    /// The number of times that all steps are run.
    pub repeat: u32,
    /// The longest time that a request waits for its answer.
    pub timeout: Duration,
    /// The ids of the servers' processes. If it is empty, the processes that listen on the
    /// endpoints' ports of this machine are watched.
    pub server_pids: BTreeSet<u32>,
    /// The devices whose work the report shows.
    pub devices: Vec<Device>,
    /// The name of the preset, if the steps come from one.
    pub preset: Option<String>,
    /// The steps.
    pub steps: Vec<Step>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(test: Test, size: u64) -> Step {
        let (range, mix, most) = (None, Mix::default(), None);
        Step {
            test,
            size,
            range,
            part_size: 5 << 20,
            mix,
            page: 1000,
            concurrency: 64,
            fastest: false,
            endpoints: 1,
            most,
        }
    }

    #[test]
    fn ranges_cover_the_object() {
        let step = Step { range: Some(4), ..step(Test::Get, 10) };
        assert_eq!(step.ranges(1), [(0, 3), (4, 7), (8, 9)]);
        let step = Step { range: Some(100), ..step };
        assert_eq!(step.ranges(1), [(0, 9)]);
        let step = Step { range: Some(1), size: 1 << 30, ..step };
        let many = step.ranges(2);
        assert!(many.len() as u64 <= SIGNED_MAX / 2 && many.len() > 9000, "{}", many.len());
    }

    #[test]
    fn titles_tell_steps_apart() {
        assert_eq!(step(Test::Streams, 1 << 30).title(), "streams of 1 GiB in ranges of 128 KiB");
        let wide = Step { range: Some(512 << 10), ..step(Test::Streams, 1 << 30) };
        assert_eq!(wide.title(), "streams of 1 GiB in ranges of 512 KiB");
        assert_eq!(step(Test::Burst, 1 << 20).title(), "burst 1 MiB");
        assert_eq!(step(Test::Churn, 4096).title(), "churn 4 KiB");
    }

    #[test]
    fn objects_fit() {
        assert_eq!(step(Test::Put, 1024).objects(None), 2000);
        assert_eq!(step(Test::Put, 1 << 30).objects(None), 64);
        assert_eq!(step(Test::Get, 10 << 30).objects(None), 1);
        assert_eq!(step(Test::Get, 1024).objects(Some(7)), 7);
        let mixed = step(Test::Mixed, 1 << 30);
        assert_eq!((mixed.objects(Some(1)), mixed.keys_of_mix(1)), (1, 128));
        assert_eq!(step(Test::Head, 0).objects(None), 1000);
        assert_eq!(step(Test::Burst, 1 << 20).objects(None), 64);
        assert_eq!(step(Test::Streams, 1 << 30).objects(None), 64);
        let churn = step(Test::Churn, 1 << 20);
        assert_eq!(
            (churn.objects(None), churn.keys_of_churn(1000), churn.keys_of_churn(5)),
            (1000, 2000, 69)
        );
    }
}
