//! What processes use, from /proc.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::units::float;

/// What a server's process used while it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The process.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
    /// User and system time.
    pub cpu_seconds: f64,
    /// The most resident memory that was seen.
    pub resident_bytes_max: u64,
    /// Page faults that did not wait for a disk.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// The most threads that were seen.
    pub threads_max: u64,
    /// The most open files that were seen.
    pub open_files_max: u64,
    /// It is no more.
    pub ended: bool,
}

#[derive(Debug, Clone, Default)]
struct Sample {
    ticks: u64,
    minor_faults: u64,
    major_faults: u64,
    threads: u64,
    resident_bytes: u64,
    open_files: u64,
}

/// Watches processes from a beginning to an end.
pub(crate) struct Watch {
    began: Vec<(ProcessUse, Sample)>,
    own: Duration,
}

impl Watch {
    pub fn begin(pids: &BTreeSet<u32>) -> Self {
        let began = pids.iter().filter_map(|&pid| {
            let sample = sample(pid)?;
            let used = ProcessUse {
                pid,
                name: fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned(),
                cpu_seconds: 0.0,
                resident_bytes_max: 0,
                minor_faults: 0,
                major_faults: 0,
                threads_max: 0,
                open_files_max: 0,
                ended: false,
            };
            Some((used, sample))
        });
        let mut watch = Self { began: began.collect(), own: own_cpu() };
        watch.look();
        watch
    }

    /// Takes a look; what is largest stays.
    pub fn look(&mut self) {
        let ticks = float(rustix::param::clock_ticks_per_second());
        for (used, first) in &mut self.began {
            let Some(now) = sample(used.pid) else {
                used.ended = true;
                continue;
            };
            used.cpu_seconds = float(now.ticks.saturating_sub(first.ticks)) / ticks;
            used.minor_faults = now.minor_faults.saturating_sub(first.minor_faults);
            used.major_faults = now.major_faults.saturating_sub(first.major_faults);
            used.resident_bytes_max = used.resident_bytes_max.max(now.resident_bytes);
            used.threads_max = used.threads_max.max(now.threads);
            used.open_files_max = used.open_files_max.max(now.open_files);
        }
    }

    /// What they used, and what this process did, in seconds of CPU.
    pub fn end(mut self) -> (Vec<ProcessUse>, f64) {
        let own = own_cpu().saturating_sub(self.own).as_secs_f64();
        self.look();
        (self.began.into_iter().map(|(used, _)| used).collect(), own)
    }
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

fn sample(pid: u32) -> Option<Sample> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut sample = parse_stat(&stat)?;
    sample.open_files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count() as u64);
    Some(sample)
}

/// Reads /proc/PID/stat. The name, in parentheses, may have anything in it.
fn parse_stat(text: &str) -> Option<Sample> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie has ended.
    if fields.first().is_none_or(|state| matches!(*state, "Z" | "X")) {
        return None;
    }
    // Numbered from the third on, as proc(5) does.
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Sample {
        minor_faults: field(10)?,
        major_faults: field(12)?,
        ticks: field(14)? + field(15)?,
        threads: field(20)?,
        resident_bytes: field(24)? * rustix::param::page_size() as u64,
        open_files: 0,
    })
}

/// True if there is such a process.
pub fn exists(pid: u32) -> bool {
    sample(pid).is_some()
}

/// The processes that listen on a TCP port of this machine, as far as this user may see them.
pub fn listening_on(port: u16) -> BTreeSet<u32> {
    let mut inodes = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        inodes.extend(listening_inodes(&fs::read_to_string(table).unwrap_or_default(), port));
    }
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| {
            let inode = target.to_str().and_then(|t| t.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(|inode| inodes.contains(inode))
        })
    })
    .collect()
}

fn listening_inodes(table: &str, port: u16) -> BTreeSet<String> {
    let lines = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let listens = *fields.get(3)? == "0A" && u16::from_str_radix(local, 16) == Ok(port);
        listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_name() {
        let text = "7 (a) b) c) S 1 7 7 0 -1 4194560 11 0 12 0 13 14 0 0 20 0 15 0 100 1000 16 184467 1 1";
        let sample = parse_stat(text).unwrap();
        assert_eq!(
            (sample.minor_faults, sample.major_faults, sample.ticks, sample.threads),
            (11, 12, 27, 15)
        );
        assert_eq!(sample.resident_bytes, 16 * rustix::param::page_size() as u64);
        assert!(parse_stat(&text.replace(" S ", " Z ")).is_none());
        assert!(parse_stat("7 (x").is_none());
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_on(port).contains(&std::process::id()));
        drop(listener);
        assert!(!listening_on(port).contains(&std::process::id()));
    }

    #[test]
    fn use_is_what_was_used() {
        let mut watch = Watch::begin(&BTreeSet::from([std::process::id()]));
        let _memory: Vec<u64> = (0..8_000_000).collect();
        watch.look();
        let (used, own) = watch.end();
        assert!(
            own > 0.0 && used[0].minor_faults > 1000 && used[0].resident_bytes_max > 60 << 20,
            "{used:?} {own}"
        );
    }
}
