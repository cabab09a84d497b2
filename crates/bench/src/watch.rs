//! Measures the resources that are used while a load runs: by the servers, by this process, by the
//! machine and by devices.

use std::collections::BTreeSet;

use crate::device::{Counters, Device};
use crate::process::{self, ProcessUse};
use crate::system::{Sample, SystemUse};

/// A measurement of resources, from the beginning of the measured time to its end.
pub(crate) struct Watch {
    processes: process::Watch,
    system: Sample,
    devices: Vec<(Device, Counters)>,
}

/// The resources that were used in the measured time.
#[derive(Debug, Default)]
pub(crate) struct Used {
    pub seconds: f64,
    pub servers: Vec<ProcessUse>,
    /// The CPU time of this process, in seconds.
    pub own_cpu_seconds: f64,
    pub system: SystemUse,
    /// The counters of each device at the beginning and at the end.
    pub devices: Vec<(Counters, Counters)>,
}

impl Watch {
    pub fn begin(pids: &BTreeSet<u32>, devices: &[Device]) -> Self {
        Self {
            system: Sample::take(),
            devices: devices.iter().map(|device| (device.clone(), device.counters())).collect(),
            processes: process::Watch::begin(pids),
        }
    }

    /// Takes a sample of the figures that must be read during the measurement.
    pub fn look(&mut self) {
        self.processes.look();
    }

    pub fn end(self) -> Used {
        let seconds = self.system.seconds();
        let system = Sample::take().since(&self.system);
        let (servers, own_cpu_seconds) = self.processes.end();
        let devices = self.devices.into_iter().map(|(device, began)| (began, device.counters()));
        Used { seconds, servers, own_cpu_seconds, system, devices: devices.collect() }
    }
}
