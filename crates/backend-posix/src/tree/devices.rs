//! Tries the devices of buckets that are not on the root's device.

use backend::BackendError;
use kernel_calls::acting::as_self;

use super::bucket::Bucket;
use super::store::Store;
use crate::base::unique;
use crate::error::{Fail, Op};
use crate::fs::file_info;
use crate::volume::description::Volume;
use crate::volume::trials;

impl Bucket<'_> {
    /// Tries the device of the bucket; fails if its file system lacks something required
    /// ([`Store::try_device`]).
    pub fn try_device(&self) -> Result<(), Fail> {
        let device = file_info::of(&self.fd).attempt("stat a bucket")?.device;
        self.store.try_device(self, device)
    }
}

impl Store {
    /// Tries whether the file system of a bucket has what is required, before anything is written
    /// there for the first time. For the root's device, nothing is done.
    pub fn try_device(&self, bucket: &Bucket<'_>, device: u64) -> Result<(), Fail> {
        if device == self.device {
            return Ok(());
        }
        let met = match self.devices.get(device) {
            Some(met) => met,
            None => self.devices.meet(device, &bucket.fd).attempt("look at a bucket's file system")?,
        };
        let volume = if met.tried { met.volume } else { self.try_staging(bucket, device, met.volume)? };
        match volume.lacking(self.needs()) {
            Some(lack) => Err(BackendError::BucketUnsuitable(lack.sentence_of_bucket()).into()),
            None => Ok(()),
        }
    }

    fn try_staging(&self, bucket: &Bucket<'_>, device: u64, known: Volume) -> Result<Volume, Fail> {
        let staging = bucket.staging_directory()?;
        // Something may be mounted inside the bucket.
        if file_info::stat(&staging)?.device != device {
            return Ok(known);
        }
        let tried = as_self(|| trials::run(&staging, &unique::name(), known)).op("test the file system")?;
        let Some(volume) = tried else { return Ok(known) };
        self.devices.keep(device, volume);
        if let Some(lack) = volume.lacking(self.needs()) {
            tracing::error!(
                path = ?bucket.place(),
                "a bucket is on another file system than the directory that is served, and cannot be written to: {}",
                lack.sentence_of_bucket()
            );
        }
        Ok(volume)
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
        let tried = |scene: &Scene| scene.store.devices.get(device).is_some_and(|device| device.tried);
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
