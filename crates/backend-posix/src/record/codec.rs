//! The packed form of a record: a version byte, then `tag (1 byte), length (varint), value` for
//! each field.
//!
//! Numbers are LEB128 varints unless said otherwise. Each field is there once at most. A reader
//! skips tags it does not know and keeps them, so that an older gateway does not lose what a newer
//! one wrote. Without a critical field ([`tag::CRITICAL`]), an older one would serve something
//! wrong, or replace or delete what has to stay. A record with one that is not understood closes
//! its object: a gateway lists the file, and refuses all else of it. So does a record of a later
//! version, and one that has such a field and is damaged. A damaged one of version 1 can't have
//! held anything of that kind: its file counts as a foreign one.
//!
//! Whoever can write a file can write its record. What a short one makes of itself is bounded
//! (`limits`), and one beyond that is damaged.

use std::path::PathBuf;

use backend::BackendError;

use super::input::Input;
use super::kind::{Kind, Taken};
use super::parts::{List, Packed};
use super::tag;
use super::values::{CRITICAL_VERSION, VERSION, field, get_stamp, pack_stamp, text};
use crate::base::seldom::Seldom;
use crate::fs::file_info::Stamp;
use crate::limits::{CLOSED_TOLD, RECORD_PARTS_BYTES_MAX, RECORD_REST_BYTES_MAX};

/// Why a record is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is damaged.
    Damaged,
    /// It is of a newer version, or has a critical field that is not understood: it may keep its
    /// object from being read, replaced or deleted.
    Closed,
}

/// What a place has of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading<R> {
    /// Nothing, or what is damaged.
    Nothing,
    /// See [`Unread::Closed`].
    Closed,
    Known(R),
}

impl<R> Reading<R> {
    /// The record; of one that closes its object, nothing.
    pub fn known(self) -> Option<R> {
        match self {
            Self::Known(record) => Some(record),
            Self::Nothing | Self::Closed => None,
        }
    }

    /// The record, for who is to read or change the object. The operator is told of one that is
    /// closed, and where it is.
    pub fn opened(self, place: impl FnOnce() -> PathBuf) -> Result<Option<R>, BackendError> {
        static TOLD: Seldom = Seldom::new(CLOSED_TOLD);
        match self {
            Self::Known(record) => Ok(Some(record)),
            Self::Nothing => Ok(None),
            Self::Closed => {
                if TOLD.is_due() {
                    tracing::warn!(
                        path = ?place(),
                        "its record is of a newer version of Slipway, or has to be understood and is not: it is neither served nor \
                         changed; slipway fsck lists all such"
                    );
                }
                Err(BackendError::NewerRecord)
            }
        }
    }

    /// Takes the record that [`Reading::Known`] has for another, or for nothing.
    pub fn and_then<S>(self, f: impl FnOnce(R) -> Option<S>) -> Reading<S> {
        match self {
            Self::Known(record) => f(record).map_or(Reading::Nothing, Reading::Known),
            Self::Nothing => Reading::Nothing,
            Self::Closed => Reading::Closed,
        }
    }
}

impl<R> From<Result<R, Unread>> for Reading<R> {
    fn from(decoded: Result<R, Unread>) -> Self {
        match decoded {
            Ok(record) => Self::Known(record),
            Err(Unread::Damaged) => Self::Nothing,
            Err(Unread::Closed) => Self::Closed,
        }
    }
}

/// Packs a record.
pub(crate) fn encode<R: Kind>(record: &R) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(VERSION);
    record.put(&mut out);
    for (tag, value) in &record.unknown().0 {
        field(&mut out, *tag, value);
    }
    out
}

/// True of a record without fields.
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

/// [`decode`] without the list of parts, which may be by far the most of it.
pub(crate) fn decode_brief<R: Kind>(bytes: &[u8]) -> Result<R, Unread> {
    let mut record = R::blank();
    fill(&mut record, bytes)?;
    Ok(record)
}

/// There are more parts than are to be unpacked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyParts;

/// [`decode`] for a thread that must not be held up.
pub(super) fn decode_at_once<R: Kind>(bytes: &[u8], parts_max: usize) -> Result<Reading<R>, TooManyParts> {
    let mut record = R::blank();
    match fill(&mut record, bytes) {
        Ok(None) => {}
        Ok(Some(parts)) if parts.count > parts_max => return Err(TooManyParts),
        Ok(Some(parts)) => match parts.unpack() {
            Some(parts) => record.take_parts(parts),
            None => return Ok(Reading::Nothing),
        },
        Err(unread) => return Ok(Err(unread).into()),
    }
    Ok(Reading::Known(record))
}

/// Unpacks all but the parts, which are only looked through. In place: most of what decoding takes
/// would be moving the record.
fn fill<'b, R: Kind>(record: &mut R, bytes: &'b [u8]) -> Result<Option<Packed<'b>>, Unread> {
    let fields = Fields::of(bytes)?;
    let (is_critical, damaged) = (fields.is_critical, fields.damaged());
    let (mut parts, mut rest_bytes, mut critical) = (None, 0, false);
    for field in fields {
        let (tag, value) = field?;
        if tag == tag::PARTS && R::HAS_PARTS && value.len() <= RECORD_PARTS_BYTES_MAX {
            match List::of(value).ok_or(damaged)? {
                List::Known(list) => parts = Some(list),
                List::NotUnderstood => record.unknown_mut().0.push((tag, value.into())),
            }
            continue;
        }
        rest_bytes += value.len();
        if rest_bytes > RECORD_REST_BYTES_MAX {
            return Err(damaged);
        }
        match record.take(tag, value).ok_or(damaged)? {
            Taken::Yes => critical |= tag & tag::CRITICAL != 0,
            Taken::No if tag & tag::CRITICAL == 0 => record.unknown_mut().0.push((tag, value.into())),
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

/// The fields of a record, whatever its kind.
struct Fields<'b> {
    input: Input<'b>,
    /// A bit for each tag.
    met: [u64; 4],
    /// There is a critical one.
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

    /// What a damaged one is: what closes its object may be there, and not be read.
    fn damaged(&self) -> Unread {
        if self.is_critical { Unread::Closed } else { Unread::Damaged }
    }

    /// The next field; `None` if it is damaged, or of a tag that was met.
    fn read(&mut self) -> Option<(u8, &'b [u8])> {
        let tag = self.input.byte()?;
        let (bits, bit) = (&mut self.met[usize::from(tag >> 6)], 1 << (tag & 63));
        if *bits & bit != 0 {
            return None;
        }
        *bits |= bit;
        Some((tag, self.input.bytes()?))
    }

    /// The value of one field, if it is there and all others are well-formed.
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

/// A record as it is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoded(pub Vec<u8>);

impl Encoded {
    /// Packs it.
    pub fn of<R: Kind>(record: &R) -> Self {
        Self(encode(record))
    }

    /// With the stamp of another file.
    pub fn with_stamp(&self, stamp: Stamp) -> Result<Self, Unread> {
        replaced(&self.0, tag::STAMP, pack_stamp(stamp).as_deref()).map(Self)
    }
}

/// The stamp in a record of any kind.
pub(crate) fn stamp_of(bytes: &[u8]) -> Result<Option<Stamp>, Unread> {
    let value = Fields::of(bytes)?.find(tag::STAMP)?;
    value.map(|value| get_stamp(value).ok_or(Unread::Damaged)).transpose()
}

/// The path in an overflow file, of the file or directory whose record it is. Not of one with a
/// critical field: the record that names it has that too.
pub(crate) fn path_of(bytes: &[u8]) -> Result<Option<String>, Unread> {
    let fields = Fields::of(bytes)?;
    if fields.is_critical {
        return Err(Unread::Closed);
    }
    fields.find(tag::KEY)?.map(|value| text(value).ok_or(Unread::Damaged)).transpose()
}

/// What an overflow file has for the file or directory at a path; what is read of it without one.
pub(crate) fn with_path(bytes: &[u8], path: Option<&str>) -> Result<Encoded, Unread> {
    replaced(bytes, tag::KEY, path.map(str::as_bytes)).map(Encoded)
}

/// A record with another value for a field, which stands before those with higher tags. All others
/// are as they were, understood or not.
fn replaced(bytes: &[u8], wanted: u8, value: Option<&[u8]>) -> Result<Vec<u8>, Unread> {
    let mut value = value;
    let mut out = vec![VERSION];
    for field_of_old in Fields::of(bytes)? {
        let (tag, old) = field_of_old?;
        if let Some(value) = value.take_if(|_| tag >= wanted) {
            field(&mut out, wanted, value);
        }
        if tag != wanted {
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
