//! Facts about the machine, without which figures mean nothing.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine on which the load generator ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// The number of processors that this process may use.
    pub processors: usize,
    /// The size of the memory in bytes.
    pub memory_bytes: u64,
    /// The load average of the last minute at the beginning of the run.
    pub load: String,
}

impl Machine {
    /// Finds the facts about this machine.
    pub fn find() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
        Self {
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            processor: field(&read("/proc/cpuinfo"), "model name")
                .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: kib << 10,
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }

    /// Returns the facts on one line.
    pub fn sentence(&self) -> String {
        format!(
            "{} x {}, {} memory, Linux {}, load {}",
            self.processors,
            self.processor,
            crate::units::show_size(self.memory_bytes >> 30 << 30),
            self.kernel,
            self.load
        )
    }
}
