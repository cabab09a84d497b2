//! The packed form of a record: a version byte, then `tag (1 byte), length (varint), value` for
//! each field.
//!
//! Numbers are LEB128 varints unless said otherwise. Each field occurs at most once. A reader skips
//! tags that it does not know and keeps them, so that an older gateway does not lose what a newer
//! one wrote. A critical field ([`tag::CRITICAL`]) is one without which an older gateway would
//! serve something wrong, or replace or delete what must stay. A record with one that is not known
//! closes its object: a gateway lists the file, and refuses every other request for it. So does a
//! record of a later version, and a damaged one that has a critical field. A damaged record of
//! version 1 can't have had one: its file counts as foreign. But it may have said which version of
//! its key the file is, so that where versions are kept, it closes its object, too.
//!
//! Whoever can write a file can write its record. What a short record can expand to is limited
//! (`limits`), and a record beyond that is damaged.

use std::path::PathBuf;

use backend::BackendError;

use super::input::Input;
use super::kind::{Kind, Taken};
use super::parts::{List, Packed};
use super::tag;
use super::values::{CRITICAL_VERSION, VERSION, field, get_stamp, pack_stamp, text};
use crate::base::seldom::Seldom;
use crate::fs::file_info::Stamp;
use crate::limits::{CLOSED_LOGGED, RECORD_PARTS_BYTES_MAX, RECORD_REST_BYTES_MAX};

/// The reason why a record can't be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The record is damaged.
    Damaged,
    /// The record is of a newer version, or has an unknown critical field: it may forbid that its
    /// object is read, replaced or deleted.
    Closed,
}

/// The result of reading a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading<R> {
    /// The record does not exist.
    Nothing,
    /// The record is damaged; see [`Unread::Damaged`].
    Damaged,
    /// The object is closed; see [`Unread::Closed`].
    Closed,
    Known(R),
}

impl<R> Reading<R> {
    /// Returns the record; `None` also for a record that closes its object.
    pub fn known(self) -> Option<R> {
        match self {
            Self::Known(record) => Some(record),
            Self::Nothing | Self::Damaged | Self::Closed => None,
        }
    }

    /// Returns the record of a version, for a caller that will read or change it. A damaged record
    /// is an error, too, which is logged with the object's place: it may have said which version
    /// of its key the file is.
    pub fn opened_version(self, place: impl Fn() -> PathBuf) -> Result<Option<R>, BackendError> {
        static LOGGED: Seldom = Seldom::new(CLOSED_LOGGED);
        if matches!(self, Self::Damaged) {
            if LOGGED.is_due() {
                tracing::error!(
                    path = ?place(),
                    "the record of this object is damaged, so that it is not known which version of its key the \
                     file is: requests that depend on that are refused; slipway fsck lists all such objects, and \
                     with --repair gives the current ones new versions"
                );
            }
            return Err(BackendError::DamagedRecord);
        }
        self.opened(place)
    }

    /// Returns the record, for a caller that will read or change the object; `None` if it is
    /// missing or damaged. A record that closes its object is an error, which is logged with the
    /// object's place.
    pub fn opened(self, place: impl FnOnce() -> PathBuf) -> Result<Option<R>, BackendError> {
        static LOGGED: Seldom = Seldom::new(CLOSED_LOGGED);
        match self {
            Self::Known(record) => Ok(Some(record)),
            Self::Nothing | Self::Damaged => Ok(None),
            Self::Closed => {
                if LOGGED.is_due() {
                    tracing::warn!(
                        path = ?place(),
                        "the record of this object was written by a newer version of Slipway, or has a field that is \
                         marked as required and that this version does not know: the object is neither served nor \
                         changed by this version; slipway fsck lists all such objects"
                    );
                }
                Err(BackendError::NewerRecord)
            }
        }
    }

    /// Maps the record of [`Reading::Known`] to another one, or to nothing.
    pub fn and_then<S>(self, f: impl FnOnce(R) -> Option<S>) -> Reading<S> {
        match self {
            Self::Known(record) => f(record).map_or(Reading::Nothing, Reading::Known),
            Self::Nothing => Reading::Nothing,
            Self::Damaged => Reading::Damaged,
            Self::Closed => Reading::Closed,
        }
    }
}

impl<R> From<Result<R, Unread>> for Reading<R> {
    fn from(decoded: Result<R, Unread>) -> Self {
        match decoded {
            Ok(record) => Self::Known(record),
            Err(Unread::Damaged) => Self::Damaged,
            Err(Unread::Closed) => Self::Closed,
        }
    }
}

/// Packs a record.
pub(crate) fn encode<R: Kind>(record: &R) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(VERSION);
    record.put(&mut out);
    for (tag, value) in record.unknown() {
        field(&mut out, *tag, value);
    }
    out
}

/// Returns the version of a packed record, if it is one that this program does not know.
pub(crate) fn unknown_version(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied().filter(|version| ![VERSION, CRITICAL_VERSION].contains(version))
}

/// True for a record without fields.
pub(crate) fn is_empty<R: Kind>(record: &R) -> bool {
    encode(record).len() == 1
}

/// Unpacks a record.
pub(crate) fn decode<R: Kind>(bytes: &[u8]) -> Result<R, Unread> {
    let mut record = R::blank();
    if let Some(parts) = fill(&mut record, bytes)? {
        record.take_parts(parts.unpack().ok_or(Unread::Damaged)?);
    }
    Ok(record)
}

/// Unpacks a record as [`decode`] does, but without the list of parts, which may be most of it.
pub(crate) fn decode_brief<R: Kind>(bytes: &[u8]) -> Result<R, Unread> {
    let mut record = R::blank();
    fill(&mut record, bytes)?;
    Ok(record)
}

/// The error if there are more parts than the caller unpacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyParts;

/// Unpacks a record as [`decode`] does, for a thread that must not be delayed.
pub(super) fn decode_at_once<R: Kind>(bytes: &[u8], parts_max: usize) -> Result<Reading<R>, TooManyParts> {
    let mut record = R::blank();
    match fill(&mut record, bytes) {
        Ok(None) => {}
        Ok(Some(parts)) if parts.count > parts_max => return Err(TooManyParts),
        Ok(Some(parts)) => match parts.unpack() {
            Some(parts) => record.take_parts(parts),
            None => return Ok(Reading::Damaged),
        },
        Err(unread) => return Ok(Err(unread).into()),
    }
    Ok(Reading::Known(record))
}

/// Unpacks everything except the parts, which are only checked. It fills `record` in place: moving
/// it would take most of the time.
fn fill<'b, R: Kind>(record: &mut R, bytes: &'b [u8]) -> Result<Option<Packed<'b>>, Unread> {
    let fields = Fields::of(bytes)?;
    let (is_critical, damaged) = (fields.is_critical, fields.damaged());
    let (mut parts, mut rest_bytes, mut critical) = (None, 0, false);
    for field in fields {
        let (tag, value) = field?;
        if tag == tag::PARTS && R::HAS_PARTS && value.len() <= RECORD_PARTS_BYTES_MAX {
            match List::of(value).ok_or(damaged)? {
                List::Known(list) => parts = Some(list),
                List::NotUnderstood => record.add_unknown(tag, value),
            }
            continue;
        }
        rest_bytes += value.len();
        if rest_bytes > RECORD_REST_BYTES_MAX {
            return Err(damaged);
        }
        match record.take(tag, value).ok_or(damaged)? {
            Taken::Yes => critical |= tag & tag::CRITICAL != 0,
            Taken::No if tag & tag::CRITICAL == 0 => record.add_unknown(tag, value),
            Taken::No | Taken::Closing => return Err(Unread::Closed),
        }
    }
    let adds_up = match (&parts, record.stamp()) {
        (Some(parts), Some(stamp)) => parts.total_bytes == stamp.size_bytes,
        _ => true,
    };
    if critical != is_critical {
        return Err(Unread::Closed);
    }
    if adds_up && record.is_within_limits() { Ok(parts) } else { Err(damaged) }
}

/// The fields of a record of any kind.
struct Fields<'b> {
    input: Input<'b>,
    /// The tags that have occurred so far: one bit for each tag.
    met: [u64; 4],
    /// True if a critical field has occurred.
    is_critical: bool,
}

impl<'b> Fields<'b> {
    fn of(bytes: &'b [u8]) -> Result<Self, Unread> {
        let (version, fields) = bytes.split_first().ok_or(Unread::Damaged)?;
        let is_critical = match *version {
            VERSION => false,
            CRITICAL_VERSION => true,
            0 => return Err(Unread::Damaged),
            _ => return Err(Unread::Closed),
        };
        Ok(Self { input: Input(fields), met: [0; 4], is_critical })
    }

    /// Returns the error for a damaged record. If it has a critical field it closes its object,
    /// since another critical field may be the unreadable one.
    fn damaged(&self) -> Unread {
        if self.is_critical { Unread::Closed } else { Unread::Damaged }
    }

    /// Returns the next field; `None` if it is damaged, or if its tag has already occurred.
    fn read(&mut self) -> Option<(u8, &'b [u8])> {
        let tag = self.input.byte()?;
        let (bits, bit) = (&mut self.met[usize::from(tag >> 6)], 1 << (tag & 63));
        if *bits & bit != 0 {
            return None;
        }
        *bits |= bit;
        Some((tag, self.input.bytes()?))
    }

    /// Returns the value of a field, if the record has it, and all fields are well-formed.
    fn find(self, wanted: u8) -> Result<Option<&'b [u8]>, Unread> {
        let mut found = None;
        for field in self {
            let (tag, value) = field?;
            if tag == wanted {
                found = Some(value);
            }
        }
        Ok(found)
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u8, &'b [u8]), Unread>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.input.0.is_empty() {
            return None;
        }
        Some(self.read().ok_or(self.damaged()))
    }
}

/// A packed record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded(pub Vec<u8>);

impl Encoded {
    /// Packs a record.
    pub fn of<R: Kind>(record: &R) -> Self {
        Self(encode(record))
    }

    /// Returns the record with the stamp of another file.
    pub fn with_stamp(&self, stamp: Stamp) -> Result<Self, Unread> {
        replaced(&self.0, (tag::STAMP, pack_stamp(stamp).as_deref()), &[]).map(Self)
    }
}

/// Returns the stamp in a record of any kind.
pub(crate) fn stamp_of(bytes: &[u8]) -> Result<Option<Stamp>, Unread> {
    let value = Fields::of(bytes)?.find(tag::STAMP)?;
    value.map(|value| get_stamp(value).ok_or(Unread::Damaged)).transpose()
}

/// Returns the path in an overflow file, which is that of the file or directory that it was written
/// for. Fails with [`Unread::Closed`] for a record with a critical field; the record that names the
/// file has this field as well.
pub(crate) fn path_of(bytes: &[u8]) -> Result<Option<String>, Unread> {
    if Fields::of(bytes)?.is_critical {
        return Err(Unread::Closed);
    }
    let path = match Fields::of(bytes)?.find(tag::PATH)? {
        // As earlier builds wrote it.
        None => Fields::of(bytes)?.find(tag::KEY)?,
        path => path,
    };
    path.map(|value| text(value).ok_or(Unread::Damaged)).transpose()
}

/// Makes the contents of an overflow file from the record `bytes`, for the file or directory at
/// `path`. Without a path, it makes the record in the form in which it is read.
pub(crate) fn with_path(bytes: &[u8], path: Option<&str>) -> Result<Encoded, Unread> {
    replaced(bytes, (tag::PATH, path.map(str::as_bytes)), &[tag::KEY, tag::UNSURE]).map(Encoded)
}

/// Makes the contents of an overflow file for which a search at `time_ns` could not decide whether
/// an object names it.
pub(crate) fn with_doubt(bytes: &[u8], time_ns: i64) -> Result<Encoded, Unread> {
    replaced(bytes, (tag::UNSURE, Some(&time_ns.to_le_bytes())), &[]).map(Encoded)
}

/// Returns the time at which a search last could not decide whether an object names the overflow
/// file with these contents.
pub(crate) fn doubt_of(bytes: &[u8]) -> Option<i64> {
    let value = Fields::of(bytes).ok()?.find(tag::UNSURE).ok()??;
    value.try_into().ok().map(i64::from_le_bytes)
}

/// Replaces the value of a field, which is placed before the fields with higher tags, and removes
/// the fields `gone`. All others stay, whether known or not.
fn replaced(bytes: &[u8], (wanted, mut value): (u8, Option<&[u8]>), gone: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut out = vec![VERSION];
    for field_of_old in Fields::of(bytes)? {
        let (tag, old) = field_of_old?;
        if let Some(value) = value.take_if(|_| tag >= wanted) {
            field(&mut out, wanted, value);
        }
        if tag != wanted && !gone.contains(&tag) {
            field(&mut out, tag, old);
        }
    }
    if let Some(value) = value {
        field(&mut out, wanted, value);
    }
    Ok(out)
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
