//! Tests the devices of buckets that are on other devices than the root.

use std::sync::PoisonError;

use backend::BackendError;

use super::bucket::Bucket;
use super::store::Store;
use crate::base::options::Options;
use crate::base::unique;
use crate::error::{Fail, Op};
use crate::fs::file_info;
use crate::volume::trials::{self, Needs, Tried};

impl Bucket<'_> {
    /// An error if the bucket's file system lacks something required ([`Store::try_device`]).
    pub fn try_device(&self) -> Result<(), Fail> {
        let device = file_info::of(&self.fd).attempt("stat a bucket")?.device;
        self.store.try_device(self, device)
    }
}

impl Store {
    /// Tests whether the file system of a bucket has what is required, before anything is written
    /// there for the first time. Costs nothing on the root's device.
    pub fn try_device(&self, bucket: &Bucket<'_>, device: u64) -> Result<(), Fail> {
        if device == self.device {
            return Ok(());
        }
        let known = || self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known().get(&device).copied();
        let tried = before.map_or_else(|| self.try_staging(bucket, device), Ok)?;
        if tried != Tried::Unknown {
            known().insert(device, tried);
        }
        match tried {
            Tried::Lacks(lack) => Err(BackendError::Unsupported(lack.sentence()).into()),
            Tried::Fine | Tried::Unknown => Ok(()),
        }
    }

    /// Makes the devices other than the root's be tested again: the number of a device that is
    /// unmounted is given to another one.
    pub fn forget_tried(&self) {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(known) = &self.modeless {
            known.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn try_staging(&self, bucket: &Bucket<'_>, device: u64) -> Result<Tried, Fail> {
        let staging = bucket.staging_directory()?;
        // Something may be mounted inside the bucket.
        if file_info::stat(&staging)?.device != device {
            return Ok(Tried::Unknown);
        }
        let Options { allow_same_names, durability, .. } = self.options;
        let needs = Needs {
            names: !allow_same_names,
            flushes: durability.syncs_names(),
            attributes: !self.sidecars(),
        };
        let tried = trials::run(&staging, &unique::name(), needs).op("test the file system")?;
        if let Tried::Lacks(lack) = tried {
            tracing::error!(
                "a bucket is on another file system than the directory that is served, and cannot be written to: {}",
                lack.sentence()
            );
        }
        Ok(tried)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Scene;

    #[test]
    fn a_device_is_tried_once_until_it_is_forgotten() {
        let mut scene = Scene::new();
        scene.store.assume_elsewhere();
        let tried = |scene: &Scene| scene.store.tried.lock().unwrap().len();
        assert_eq!(tried(&scene), 0);
        scene.put("a", b"1").unwrap();
        scene.put("b", b"1").unwrap();
        assert_eq!(tried(&scene), 1);
        scene.store.forget_tried();
        assert_eq!(tried(&scene), 0);
        scene.put("a", b"2").unwrap();
        assert_eq!(tried(&scene), 1);
    }
}
