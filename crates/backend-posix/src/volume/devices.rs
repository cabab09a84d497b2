//! The devices of buckets that are mount points or subvolumes, so that they differ from the root's
//! device, each with the description of its volume.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use rustix::fd::AsFd;

use super::description::Volume;
use crate::error::Io;

/// Devices, by their numbers (`st_dev`).
#[derive(Debug, Default)]
pub(crate) struct Devices {
    known: RwLock<HashMap<u64, Device>>,
    /// The devices that were found to keep no modes of files; the root's may be among them.
    modeless: RwLock<HashSet<u64>>,
}

/// One device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    pub volume: Volume,
    /// True if the server has tried on it what the description says ([`super::trials`]).
    pub tried: bool,
}

impl Devices {
    /// True if any device is known.
    pub fn any(&self) -> bool {
        !self.known.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns a device; `None` if it is not known.
    pub fn get(&self, device: u64) -> Option<Device> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&device).copied()
    }

    /// Returns the description of the volume of `file`, which is on `device`, as far as it is known
    /// without trying it. The device is known from then on.
    pub fn meet(&self, device: u64, file: impl AsFd) -> Io<Device> {
        let volume = Volume::on(device, file)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        Ok(*known.entry(device).or_insert(Device { volume, tried: false }))
    }

    /// Stores the description of a device's volume after the server has tried what it can do.
    pub fn keep(&self, device: u64, volume: Volume) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(device, Device { volume, tried: true });
    }

    /// True if a device was found to keep no modes of files.
    pub fn is_modeless(&self, device: u64) -> bool {
        self.modeless.read().unwrap_or_else(PoisonError::into_inner).contains(&device)
    }

    /// Notes that a device keeps no modes of files.
    pub fn keep_modeless(&self, device: u64) {
        self.modeless.write().unwrap_or_else(PoisonError::into_inner).insert(device);
    }

    /// Forgets all devices, since the number of an unmounted device is given to another one.
    pub fn forget(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.modeless.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
