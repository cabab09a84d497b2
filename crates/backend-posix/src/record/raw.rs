//! A record as it is stored, for the tools: they must not take one that they can't understand for
//! none.

use super::codec;
use super::fields::Record;

/// A record as it is stored, wherever that is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// There is none.
    Absent,
    /// It is of a newer version, and not to be touched.
    Newer(Vec<u8>),
    /// It can't be read.
    Damaged(Vec<u8>),
    /// It can.
    Known(Vec<u8>, Box<Record>),
}

impl Raw {
    /// Tells by the bytes of a record.
    pub fn of(bytes: Vec<u8>) -> Self {
        match codec::decode(&bytes) {
            Some(record) => Self::Known(bytes, Box::new(record)),
            None if codec::is_newer(&bytes) => Self::Newer(bytes),
            None => Self::Damaged(bytes),
        }
    }

    /// What is stored, if anything is.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Absent => None,
            Self::Newer(bytes) | Self::Damaged(bytes) | Self::Known(bytes, _) => Some(bytes),
        }
    }

    /// The record, if it can be read.
    pub fn record(self) -> Option<Record> {
        match self {
            Self::Known(_, record) => Some(*record),
            Self::Absent | Self::Newer(_) | Self::Damaged(_) => None,
        }
    }
}

impl From<Option<Vec<u8>>> for Raw {
    fn from(bytes: Option<Vec<u8>>) -> Self {
        bytes.map_or(Self::Absent, Self::of)
    }
}
