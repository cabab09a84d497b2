//! Where a connection is between two requests.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use crate::limits::STOP_TIME_MAX;
use crate::send_file::FileParts;

/// Where a connection is between two requests. Shared by its IO and its service, which run in one
/// task.
#[derive(Debug, Default)]
pub struct Phase {
    state: AtomicU8,
    /// Some of the last response may still be on its way, although it has been produced.
    unflushed: AtomicBool,
    /// The last request to begin was refused: all that is left of it is its answer.
    refused: AtomicBool,
    /// Some of an answer that is no refusal may still be on its way.
    owed: AtomicBool,
    pub body_unread: AtomicBool,
    pub closing: AtomicBool,
    /// The server is to stop.
    pub stopping: AtomicBool,
    /// The last look found nothing to read.
    pub waiting: AtomicBool,
    /// How many requests have begun; may wrap.
    requests: AtomicU32,
    /// What its bodies have of files.
    pub file_parts: FileParts,
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl Phase {
    /// A request's head is complete.
    pub fn request_begins(&self) {
        self.state.store(BUSY, Relaxed);
        self.unflushed.store(true, Relaxed);
        self.refused.store(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    /// What it is answered is known: an error, or what it asked for.
    pub fn answer_begins(&self, is_refusal: bool) {
        self.refused.store(is_refusal, Relaxed);
        if !is_refusal {
            self.owed.store(true, Relaxed);
        }
    }

    /// Its response has been produced.
    pub fn response_ends(&self) {
        self.state.store(IDLE, Relaxed);
    }

    /// The client may still be sending a body that nobody wants: linger before closing.
    pub fn leave_body_unread(&self) {
        self.body_unread.store(true, Relaxed);
    }

    /// The server is to stop: what nobody wants is waited for no longer than [`STOP_TIME_MAX`]. Who
    /// calls this polls the connection again.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Returns [`STOP_TIME_MAX`] after [`Phase::stop`].
    pub async fn stopped(&self) {
        poll_fn(|_| if self.stopping.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }).await;
        tokio::time::sleep(STOP_TIME_MAX).await;
    }

    /// True where there is nothing to answer and nothing left to send: at most, a head has begun.
    pub fn unasked(&self) -> bool {
        !self.busy() && !self.answering() && !self.closing.load(Relaxed)
    }

    /// True where all that is left to do is to send refusals. Anyone can have any number of them
    /// written, and not read them.
    pub fn only_refusals(&self) -> bool {
        let asked = self.busy() && !self.refused.load(Relaxed);
        self.answering() && !asked && !self.owed.load(Relaxed)
    }

    /// Between two requests, how many there were: all that was asked for is answered and sent, and
    /// whoever serves the connection waits for more. (hyper also pauses between requests that it
    /// has read already.)
    pub fn idle_after(&self) -> Option<u32> {
        let idle = self.state.load(Relaxed) == IDLE
            && !self.answering()
            && !self.body_unread.load(Relaxed)
            && !self.closing.load(Relaxed)
            && self.waiting.load(Relaxed);
        idle.then(|| self.requests.load(Relaxed))
    }

    /// True if these are the first bytes of a head.
    pub fn bytes_arrived(&self) -> bool {
        self.state.compare_exchange(IDLE, HEAD, Relaxed, Relaxed).is_ok()
    }

    pub fn busy(&self) -> bool {
        self.state.load(Relaxed) == BUSY
    }

    /// True as long as what is written may be of a response of ours: bodies may look like anything.
    pub fn answering(&self) -> bool {
        self.unflushed.load(Relaxed)
    }

    /// All that was written has been sent.
    pub fn flushed(&self) {
        if !self.busy() {
            debug_assert!(self.file_parts.all_sent(), "parts of files were left behind");
            self.unflushed.store(false, Relaxed);
            self.owed.store(false, Relaxed);
        }
    }

    pub fn in_head(&self) -> bool {
        self.state.load(Relaxed) == HEAD
    }
}
