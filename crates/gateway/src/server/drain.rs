use tokio::sync::watch;

/// Waits until the server is stopping.
pub async fn drained(draining: &mut watch::Receiver<bool>) {
    // An error means that the server itself is gone.
    let _ = draining.wait_for(|draining| *draining).await;
}
