use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use s3_types::{ByteRange, Conditions};
use tokio::sync::Semaphore;

use crate::error::Result;
use crate::object::{ObjectAttributes, ObjectRef};

/// Which bytes of an object are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadSelector {
    /// All.
    #[default]
    Whole,
    /// A range; all, where [`Conditions::if_range`](s3_types::Conditions::if_range) does not hold,
    /// or where some last bytes of none are wanted.
    Range(ByteRange),
    /// One part by its number. An object that was not uploaded in parts is its own part 1.
    Part(u32),
}

/// A read of an object, or of its attributes.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// Which bytes of it.
    pub selector: ReadSelector,
    /// What it must meet.
    pub conditions: &'a Conditions,
}

/// Size and time of a file when its attributes were read; a reader compares them again at the end,
/// so that bytes of two versions of a file are never passed off as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// `st_size`.
    pub size_bytes: u64,
    /// `st_mtime` in nanoseconds.
    pub modified_ns: i128,
}

/// An object's bytes.
pub enum ObjectBody {
    /// None.
    Empty,
    /// Small, and here already.
    Bytes(Bytes),
    /// To be read from a file (blocking).
    File {
        /// Open for reading.
        file: Arc<File>,
        /// Which bytes.
        range: Range<u64>,
        /// What the file must still look like once they were read.
        stamp: FileStamp,
        /// A read that may wait for a disk takes one of these while it does: so many threads may do
        /// so for one bucket.
        turns: Arc<Semaphore>,
    },
    /// From elsewhere.
    Stream(BoxStream<'static, Result<Bytes>>),
}

/// An object's attributes and bytes.
pub struct ObjectRead {
    /// Of the whole object.
    pub attributes: ObjectAttributes,
    /// The bytes chosen; `None` where the whole object was.
    pub range: Option<Range<u64>>,
    /// The bytes.
    pub body: ObjectBody,
}

impl ObjectRead {
    /// How many bytes were chosen: of a read with a body, those that it has.
    pub fn length(&self) -> u64 {
        self.range.as_ref().map_or(self.attributes.size_bytes, |range| range.end - range.start)
    }
}
