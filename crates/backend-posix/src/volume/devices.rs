//! What is known of the devices that a tree is on: the root's, and those of buckets that are mount
//! points or subvolumes.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use rustix::fd::AsFd;

use super::kind::Volume;
use super::trials::Tried;
use crate::error::Io;

/// Devices, by their numbers (`st_dev`).
#[derive(Debug, Default)]
pub(crate) struct Devices(RwLock<HashMap<u64, Device>>);

/// One device; what was not found out yet has the value that lets nothing go wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Device {
    volume: Option<Volume>,
    tried: Option<Tried>,
    /// True if it keeps no modes of files.
    modeless: bool,
}

impl Devices {
    fn get<T>(&self, device: u64, value: impl FnOnce(&Device) -> Option<T>) -> Option<T> {
        value(self.0.read().unwrap_or_else(PoisonError::into_inner).get(&device)?)
    }

    fn set(&self, device: u64, change: impl FnOnce(&mut Device)) {
        change(self.0.write().unwrap_or_else(PoisonError::into_inner).entry(device).or_default());
    }

    /// True if anything is known of any device.
    pub fn any(&self) -> bool {
        !self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The volume of a device that was met.
    pub fn volume(&self, device: u64) -> Option<Volume> {
        self.get(device, |known| known.volume)
    }

    /// Finds out what the volume of `file`, which is on `device`, can do.
    pub fn meet(&self, device: u64, file: impl AsFd) -> Io<Volume> {
        let volume = Volume::on(device, file)?;
        self.set(device, |known| known.volume = Some(volume));
        Ok(volume)
    }

    /// The result of trying a device; `None` if it was not tried, or nothing could be written then.
    pub fn tried(&self, device: u64) -> Option<Tried> {
        self.get(device, |known| known.tried)
    }

    /// Keeps the result of trying a device.
    pub fn keep_tried(&self, device: u64, tried: Tried) {
        self.set(device, |known| known.tried = Some(tried).filter(|tried| *tried != Tried::Unknown));
    }

    /// True if a device is known to keep no modes of files.
    pub fn is_modeless(&self, device: u64) -> bool {
        self.get(device, |known| Some(known.modeless)).unwrap_or_default()
    }

    /// Notes that a device keeps no modes of files.
    pub fn keep_modeless(&self, device: u64) {
        self.set(device, |known| known.modeless = true);
    }

    /// Forgets all: the number of a device that is unmounted is given to another one.
    pub fn forget(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
