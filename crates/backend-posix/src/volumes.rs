//! The room on the file systems that a tree is on: DIR's own, and those that are mounted as
//! buckets.

use std::path::PathBuf;

use backend::VolumeStatistics;

use crate::error::Io;
use crate::presence::mount_points;
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;

/// DIR's own.
const OWN: &str = ".";

/// What each of them has. Those that don't tell are left out.
pub(crate) fn all(store: &Store) -> Vec<VolumeStatistics> {
    let mounted = mounted_in(store);
    let names = [OWN].into_iter().chain(mounted.iter().map(String::as_str));
    names.filter_map(|name| of(store, name).ok()).collect()
}

/// Whether each of them answers, and has the room that the options want; the reason if not.
pub(crate) fn ready(store: &Store) -> Result<(), String> {
    let wanted = store.options.ready_free_bytes;
    for name in [OWN].into_iter().chain(mounted_in(store).iter().map(String::as_str)) {
        match of(store, name) {
            Ok(volume) if volume.bytes_free < wanted => {
                return Err(format!("{name}: {} bytes are free, and {wanted} are wanted", volume.bytes_free));
            }
            Ok(_) => {}
            Err(errno) => return Err(format!("{name}: {errno}")),
        }
    }
    Ok(())
}

/// The names in DIR that something is mounted at.
fn mounted_in(store: &Store) -> Vec<String> {
    let points = mount_points();
    let inside = |point: &PathBuf| {
        let name = point.file_name()?.to_str()?;
        // Our own, and directories beside the buckets, are no volumes of objects.
        (point.parent() == Some(store.presence.place()) && !name.starts_with('.')).then(|| name.to_owned())
    };
    let mut names: Vec<_> = points.iter().filter_map(inside).collect();
    names.sort();
    // Something may be mounted over something else.
    names.dedup();
    names
}

fn of(store: &Store, name: &str) -> Io<VolumeStatistics> {
    let opened = resolve::plain(&store.root, name, DIRECTORY)?;
    let room = rustix::fs::fstatvfs(opened)?;
    Ok(VolumeStatistics {
        name: name.to_owned(),
        bytes: room.f_blocks.saturating_mul(room.f_frsize),
        bytes_free: room.f_bavail.saturating_mul(room.f_frsize),
        files: room.f_files,
        files_free: room.f_favail,
    })
}
