//! Remembers which assemblies this gateway made.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use s3_types::UploadId;

use crate::limits::OWN_ASSEMBLIES_MAX;

/// The uploads whose assemblies this gateway made, up to a limit. On a file system that machines
/// share, only the gateway that made an assembly writes to it: two machines that write to one file,
/// even to different places, may wait for each other for half a minute (MooseFS allows one writer
/// for each 64 MiB).
#[derive(Debug, Default)]
pub(crate) struct OwnAssemblies(Mutex<VecDeque<String>>);

impl OwnAssemblies {
    /// Notes that this gateway made an assembly for the upload.
    pub fn add(&self, id: &UploadId) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= OWN_ASSEMBLIES_MAX {
            ids.pop_front();
        }
        ids.push_back(id.as_str().to_owned());
    }

    /// True if this gateway made an assembly for the upload.
    pub fn has(&self, id: &UploadId) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().rev().any(|known| known == id.as_str())
    }
}
