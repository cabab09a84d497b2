//! Tells whether documents are those of the bucket that has their name, before any are removed.

use backend::{BackendError, Result};
use rustix::io::Errno;
use s3_types::BucketName;

use super::contents::Contents;
use super::place::Place;
use crate::buckets::attributes;
use crate::error::Op;
use crate::fs::file_info;
use crate::tree::store::Store;

/// What the documents under a name are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// Nothing has the name in the root.
    NoBucket,
    /// Those of the bucket that has the name.
    This,
    /// Certainly those of another one.
    Another,
    /// It cannot be told: so they stay.
    Unknown,
}

/// Looks at the documents under a name, for the holder of the lock. An error if something cannot be
/// read now.
pub(super) fn of(store: &Store, place: &Place<'_>, name: &BucketName) -> Result<Of> {
    let traits = match attributes::traits(store, name) {
        // A person may put the bucket back to where a link or a file is now.
        Err(BackendError::NoSuchBucket) => {
            return match file_info::at(&store.root, name.as_str()) {
                Err(Errno::NOENT) => Ok(Of::NoBucket),
                there => there.map(|_| Of::Unknown).op("look for a bucket"),
            };
        }
        traits => traits?,
    };
    let read = place.read(name.as_str()).op("read the documents of a bucket")?;
    let Some(Ok(contents)) = read.map(|(bytes, _)| Contents::unpack(&bytes)) else { return Ok(Of::Unknown) };
    let birth = place.birth()?;
    Ok(if contents.binding.is_of(&traits, birth) {
        Of::This
    } else if contents.binding.is_of_another(&traits, birth) {
        Of::Another
    } else {
        Of::Unknown
    })
}
