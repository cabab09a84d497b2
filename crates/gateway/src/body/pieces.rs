//! Documents with many entries, written while they are sent.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_wire::xml::Writer;

use super::ResponseBody;
use crate::limits::DOCUMENT_PIECE_BYTES;

/// The document that `writer` began, with `entries`. One that turns out short is sent as a whole, with its length.
pub fn document<T>(
    writer: Writer,
    entries: impl Iterator<Item = T> + Send + 'static,
    write: impl Fn(T, &mut Writer) + Send + 'static,
) -> ResponseBody {
    let mut pieces = Pieces { writer: Some(writer), entries, write };
    let first = pieces.next().unwrap_or_default();
    if pieces.writer.is_none() {
        return ResponseBody::bytes(first);
    }
    let pieces = std::iter::once(first).chain(pieces);
    ResponseBody::stream(stream::iter(pieces.map(Ok)).boxed())
}

struct Pieces<I, W> {
    /// `None` once the document is finished.
    writer: Option<Writer>,
    entries: I,
    write: W,
}

impl<T, I: Iterator<Item = T>, W: Fn(T, &mut Writer)> Iterator for Pieces<I, W> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut writer = self.writer.take()?;
        while writer.len() < DOCUMENT_PIECE_BYTES {
            let Some(entry) = self.entries.next() else { return Some(writer.finish().into()) };
            (self.write)(entry, &mut writer);
        }
        let piece = writer.take();
        self.writer = Some(writer);
        Some(piece.into())
    }
}
