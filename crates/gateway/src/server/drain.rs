use tokio::sync::watch;

/// Returns once the server is to stop.
pub async fn drained(draining: &mut watch::Receiver<bool>) {
    // An error means that the server itself is gone.
    let _ = draining.wait_for(|draining| *draining).await;
}
