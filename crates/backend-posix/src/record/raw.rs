//! Records in their stored form, for tools. These must not mistake a record that they can't
//! understand for a missing one.

use super::codec::{self, Unread};
use super::kind::Kind;

/// A record in its stored form, from an attribute or a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Raw<R> {
    /// The record does not exist.
    Absent,
    /// The record is of a newer version, and must not be changed.
    Newer(Vec<u8>),
    /// The record can't be read.
    Damaged(Vec<u8>),
    /// The record can be read.
    Known(Vec<u8>, Box<R>),
}

impl<R: Kind> Raw<R> {
    /// Reads the bytes of a record.
    pub fn of(bytes: Vec<u8>) -> Self {
        match codec::decode(&bytes) {
            Ok(record) => Self::Known(bytes, Box::new(record)),
            Err(Unread::Closed) => Self::Newer(bytes),
            Err(Unread::Damaged) => Self::Damaged(bytes),
        }
    }

    /// Returns the stored bytes, if there are any.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => None,
            Self::Newer(bytes) | Self::Damaged(bytes) | Self::Known(bytes, _) => Some(bytes),
        }
    }

    /// Returns the record, if it can be read.
    pub fn record(self) -> Option<R> {
        match self {
            Self::Known(_, record) => Some(*record),
            Self::Absent | Self::Newer(_) | Self::Damaged(_) => None,
        }
    }
}

impl<R: Kind> From<Option<Vec<u8>>> for Raw<R> {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(Self::Absent, Self::of)
    }
}
