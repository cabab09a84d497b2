use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use s3_types::{ByteRange, Conditions, ObjectLock};

use crate::error::Result;
use crate::object::{ObjectAttributes, ObjectRef};
use crate::object_check::Check;

/// The bytes of an object to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadSelector {
    /// The selection of all bytes.
    #[default]
    Whole,
    /// A range of bytes. All bytes are selected if
    /// [`Conditions::if_range`](s3_types::Conditions::if_range) does not hold, or if the request
    /// asks for the last bytes of an empty object.
    Range(ByteRange),
    /// One part, by its number. An object that was not uploaded in parts is its own part 1.
    Part(u32),
}

/// A request to read an object, or its attributes.
#[derive(Debug, Clone, Copy)]
pub struct ReadRequest<'a> {
    /// The object.
    pub object: ObjectRef<'a>,
    /// The bytes to read.
    pub selector: ReadSelector,
    /// Conditions on the object.
    pub conditions: &'a Conditions,
    /// True if the answer is to have the version's lock.
    pub with_lock: bool,
    /// The check of the version that is read.
    pub check: Check<'a>,
}

/// Bytes of an object in a file of the storage, which are read once, from the first to the last, in
/// pieces of any length. The read that reaches the end fails with [`crate::BackendError::Changed`]
/// if the file has changed. So bytes of two versions are never taken for one object.
pub trait FileBody: Send + 'static {
    /// Returns the number of bytes.
    fn length(&self) -> u64;
    /// Returns the file, and the position of `range` in it, if all of the range can be sent without
    /// waiting for a disk. Sending does not read the bytes and so detects no change: the end must
    /// not be sent in this way.
    fn sendable(&mut self, range: Range<u64>) -> Option<(Arc<File>, Range<u64>)>;
    /// Reads bytes from `offset` on that can be read without waiting, at most as many as fit.
    /// Returns how many were read; 0 if reading might wait, or fails.
    fn read_now(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize>;
    /// Fills the buffer with the bytes from `offset` on. The storage limits how many such reads
    /// wait for disks at a time.
    fn read(&mut self, offset: u64, buffer: BytesMut) -> FileRead;
}

/// A read of a [`FileBody`] that may wait for a disk.
pub type FileRead = BoxFuture<'static, Result<BytesMut>>;

/// An object's bytes.
pub enum ObjectBody {
    /// No bytes.
    Empty,
    /// Bytes that are already in memory.
    Bytes(Bytes),
    /// Bytes in a file.
    File(Box<dyn FileBody>),
    /// Bytes from another source.
    Stream(BoxStream<'static, Result<Bytes>>),
}

/// An object's attributes and bytes.
pub struct ObjectRead {
    /// The attributes of the whole object.
    pub attributes: ObjectAttributes,
    /// The lock of the version, if the request asks for it.
    pub lock: ObjectLock,
    /// The range of the bytes; `None` for the whole object.
    pub range: Option<Range<u64>>,
    /// The bytes.
    pub body: ObjectBody,
}

impl ObjectRead {
    /// Returns the number of selected bytes, which is the length of the body, if there is one.
    pub fn length(&self) -> u64 {
        self.range.as_ref().map_or(self.attributes.size_bytes, |range| range.end - range.start)
    }
}
