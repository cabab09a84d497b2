//! Turns of long computations on a thread of the runtime.

use std::time::Instant;

use tokio::task::yield_now;

use crate::limits::SHARE_OF_THREAD;

/// A computation of many steps, which lets other requests have the thread between two of them.
pub struct FairShare {
    since: Instant,
}

impl FairShare {
    pub fn begin() -> Self {
        Self { since: Instant::now() }
    }

    /// Lets others have the thread if the computation has had it for [`SHARE_OF_THREAD`]. To be
    /// called between two steps.
    pub async fn rest(&mut self) {
        if self.since.elapsed() >= SHARE_OF_THREAD {
            yield_now().await;
            self.since = Instant::now();
        }
    }
}
