//! Measures the resources that all programs of this machine use, from /proc and /sys.

use std::fs;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::units::float;

/// The resources that all programs of this machine used in the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemUse {
    /// The number of processors of this machine.
    pub processors: f64,
    /// The number of processors that were busy, on average.
    pub processors_busy: f64,
    /// The share of the time in which at least one task waited for storage (/proc/pressure/io);
    /// `None` if the kernel does not count it.
    pub io_stalled: Option<f64>,
    /// The network interface with the most traffic.
    pub link: Option<LinkUse>,
}

/// The traffic of a network interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkUse {
    /// The name of the interface; `lo` is this machine's loopback.
    pub name: String,
    /// The number of bytes received a second.
    pub received_per_second: f64,
    /// The number of bytes sent a second.
    pub sent_per_second: f64,
    /// The number of bits a second that the interface can transfer in each direction; `None` if it
    /// is not known.
    pub bits_per_second: Option<f64>,
}

impl LinkUse {
    /// True for this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.name == "lo"
    }

    /// Returns the share of the interface's capacity that was used in the busier direction; `None`
    /// if the capacity is not known.
    pub fn share(&self) -> Option<f64> {
        Some(self.received_per_second.max(self.sent_per_second) * 8.0 / self.bits_per_second?)
    }
}

/// The kernel's counters, which count since the machine's start, at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    at: Instant,
    /// The number of ticks in which a processor was busy, and of all ticks.
    ticks: Ticks,
    io_stalled_us: Option<u64>,
    /// The name of each network interface, with the bytes that it received and sent.
    links: Vec<(String, u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    all: u64,
    processors: u64,
}

impl Sample {
    pub fn take() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            at: Instant::now(),
            ticks: Ticks::parse(&read("/proc/stat")).unwrap_or_default(),
            io_stalled_us: stalled(&read("/proc/pressure/io")),
            links: links(&read("/proc/net/dev")),
        }
    }

    /// Returns the number of seconds since the sample was taken.
    pub fn seconds(&self) -> f64 {
        self.at.elapsed().as_secs_f64()
    }

    /// Returns the resources that were used between the sample `first` and this one.
    pub fn since(&self, first: &Self) -> SystemUse {
        let seconds = (self.at - first.at).as_secs_f64().max(1e-9);
        let busy = float(self.ticks.busy.saturating_sub(first.ticks.busy));
        let all = float(self.ticks.all.saturating_sub(first.ticks.all)).max(1.0);
        let stalled = self.io_stalled_us.zip(first.io_stalled_us);
        let stalled = stalled.map(|(now, then)| float(now.saturating_sub(then)) / 1e6 / seconds);
        SystemUse {
            processors: float(self.ticks.processors),
            processors_busy: busy / all * float(self.ticks.processors),
            io_stalled: stalled.map(|share| share.min(1.0)),
            link: self.busiest_link(first, seconds),
        }
    }

    fn busiest_link(&self, first: &Self, seconds: f64) -> Option<LinkUse> {
        let moved = self.links.iter().filter_map(|(name, received, sent)| {
            let (_, received_then, sent_then) = first.links.iter().find(|(then, _, _)| then == name)?;
            Some((name, received.saturating_sub(*received_then), sent.saturating_sub(*sent_then)))
        });
        let (name, received, sent) = moved.max_by_key(|(_, received, sent)| received + sent)?;
        let speed = fs::read_to_string(format!("/sys/class/net/{name}/speed")).ok();
        // Mbit/s; -1 where it is not known.
        let speed = speed.and_then(|text| text.trim().parse::<f64>().ok()).filter(|speed| *speed > 0.0);
        Some(LinkUse {
            name: name.clone(),
            received_per_second: float(received) / seconds,
            sent_per_second: float(sent) / seconds,
            bits_per_second: speed.map(|speed| speed * 1e6),
        })
    }
}

impl Ticks {
    /// Reads the text of /proc/stat.
    fn parse(text: &str) -> Option<Self> {
        let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal. What guests take is in user.
        let fields: Vec<u64> = all.split_whitespace().take(8).filter_map(|n| n.parse().ok()).collect();
        let idle = fields.get(3)? + fields.get(4)?;
        let all: u64 = fields.iter().sum();
        let is_processor = |line: &&str| {
            line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        let processors = text.lines().filter(is_processor).count() as u64;
        Some(Self { busy: all - idle, all, processors })
    }
}

/// Returns the number of microseconds in which a task waited for storage, from the text of
/// /proc/pressure/io.
fn stalled(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Reads the text of /proc/net/dev.
fn links(text: &str) -> Vec<(String, u64, u64)> {
    let of = text.lines().filter_map(|line| {
        let (name, counters) = line.split_once(':')?;
        let counters: Vec<&str> = counters.split_whitespace().collect();
        let counter = |at: usize| counters.get(at)?.parse::<u64>().ok();
        Some((name.trim().to_owned(), counter(0)?, counter(8)?))
    });
    of.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn tables_are_read() {
        let stat =
            "cpu  10 1 20 100 9 2 3 4 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 1 1 1 1 1 1 1 1 1 1\nctxt 7\n";
        assert_eq!(Ticks::parse(stat), Some(Ticks { busy: 40, all: 149, processors: 2 }));
        assert_eq!(Ticks::parse("cpu  1 2\n"), None);
        let pressure = "some avg10=1.23 avg60=0.75 avg300=0.64 total=10786082\nfull avg10=0.97 total=5\n";
        assert_eq!(stalled(pressure), Some(10_786_082));
        assert_eq!(stalled(""), None);
        let dev =
            "Inter-| Receive | Transmit\n face |bytes packets|bytes\n    lo: 100 1 0 0 0 0 0 0 200 2 0\n";
        assert_eq!(links(dev), [("lo".to_owned(), 100, 200)]);
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let at = Instant::now();
        let sample = |at, busy, all, stalled, received| Sample {
            at,
            ticks: Ticks { busy, all, processors: 4 },
            io_stalled_us: Some(stalled),
            links: vec![("lo".to_owned(), 5, 5), ("none-such0".to_owned(), received, 7)],
        };
        let first = sample(at, 100, 1000, 0, 0);
        let used = sample(at + Duration::from_secs(2), 400, 1800, 500_000, 2000).since(&first);
        assert!((used.processors_busy - 1.5).abs() < 1e-9 && (used.io_stalled.unwrap() - 0.25).abs() < 1e-9);
        let link = used.link.unwrap();
        assert_eq!((link.name.as_str(), link.bits_per_second, link.share()), ("none-such0", None, None));
        assert!((link.received_per_second - 1000.0).abs() < 1e-9 && !link.is_loopback());
        let known = LinkUse { bits_per_second: Some(16_000.0), ..link };
        assert!((known.share().unwrap() - 0.5).abs() < 1e-9);
    }
}
