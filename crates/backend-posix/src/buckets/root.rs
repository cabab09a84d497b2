//! Trials of the root's file system, in a directory that is set aside for them.

use std::path::Path;

use super::aside::Aside;
use crate::base::unique;
use crate::error::Io;
use crate::tree::store::{OpenError, Store};
use crate::volume::description::{Locks, Needs, Volume};
use crate::volume::lack::Lack;
use crate::volume::trials;

/// Finds out what the root's file system can do. An error if it lacks something required.
pub(crate) fn try_root(store: Store, root: &Path) -> Result<Store, OpenError> {
    let volume = try_volume(&store).map_err(|errno| OpenError::no_trial(root, errno))?;
    // That a root has attributes was tried before.
    if let Some(lack) = volume.lacking(Needs { attributes: false, ..store.needs() }) {
        return Err(OpenError::lacking(root, lack));
    }
    if volume.locks == Locks::Unknown {
        tracing::info!("the file system of the directory: {}", Lack::LocksElsewhere.sentence());
    }
    Ok(store.with_volume(volume))
}

/// Tries what is not known of the root's volume. If nothing can be written there, returns what is
/// known already.
fn try_volume(store: &Store) -> Io<Volume> {
    // Should this process be killed, the sweep removes it.
    let tried = Aside::of_nothing(store).map_or_else(trials::unless_unwritable, |aside| {
        let tried = trials::run(&aside.fd, &unique::name(), store.volume);
        aside.remove();
        tried
    })?;
    Ok(tried.unwrap_or(store.volume))
}
