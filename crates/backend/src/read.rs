use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use s3_types::{ByteRange, Conditions};

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

/// Bytes of an object that lie in a file of the storage, to be read once, from the first to the
/// last, in pieces of any length. The read that reaches the end fails with
/// [`crate::BackendError::Changed`] if the file is no longer what it was: so bytes of two versions
/// are never passed off as one.
pub trait FileBody: Send + 'static {
    /// How many bytes there are.
    fn length(&self) -> u64;
    /// A file, and where in it `range` lies, if all of that can be sent from there without waiting
    /// for a disk. To send it is no read, so that the end is not to be sent.
    fn sendable(&mut self, range: Range<u64>) -> Option<(Arc<File>, Range<u64>)>;
    /// Reads from `offset` on what can be read without waiting, at most as much as there is room
    /// for. Returns how much that is; 0 if reading might wait, or fails.
    fn read_now(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
    /// Fills the buffer with what lies from `offset` on, within what the storage may have waiting
    /// for disks at a time.
    fn read(&mut self, offset: u64, buffer: BytesMut) -> FileRead;
}

/// A read of a [`FileBody`] that may wait for a disk.
pub type FileRead = BoxFuture<'static, Result<BytesMut>>;

/// An object's bytes.
pub enum ObjectBody {
    /// None.
    Empty,
    /// Small, and here already.
    Bytes(Bytes),
    /// To be read from a file.
    File(Box<dyn FileBody>),
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
