//! Tests the devices of buckets that are on other devices than the root.

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
        self.volume_of(device, &bucket.fd).attempt("look at a bucket's file system")?;
        let before = self.devices.tried(device);
        let tried = before.map_or_else(|| self.try_staging(bucket, device), Ok)?;
        self.devices.keep_tried(device, tried);
        match tried {
            Tried::Lacks(lack) => Err(BackendError::Unsupported(lack.sentence()).into()),
            Tried::Fine | Tried::Unknown => Ok(()),
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
    use crate::fs::file_info;
    use crate::testing::Scene;

    #[test]
    fn a_device_is_tried_once_until_it_is_forgotten() {
        let mut scene = Scene::new();
        scene.store.assume_elsewhere();
        let device = file_info::of(&scene.bucket().fd).unwrap().device;
        let tried = |scene: &Scene| scene.store.devices.tried(device).is_some();
        assert!(!tried(&scene));
        scene.put("a", b"1").unwrap();
        scene.put("b", b"1").unwrap();
        assert!(tried(&scene));
        scene.store.devices.forget();
        assert!(!tried(&scene));
        scene.put("a", b"2").unwrap();
        assert!(tried(&scene));
    }
}
