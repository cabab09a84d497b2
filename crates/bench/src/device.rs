//! Measures the work of block devices, from /proc/diskstats.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::units::float;

/// The unit of sizes in /proc/diskstats, in bytes, whatever the device's own sector size is.
const SECTOR: u64 = 512;
const DISKSTATS: &str = "/proc/diskstats";

/// A block device whose work the report shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name for the device: `sda`, `nvme0n1`, `dm-0`.
    pub(crate) name: String,
}

/// The work of a device during a step, whichever program caused it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceUse {
    /// The kernel's name for the device.
    pub name: String,
    /// The share of the measured time in which the device was busy, from 0 to 1.
    pub busy: f64,
    /// The number of read requests in the whole step. All file systems are flushed before the step
    /// and after it, so that the counts include everything that the step wrote.
    pub read_requests: u64,
    /// The number of bytes that the read requests read.
    pub read_bytes: u64,
    /// The number of write requests in the whole step.
    pub write_requests: u64,
    /// The number of bytes that the write requests wrote.
    pub write_bytes: u64,
    /// The number of flushes of the device's cache in the whole step.
    pub flushes: u64,
}

/// The counters of a device since the machine's start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    read_requests: u64,
    read_bytes: u64,
    write_requests: u64,
    write_bytes: u64,
    busy_ms: u64,
    flushes: u64,
}

impl Device {
    /// Finds a device by the kernel's name for it, by its file in /dev, or by a directory that is
    /// stored on it.
    pub fn find(text: &str) -> Result<Self> {
        let table = fs::read_to_string(DISKSTATS).map_err(|e| format!("{DISKSTATS}: {e}"))?;
        if !text.contains('/') {
            return match Counters::of(&table, text) {
                Some(_) => Ok(Self { name: text.to_owned() }),
                None => Err(format!(
                    "the kernel has no counters for a device {text} (/proc/diskstats lists those that it has)"
                )),
            };
        }
        let file = fs::metadata(text).map_err(|e| format!("{text}: {e}"))?;
        let id = if file.file_type().is_block_device() { file.rdev() } else { file.dev() };
        let (major, minor) = (rustix::fs::major(id), rustix::fs::minor(id));
        name_of(&table, major, minor).map(|name| Self { name }).ok_or_else(|| {
            format!("{text}: the kernel has no counters for device {major}:{minor}: give the block device below it")
        })
    }

    pub(crate) fn counters(&self) -> Counters {
        let table = fs::read_to_string(DISKSTATS).unwrap_or_default();
        Counters::of(&table, &self.name).unwrap_or_default()
    }

    /// Returns the work of the device during `step`, between its two readings. The share of time in
    /// which the device was busy is that between the two readings `measured`, `seconds` apart.
    pub(crate) fn used(
        &self,
        step: (Counters, Counters),
        measured: (Counters, Counters),
        seconds: f64,
    ) -> DeviceUse {
        let (before, after) = step;
        let busy_ms = measured.1.busy_ms.saturating_sub(measured.0.busy_ms);
        DeviceUse {
            name: self.name.clone(),
            busy: if seconds > 0.0 { (float(busy_ms) / 1e3 / seconds).min(1.0) } else { 0.0 },
            read_requests: after.read_requests.saturating_sub(before.read_requests),
            read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
            write_requests: after.write_requests.saturating_sub(before.write_requests),
            write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
            flushes: after.flushes.saturating_sub(before.flushes),
        }
    }
}

impl Counters {
    /// Finds a device's counters in the text of /proc/diskstats.
    fn of(table: &str, name: &str) -> Option<Self> {
        let fields: Vec<&str> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .find(|fields: &Vec<&str>| fields.get(2) == Some(&name))?;
        // Counted from the device's name on, as the kernel's documentation does.
        let field = |number: usize| fields.get(number + 2)?.parse::<u64>().ok();
        Some(Self {
            read_requests: field(1)?,
            read_bytes: field(3)? * SECTOR,
            write_requests: field(5)?,
            write_bytes: field(7)? * SECTOR,
            busy_ms: field(10)?,
            // Since Linux 5.5.
            flushes: field(16).unwrap_or_default(),
        })
    }
}

fn name_of(table: &str, major: u32, minor: u32) -> Option<String> {
    let (major, minor) = (major.to_string(), minor.to_string());
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let is_it = fields.next()? == major && fields.next()? == minor;
        is_it.then(|| fields.next().map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 7 1 80 4 5 6 160 8 0 250 13 0 0 0 0 9 2
   8      16 sdb 1 0 8 0 2 0 16 0 0 3 4
";

    #[test]
    fn counters_are_found() {
        let vda = Counters::of(TABLE, "vda").unwrap();
        assert_eq!((vda.read_requests, vda.read_bytes), (7, 80 * 512));
        assert_eq!((vda.write_requests, vda.write_bytes), (5, 160 * 512));
        assert_eq!((vda.busy_ms, vda.flushes), (250, 9));
        // As Linux before 4.18 writes it.
        assert_eq!(Counters::of(TABLE, "sdb").unwrap().flushes, 0);
        assert_eq!(Counters::of(TABLE, "vd"), None);
        assert_eq!(name_of(TABLE, 8, 16).as_deref(), Some("sdb"));
        assert_eq!(name_of(TABLE, 8, 0), None);
    }

    #[test]
    fn use_is_a_difference() {
        let device = Device { name: "vda".to_owned() };
        let at = |write_requests, write_bytes, busy_ms| Counters {
            write_requests,
            write_bytes,
            busy_ms,
            ..Counters::default()
        };
        let used = device.used((at(1, 10, 0), at(5, 4106, 900)), (at(2, 20, 100), at(3, 30, 600)), 2.0);
        assert_eq!((used.write_requests, used.write_bytes), (4, 4096));
        assert!((used.busy - 0.25).abs() < 1e-9, "{used:?}");
        assert!(device.used((at(0, 0, 0), at(0, 0, 0)), (at(0, 0, 0), at(0, 0, 9)), 0.0).busy.abs() < 1e-9);
    }

    #[test]
    fn what_is_no_device_is_refused() {
        assert!(Device::find("no-such-device").unwrap_err().contains("no-such-device"));
        assert!(Device::find("/no/such/file").is_err());
        assert!(Device::find("/proc").unwrap_err().contains("give the block device below it"));
    }
}
