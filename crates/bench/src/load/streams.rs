//! A load of readers: each reads a large object from its first byte to its last, in ranges.

use super::sets::Sets;
use crate::request::{Body, Prepared};

/// State that all readers share.
pub(crate) struct Streams {
    /// A GetObject request for the whole of each reader's object. It is presigned, so that a range
    /// may be added.
    objects: Sets,
    size: u64,
    range: u64,
}

impl Streams {
    pub fn new(objects: Sets, size: u64, range: u64) -> Self {
        Self { objects, size, range: range.max(1) }
    }
}

/// Chooses the requests of one reader. At the end of its object the reader begins again.
pub(crate) struct StreamPicker<'a> {
    streams: &'a Streams,
    reader: usize,
    at: u64,
    request: Option<Prepared>,
}

impl<'a> StreamPicker<'a> {
    pub fn new(streams: &'a Streams, reader: usize) -> Self {
        Self { streams, reader, at: 0, request: None }
    }

    pub fn next(&mut self, endpoint: usize) -> Option<&Prepared> {
        let Streams { objects, size, range } = self.streams;
        let whole = objects.get(endpoint)?.get(self.reader)?;
        let end = (self.at + range).min(*size);
        let mut head = whole.head.strip_suffix(b"\r\n")?.to_vec();
        head.extend_from_slice(
            format!("range: bytes={}-{}\r\n\r\n", self.at, end.checked_sub(1)?).as_bytes(),
        );
        let expected_bytes = Some(end - self.at);
        self.at = if end < *size { end } else { 0 };
        self.request = Some(Prepared {
            operation: whole.operation,
            head: head.into(),
            body: Body::Block(0),
            wanted: whole.wanted,
            expected_bytes,
        });
        self.request.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::set;
    use super::*;
    use crate::request::Operation;

    #[test]
    fn a_reader_goes_through_its_object_again_and_again() {
        let mut objects = set(Operation::GetObject, 3);
        objects[0][2].head = Box::from(&b"GET /b/2 HTTP/1.1\r\nhost: h\r\n\r\n"[..]);
        let streams = Streams::new(objects, 10, 4);
        let mut picker = StreamPicker::new(&streams, 2);
        for (range, length) in [("0-3", 4), ("4-7", 4), ("8-9", 2), ("0-3", 4)] {
            let request = picker.next(0).unwrap();
            let head = format!("GET /b/2 HTTP/1.1\r\nhost: h\r\nrange: bytes={range}\r\n\r\n");
            assert_eq!((&*request.head, request.expected_bytes), (head.as_bytes(), Some(length)));
        }
        assert!(StreamPicker::new(&streams, 3).next(0).is_none());
    }
}
