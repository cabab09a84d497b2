//! What shows that a file was changed in place, as by a person who restores it with `cp`: the time
//! of the directory does not.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;

use super::{TreeDocuments, guard, is_passing};
use crate::error::Io;
use crate::fs::file_info::{self, FileInfo};
use crate::limits::{STAMPS_LOOKED_AT_MAX, STAMPS_SEEN_MAX};
use crate::tree::documents::{OF_IDENTITIES, Place};

/// The documents' files, as they were when they were looked at.
#[derive(Debug, Clone)]
pub(super) struct Stamps {
    /// The directory in which they were found: device, inode, time.
    directory: (u64, u64, i128),
    /// The names and stamps.
    files: Vec<(String, String)>,
    /// When some of them were looked at.
    looked: Instant,
    /// The one that is looked at next.
    next: usize,
}

impl TreeDocuments {
    /// Writes the stamps of all files in a directory whose time shows each change of its names.
    /// They are looked at once a second, [`STAMPS_LOOKED_AT_MAX`] of them at most.
    pub(super) fn write_stamps(&self, mark: &mut String, fd: Arc<OwnedFd>, info: &FileInfo) -> Io<()> {
        let inode = self.store.lasting_inode(&fd, info).unwrap_or(0);
        let place = || Place::vouched(&self.store, OF_IDENTITIES, fd);
        let directory = (info.device, inode, info.changed_ns);
        let known = guard(&self.stamps).clone().filter(|known| known.directory == directory);
        let stamps = match known {
            Some(known) if known.looked.elapsed() < STAMPS_SEEN_MAX => known,
            Some(known) => self.look_at_some(known, &place()?)?,
            None => self.look_at_all(directory, &place()?)?,
        };
        for (file, stamp) in &stamps.files {
            // Writing to a string does not fail.
            let _ = write!(mark, " {file} {stamp}");
        }
        *guard(&self.stamps) = Some(stamps);
        Ok(())
    }

    fn look_at_all(&self, directory: (u64, u64, i128), place: &Place<'_>) -> Io<Stamps> {
        let looked = Instant::now();
        let stamped = |file: String| self.stamp_of(place, &file).map(|stamp| (file, stamp));
        let files = Self::files_in(place)?.into_iter().map(stamped).collect::<Io<_>>()?;
        Ok(Stamps { directory, files, looked, next: 0 })
    }

    fn look_at_some(&self, mut stamps: Stamps, place: &Place<'_>) -> Io<Stamps> {
        stamps.looked = Instant::now();
        let count = stamps.files.len();
        for _ in 0..count.min(STAMPS_LOOKED_AT_MAX) {
            let next = stamps.next % count;
            if let Some((file, stamp)) = stamps.files.get_mut(next) {
                *stamp = self.stamp_of(place, file)?;
            }
            stamps.next = next + 1;
        }
        Ok(stamps)
    }

    /// Its inode, times and size; or its tag, if a later change might not show in these.
    fn stamp_of(&self, place: &Place<'_>, file: &str) -> Io<String> {
        let began_ns = file_info::files_now_ns();
        let info = match self.info_at(place, file) {
            Ok(info) => info,
            Err(errno) if is_passing(errno) => return Err(errno),
            Err(Errno::NOENT) => return Ok("none".to_owned()),
            Err(_) => return Ok("unreadable".to_owned()),
        };
        if self.store.is_settled(&place.fd, &info, began_ns) {
            let inode = self.store.lasting_inode(place.fd.as_fd(), &info).unwrap_or(0);
            let (size, modified_ns) = (info.stamp.size_bytes, info.stamp.modified_ns);
            return Ok(format!("{inode:x} {} {modified_ns} {size}", info.changed_ns));
        }
        Ok(self.tag_of(place, file)?.map_or_else(|| "none".to_owned(), |tag| tag.as_str().to_owned()))
    }
}
