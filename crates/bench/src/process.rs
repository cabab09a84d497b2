//! Measures the resources that processes use, from /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::processors;
use crate::units::float;

/// The time between two readings of the context switches. Each reading takes one file for every
/// thread.
const SWITCHES_EVERY: Duration = Duration::from_secs(1);

/// The resources that a server's process used during the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// The id of the process.
    pub pid: u32,
    /// The name of the process's program.
    pub name: String,
    /// The CPU time in seconds: user time and system time.
    pub cpu_seconds: f64,
    /// The part of the CPU time that was system time, in seconds.
    #[serde(default)]
    pub system_cpu_seconds: f64,
    /// The number of processors that the process may use at once, by its CPU mask and the quota of
    /// its control groups.
    #[serde(default)]
    pub processors: f64,
    /// The largest resident memory that was seen, in bytes.
    pub resident_bytes_max: u64,
    /// The number of page faults that did not wait for a disk.
    pub minor_faults: u64,
    /// The number of page faults that waited for a disk.
    pub major_faults: u64,
    /// The number of context switches of threads that had to wait for something. Those in the last
    /// second of a thread that ended may be missing.
    #[serde(default)]
    pub voluntary_switches: u64,
    /// The number of context switches of threads that could have continued.
    #[serde(default)]
    pub involuntary_switches: u64,
    /// The largest number of threads that was seen.
    pub threads_max: u64,
    /// The largest number of open files that was seen.
    pub open_files_max: u64,
    /// The calls and bytes of the process's reads and writes; `None` if this user may not read
    /// /proc/PID/io.
    #[serde(default)]
    pub io: Option<ProcessIo>,
    /// True if the process has ended.
    pub ended: bool,
}

/// The reads and writes of a process, as /proc/PID/io counts them: by read(2), write(2) and similar
/// calls, on files and sockets. Data that sockets receive and send by recv(2) and send(2) is not
/// included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIo {
    /// The number of calls that read.
    pub read_calls: u64,
    /// The number of bytes that these calls returned.
    pub read_bytes: u64,
    /// The number of calls that write.
    pub write_calls: u64,
    /// The number of bytes that these calls took.
    pub write_bytes: u64,
    /// The number of bytes that were fetched from storage.
    pub storage_read_bytes: u64,
    /// The number of bytes in pages of files that were to be written to storage, less those of
    /// pages that were discarded before.
    pub storage_write_bytes: u64,
}

#[derive(Debug, Clone, Default)]
struct Sample {
    ticks: u64,
    system_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
    threads: u64,
    resident_bytes: u64,
    open_files: u64,
    io: Option<ProcessIo>,
}

/// Measures processes, from the beginning of the measured time to its end.
pub(crate) struct Watch {
    watched: Vec<Watched>,
    own: Duration,
    switches_read: Instant,
}

struct Watched {
    used: ProcessUse,
    first: Sample,
    switches: Switches,
}

impl Watch {
    pub fn begin(pids: &BTreeSet<u32>) -> Self {
        let watched = pids.iter().filter_map(|&pid| {
            let first = sample(pid)?;
            let used = ProcessUse {
                pid,
                name: fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned(),
                processors: processors::usable_by(pid),
                ..ProcessUse::default()
            };
            Some(Watched { used, first, switches: Switches::begin(switches_of_threads(pid)) })
        });
        let mut watch = Self { watched: watched.collect(), own: own_cpu(), switches_read: Instant::now() };
        watch.look();
        watch
    }

    /// Takes a sample, and keeps the largest values so far.
    pub fn look(&mut self) {
        let with_switches = self.switches_read.elapsed() >= SWITCHES_EVERY;
        if with_switches {
            self.switches_read = Instant::now();
        }
        for watched in &mut self.watched {
            watched.look(with_switches);
        }
    }

    /// Ends the measurement. Returns what the processes used, and the CPU time of this process in
    /// seconds.
    pub fn end(mut self) -> (Vec<ProcessUse>, f64) {
        let own = own_cpu().saturating_sub(self.own).as_secs_f64();
        for watched in &mut self.watched {
            watched.look(true);
        }
        (self.watched.into_iter().map(|watched| watched.used).collect(), own)
    }
}

impl Watched {
    fn look(&mut self, with_switches: bool) {
        let (used, first) = (&mut self.used, &self.first);
        let Some(now) = sample(used.pid) else {
            used.ended = true;
            return;
        };
        let seconds = |now: u64, first: u64| {
            float(now.saturating_sub(first)) / float(rustix::param::clock_ticks_per_second())
        };
        used.cpu_seconds = seconds(now.ticks, first.ticks);
        used.system_cpu_seconds = seconds(now.system_ticks, first.system_ticks);
        used.minor_faults = now.minor_faults.saturating_sub(first.minor_faults);
        used.major_faults = now.major_faults.saturating_sub(first.major_faults);
        used.resident_bytes_max = used.resident_bytes_max.max(now.resident_bytes);
        used.threads_max = used.threads_max.max(now.threads);
        used.open_files_max = used.open_files_max.max(now.open_files);
        used.io = now.io.zip(first.io).map(|(now, first)| now.since(&first));
        if with_switches {
            self.switches.look(switches_of_threads(used.pid));
            (used.voluntary_switches, used.involuntary_switches) = self.switches.total;
        }
    }
}

impl ProcessIo {
    fn since(&self, first: &Self) -> Self {
        Self {
            read_calls: self.read_calls.saturating_sub(first.read_calls),
            read_bytes: self.read_bytes.saturating_sub(first.read_bytes),
            write_calls: self.write_calls.saturating_sub(first.write_calls),
            write_bytes: self.write_bytes.saturating_sub(first.write_bytes),
            storage_read_bytes: self.storage_read_bytes.saturating_sub(first.storage_read_bytes),
            storage_write_bytes: self.storage_write_bytes.saturating_sub(first.storage_write_bytes),
        }
    }

    /// Reads /proc/PID/io.
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| number_of_line(text, name);
        Some(Self {
            read_calls: field("syscr:")?,
            read_bytes: field("rchar:")?,
            write_calls: field("syscw:")?,
            write_bytes: field("wchar:")?,
            storage_read_bytes: field("read_bytes:")?,
            storage_write_bytes: field("write_bytes:")?.saturating_sub(field("cancelled_write_bytes:")?),
        })
    }
}

/// The counts of voluntary and involuntary context switches. The kernel counts them for each
/// thread, and discards a thread's counts when the thread ends.
struct Switches {
    total: (u64, u64),
    last: BTreeMap<u32, (u64, u64)>,
}

impl Switches {
    fn begin(threads: BTreeMap<u32, (u64, u64)>) -> Self {
        Self { total: (0, 0), last: threads }
    }

    fn look(&mut self, threads: BTreeMap<u32, (u64, u64)>) {
        for (thread, now) in &threads {
            // One that counts less than before is another one, with its number.
            let before = self.last.get(thread).filter(|last| last.0 <= now.0 && last.1 <= now.1);
            let before = before.copied().unwrap_or_default();
            self.total.0 += now.0 - before.0;
            self.total.1 += now.1 - before.1;
        }
        self.last = threads;
    }
}

fn switches_of_threads(pid: u32) -> BTreeMap<u32, (u64, u64)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let switches = threads.filter_map(|entry| {
        let thread: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let of = |name| number_of_line(&status, name);
        Some((thread, (of("voluntary_ctxt_switches:")?, of("nonvoluntary_ctxt_switches:")?)))
    });
    switches.collect()
}

/// Returns the number that follows `name` on its line.
fn number_of_line(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or_default(), time.tv_nsec.try_into().unwrap_or_default())
}

fn sample(pid: u32) -> Option<Sample> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut sample = parse_stat(&stat)?;
    sample.open_files = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |files| files.count() as u64);
    sample.io = fs::read_to_string(format!("/proc/{pid}/io")).ok().and_then(|io| ProcessIo::parse(&io));
    Some(sample)
}

/// Reads the text of /proc/PID/stat. The process's name, in parentheses, may contain any
/// characters.
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
        system_ticks: field(15)?,
        threads: field(20)?,
        resident_bytes: field(24)? * rustix::param::page_size() as u64,
        ..Sample::default()
    })
}

/// True if a process with this id runs.
pub fn exists(pid: u32) -> bool {
    sample(pid).is_some()
}

/// Returns the processes that listen on a TCP port of this machine, as far as this user may see
/// them.
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
            (sample.minor_faults, sample.major_faults, sample.ticks, sample.system_ticks, sample.threads),
            (11, 12, 27, 14, 15)
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
        std::thread::sleep(Duration::from_millis(1));
        let (used, own) = watch.end();
        assert!(used[0].voluntary_switches > 0 && used[0].processors > 0.0, "{used:?}");
        assert!(used[0].io.unwrap().read_calls > 0, "{used:?}");
        assert!(
            own > 0.0 && used[0].minor_faults > 1000 && used[0].resident_bytes_max > 60 << 20,
            "{used:?} {own}"
        );
    }

    #[test]
    fn io_is_what_reached_storage() {
        let text = "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 50\nwrite_bytes: 8192\n\
                    cancelled_write_bytes: 4096\n";
        let io = ProcessIo::parse(text).unwrap();
        assert_eq!((io.read_calls, io.read_bytes, io.write_calls, io.write_bytes), (3, 10, 4, 20));
        assert_eq!((io.storage_read_bytes, io.storage_write_bytes), (50, 4096));
        assert_eq!(ProcessIo::parse("rchar: 10\n"), None);
    }

    #[test]
    fn switches_of_threads_that_come_and_go_are_counted() {
        let mut switches = Switches::begin(BTreeMap::from([(1, (100, 10)), (2, (50, 5))]));
        switches.look(BTreeMap::from([(1, (110, 11)), (2, (50, 5)), (3, (7, 0))]));
        assert_eq!(switches.total, (17, 1));
        // 2 has ended, and 3 is the number of another thread now.
        switches.look(BTreeMap::from([(1, (111, 11)), (3, (2, 1))]));
        assert_eq!(switches.total, (20, 2));
    }
}
