//! The state of a connection between two requests.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use crate::limits::STOP_TIME_MAX;
use crate::send_file::FileParts;

/// The state of a connection between two requests. The connection's IO and its service, which run
/// in one task, share it.
#[derive(Debug, Default)]
pub struct Phase {
    state: AtomicU8,
    /// True if part of the last response may still be unsent, although all of it has been produced.
    unflushed: AtomicBool,
    /// True if the last request that began was refused, so that only its answer remains to be sent.
    refused: AtomicBool,
    /// True if part of an answer that is not a refusal may still be unsent.
    owed: AtomicBool,
    pub body_unread: AtomicBool,
    pub closing: AtomicBool,
    /// True once hyper has refused a head as too large. The head may only have more lines than
    /// hyper takes by default, and is read again by a hyper with a higher limit.
    pub many_lines: AtomicBool,
    /// True once the server is stopping.
    pub stopping: AtomicBool,
    /// True if the last read found nothing.
    pub waiting: AtomicBool,
    /// The number of requests that have begun; may wrap around.
    requests: AtomicU32,
    /// The parts of files that the connection's responses have queued.
    pub file_parts: FileParts,
}

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const BUSY: u8 = 2;

impl Phase {
    /// Notes that a request's head is complete.
    pub fn request_begins(&self) {
        self.state.store(BUSY, Relaxed);
        self.unflushed.store(true, Relaxed);
        self.refused.store(false, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    /// Notes that the request's answer is known, and whether it is a refusal.
    pub fn answer_begins(&self, is_refusal: bool) {
        self.refused.store(is_refusal, Relaxed);
        if !is_refusal {
            self.owed.store(true, Relaxed);
        }
    }

    /// Notes that the response has been produced.
    pub fn response_ends(&self) {
        self.state.store(IDLE, Relaxed);
    }

    /// Notes that the client may still be sending a body that is not wanted: the connection lingers
    /// before it is closed.
    pub fn leave_body_unread(&self) {
        self.body_unread.store(true, Relaxed);
    }

    /// Notes that the server is stopping: unwanted data is then waited for at most
    /// [`STOP_TIME_MAX`]. The caller has to poll the connection again.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Waits until [`STOP_TIME_MAX`] has passed since [`Phase::stop`].
    pub async fn stopped(&self) {
        poll_fn(|_| if self.stopping.load(Relaxed) { Poll::Ready(()) } else { Poll::Pending }).await;
        tokio::time::sleep(STOP_TIME_MAX).await;
    }

    /// True if there is nothing to answer and nothing left to send. The head of a request may have
    /// begun to arrive.
    pub fn unasked(&self) -> bool {
        !self.busy() && !self.answering() && !self.closing.load(Relaxed)
    }

    /// True if only refusals are left to send. Any client can cause any number of refusals, and not
    /// read them.
    pub fn only_refusals(&self) -> bool {
        let asked = self.busy() && !self.refused.load(Relaxed);
        self.answering() && !asked && !self.owed.load(Relaxed)
    }

    /// Returns the number of requests so far, if the connection is between two requests: everything
    /// is answered and sent, and the server waits for more. (hyper also pauses between requests
    /// that it has already read.)
    pub fn idle_after(&self) -> Option<u32> {
        let idle = self.state.load(Relaxed) == IDLE
            && !self.answering()
            && !self.body_unread.load(Relaxed)
            && !self.closing.load(Relaxed)
            && self.waiting.load(Relaxed);
        idle.then(|| self.requests.load(Relaxed))
    }

    /// Notes that bytes arrived. Returns true if they are the first of a head.
    pub fn bytes_arrived(&self) -> bool {
        self.state.compare_exchange(IDLE, HEAD, Relaxed, Relaxed).is_ok()
    }

    pub fn busy(&self) -> bool {
        self.state.load(Relaxed) == BUSY
    }

    /// True while written bytes may belong to a response of the gateway: then they are not searched
    /// for hyper's own answers, since a body can look like anything.
    pub fn answering(&self) -> bool {
        self.unflushed.load(Relaxed)
    }

    /// Notes that everything written has been sent.
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
