use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval between two checks of whether the run should stop.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A flag that ends a run before its time. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the run to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True once the run was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) async fn wait(&self) {
        while !self.is_stopped() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
