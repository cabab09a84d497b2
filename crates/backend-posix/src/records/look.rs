//! Looks at a record before its file is opened, and again after.
//!
//! The name by which a record is found may pass to another file between the reading of the record
//! and the opening of the file. A record that was the same before the name was looked up and after
//! the file was opened is the file's:
//!
//! - *A sidecar* begins with a number that never repeats, so that equal contents mean that no
//!   writer came in between. Then the file is one of those that the sidecar describes, and its
//!   stamp and inode show which (decision 0009).
//! - *An attribute on FUSE* may be read by the name of an open file, which another file may have by
//!   now. So it is read through the held name, which another file can no longer take.
//! - *Any other attribute* is read through the open file alone, and is the file's: both looks are
//!   skipped.

use std::path::Path;

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::sidecar::Sidecar;
use crate::base::options::Metadata;
use crate::error::{Fail, Io, Op};
use crate::fs::descriptor;
use crate::fs::file_info::{self, FileInfo};
use crate::record::{self, Kind, Reading};
use crate::tree::store::Store;

/// The record of a path, as it was before the path was looked up.
#[must_use]
pub(crate) struct Look<'s> {
    store: &'s Store,
    before: Before,
}

enum Before {
    /// The record can be read through the open file, without another look.
    Unneeded,
    /// The sidecar before the path was looked up, if there was one.
    Sidecar(Option<Sidecar>),
}

/// The attribute of a file whose name is held, if it has to be read before the file is opened.
pub(crate) struct HeldAttribute(Option<Io<Option<Vec<u8>>>>);

impl<'s> Look<'s> {
    /// Looks at the record of a path below `directory`, before anything else looks the path up.
    pub fn before(store: &'s Store, directory: impl AsFd, path: &str) -> Io<Self> {
        let before = match store.metadata() {
            Metadata::Xattr => Before::Unneeded,
            Metadata::Sidecar => Before::Sidecar(Sidecar::read(directory, path)?),
        };
        Ok(Self { store, before })
    }

    /// True if the result is valid only for a name that is looked up after it.
    pub fn is_of_name(&self) -> bool {
        matches!(self.before, Before::Sidecar(_))
    }

    /// Looks at the attribute of the file that an `O_PATH` descriptor holds, before it is opened.
    pub fn held(&self, place: &OwnedFd) -> HeldAttribute {
        let asks = matches!(self.before, Before::Unneeded) && self.store.volume_at(place).asks_by_name;
        HeldAttribute(asks.then(|| record::raw_of_place(place)))
    }

    /// Looks again, after the file at the path was opened; `info` describes the file. Returns its
    /// record, if that did not change in between.
    pub fn after<R: Kind>(
        self,
        held: HeldAttribute,
        (directory, path): (impl AsFd, &str),
        (file, info): (&OwnedFd, &FileInfo),
    ) -> Result<Reading<R>, Fail> {
        let changed = || Err(Fail::lost("read a record that changed"));
        match (self.before, held.0) {
            (Before::Sidecar(before), _) => {
                if Sidecar::read(directory, path).attempt("read a record")? != before {
                    return changed();
                }
                let Some(sidecar) = before else { return Ok(Reading::Nothing) };
                let identity = self.store.identity(file, info);
                Ok(sidecar.recognize(identity, || file_info::born_ns(file)).record(Some(identity)))
            }
            (Before::Unneeded, None) => record::peek(file).attempt("read a record"),
            // There is no /proc by which to ask.
            (Before::Unneeded, Some(Err(Errno::NOENT))) if !Path::new(descriptor::DIRECTORY).exists() => {
                record::peek(file).attempt("read a record")
            }
            (Before::Unneeded, Some(before)) => {
                let before = before.attempt("read a record")?;
                let after = record::raw_attribute(file).attempt("read a record")?;
                if before != after {
                    return changed();
                }
                Ok(after.map_or(Reading::Nothing, |bytes| record::from_bytes(&bytes).into()))
            }
        }
    }
}
