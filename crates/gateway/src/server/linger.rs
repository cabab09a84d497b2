//! Ends a connection whose client may still be sending.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::limits::{LINGER_BYTES_MAX, LINGER_TIME_MAX, STOP_TIME_MAX};

/// Reads and drops what a client still sends after the last answer, up to [`LINGER_BYTES_MAX`] and
/// [`LINGER_TIME_MAX`].
///
/// A socket that is closed with unread bytes resets the connection, and the client may then lose
/// the answer.
pub struct Linger {
    bytes_left: usize,
    timer: Pin<Box<Sleep>>,
    hurried: bool,
}

impl Linger {
    /// Begins the lingering. The sending side has already been shut down.
    pub fn new() -> Self {
        let timer = Box::pin(tokio::time::sleep(LINGER_TIME_MAX));
        Self { bytes_left: LINGER_BYTES_MAX, timer, hurried: false }
    }

    /// Makes the lingering end within [`STOP_TIME_MAX`] of the first call.
    pub fn hurry(&mut self) {
        if !self.hurried {
            self.hurried = true;
            let end = self.timer.deadline().min(Instant::now() + STOP_TIME_MAX);
            self.timer.as_mut().reset(end);
        }
    }

    /// Returns `Ready` once the client has closed the connection, or a limit is reached.
    pub fn poll(&mut self, cx: &mut Context<'_>, mut stream: Pin<&mut impl AsyncRead>) -> Poll<()> {
        let mut scratch = [0u8; 4096];
        loop {
            if self.bytes_left == 0 || self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(stream.as_mut().poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    self.bytes_left = self.bytes_left.saturating_sub(buffer.filled().len());
                }
                // The client has closed, or is gone.
                _ => return Poll::Ready(()),
            }
        }
    }
}
