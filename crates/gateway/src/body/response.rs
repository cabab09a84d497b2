//! The body of a response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use backend::ObjectBody;
use bytes::{Buf as _, Bytes};
use futures_util::stream::{BoxStream, StreamExt as _};
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tracing::field::display;

use super::file::FilePieces;
use super::piece::Piece;
use crate::observers::Reporting;
use crate::phase::Phase;
use crate::request_id::RequestId;

/// The state of a response that is being produced. Dropping it frees the request's place.
pub struct InProgress {
    id: RequestId,
    phase: Arc<Phase>,
    _place: Option<Arc<OwnedSemaphorePermit>>,
    report: Option<Reporting>,
}

impl InProgress {
    /// Makes the state for the response to request `id`. When it is dropped at the end of the
    /// response, the connection is idle, `place` is free for another request, and `report` reports.
    pub const fn new(
        id: RequestId,
        phase: Arc<Phase>,
        place: Option<Arc<OwnedSemaphorePermit>>,
        report: Option<Reporting>,
    ) -> Self {
        Self { id, phase, _place: place, report }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.phase.response_ends();
    }
}

/// The body of a response.
pub struct ResponseBody {
    content: Content,
    in_progress: Option<InProgress>,
}

enum Content {
    Empty,
    Bytes(Bytes),
    File(FilePieces),
    Stream { stream: BoxStream<'static, io::Result<Bytes>>, length: Option<u64> },
}

impl ResponseBody {
    /// Makes an empty body.
    pub const fn empty() -> Self {
        Self { content: Content::Empty, in_progress: None }
    }

    /// Makes a body of these bytes.
    pub fn bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let content = if bytes.is_empty() { Content::Empty } else { Content::Bytes(bytes) };
        Self { content, in_progress: None }
    }

    /// Makes a body of unknown length from a stream of pieces.
    pub fn stream(stream: BoxStream<'static, io::Result<Bytes>>) -> Self {
        Self { content: Content::Stream { stream, length: None }, in_progress: None }
    }

    /// Makes a body of an object's bytes; `length` is their number.
    pub fn object(body: ObjectBody, length: u64) -> Self {
        let content = match body {
            ObjectBody::Empty => Content::Empty,
            ObjectBody::Bytes(bytes) => Content::Bytes(bytes),
            ObjectBody::File(body) => Content::File(FilePieces::new(body)),
            ObjectBody::Stream(stream) => Content::Stream {
                stream: stream.map(|piece| piece.map_err(io::Error::other)).boxed(),
                length: Some(length),
            },
        };
        Self { content, in_progress: None }
    }

    /// Keeps `in_progress` until the body has been sent, or is dropped before its end.
    #[must_use]
    pub fn hold(mut self, in_progress: InProgress) -> Self {
        self.in_progress = Some(in_progress);
        self
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let (Content::File(file), Some(in_progress)) = (&self.content, &self.in_progress)
            && file.bytes_left() > 0
        {
            in_progress.phase.file_parts.break_off();
        }
    }
}

impl Body for ResponseBody {
    type Data = Piece;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Piece>>>> {
        let this = self.get_mut();
        let piece = match &mut this.content {
            Content::Empty => return Poll::Ready(None),
            Content::Bytes(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Content::Bytes(bytes) => Some(Ok(Piece::Bytes(std::mem::take(bytes)))),
            Content::File(file) => {
                let parts = this.in_progress.as_ref().map(|of| (of.id, &of.phase.file_parts));
                ready!(file.poll_piece(cx, parts.filter(|(_, parts)| parts.are_possible())))
            }
            Content::Stream { stream, .. } => {
                ready!(stream.poll_next_unpin(cx)).map(|piece| piece.map(Piece::Bytes))
            }
        };
        if let Some(in_progress) = &mut this.in_progress {
            match (&piece, in_progress.report.as_mut().and_then(Reporting::report)) {
                (Some(Ok(piece)), Some(report)) => report.sent(piece.remaining()),
                // The head is on its way: all that is left is to break off, and to say here why.
                (Some(Err(error)), report) => {
                    let trace_id = report.and_then(|report| report.trace()).map(display);
                    tracing::warn!(id = in_progress.id.as_str(), trace_id, %error, "a response was cut off: the \
                        object could not be read to its end");
                }
                _ => {}
            }
        }
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Bytes(bytes) => bytes.is_empty(),
            Content::File(file) => file.bytes_left() == 0,
            Content::Stream { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::File(file) => SizeHint::with_exact(file.bytes_left()),
            Content::Stream { length: Some(length), .. } => SizeHint::with_exact(*length),
            Content::Stream { length: None, .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::body::file::tests::Fake;
    use crate::request_id::RequestIds;

    /// The phase of a connection after `pieces` pieces of a body of `length` bytes were sent.
    async fn after(length: usize, pieces: usize) -> Arc<Phase> {
        let body = FilePieces::new(Box::new(Fake::new(&vec![0; length])));
        let phase = Arc::new(Phase::default());
        phase.file_parts.allow();
        let mut body = ResponseBody { content: Content::File(body), in_progress: None }
            .hold(InProgress::new(RequestIds::new().next(), phase.clone(), None, None));
        for _ in 0..pieces {
            poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.unwrap().unwrap();
        }
        phase
    }

    #[tokio::test]
    async fn a_body_that_ends_before_its_time_breaks_off_the_connection() {
        assert!(after(1000, 1).await.file_parts.are_possible());
        assert!(!after(1000, 0).await.file_parts.are_possible());
        assert!(!after(3 << 20, 1).await.file_parts.are_possible());
    }
}
