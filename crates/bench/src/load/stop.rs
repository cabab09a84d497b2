use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval at which it is checked whether the run should stop.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Ends a run before its time.
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
