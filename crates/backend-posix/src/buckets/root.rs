//! Trials of the root's file system, in a directory that is set aside for them.

use std::path::Path;

use super::aside::Aside;
use crate::base::options::Options;
use crate::base::unique;
use crate::tree::store::{OpenError, Store};
use crate::volume::trials::{self, Needs, Tried};

/// Finds out whether the root's file system can do what is asked of it.
pub(crate) fn try_root(store: &Store, root: &Path) -> Result<(), OpenError> {
    let Options { allow_same_names, durability, .. } = store.options;
    // Local file systems that are known by name can flush a directory.
    let flushes = durability.syncs_names() && !store.volume.kind.is_local();
    let needs = Needs { names: !allow_same_names, flushes, attributes: false };
    // Should this process be killed, the sweep removes it.
    let tried = Aside::of_nothing(store).map_or_else(trials::unless_unwritable, |aside| {
        let tried = trials::run(&aside.fd, &unique::name(), needs);
        aside.remove();
        tried
    });
    match tried {
        Ok(Tried::Lacks(lack)) => Err(OpenError::lacking(root, lack)),
        Ok(Tried::Fine | Tried::Unknown) => Ok(()),
        Err(errno) => Err(OpenError::no_trial(root, errno)),
    }
}
