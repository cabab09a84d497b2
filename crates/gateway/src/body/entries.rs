//! Documents with many entries, which are written while they are sent.

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use s3_wire::xml::Writer;

use super::response::ResponseBody;
use crate::limits::DOCUMENT_PIECE_BYTES;

/// Adds `entries` to the document that `writer` began, and returns the body. A short document is
/// sent as a whole, with its length.
pub fn entries<T>(
    writer: Writer,
    entries: impl Iterator<Item = T> + Send + 'static,
    write: impl Fn(T, &mut Writer) + Send + 'static,
) -> ResponseBody {
    let (mut entries, mut open) = (entries, Some(writer));
    let mut pieces = std::iter::from_fn(move || {
        let mut writer = open.take()?;
        while writer.pending_bytes() < DOCUMENT_PIECE_BYTES {
            let Some(entry) = entries.next() else { return Some(Bytes::from(writer.finish())) };
            write(entry, &mut writer);
        }
        let piece = writer.take();
        open = Some(writer);
        Some(piece.into())
    });
    let first = pieces.next().unwrap_or_default();
    if first.len() < DOCUMENT_PIECE_BYTES {
        return ResponseBody::bytes(first);
    }
    let pieces = std::iter::once(first).chain(pieces);
    ResponseBody::stream(stream::iter(pieces.map(Ok)).boxed())
}
