//! Notifies systemd, or another program that set `NOTIFY_SOCKET`, of the server's state. Errors are
//! ignored: the server goes on if no service manager listens.

use sd_notify::NotifyState;

/// Reports that requests are served, with the latest configuration.
pub fn ready() {
    let _ = sd_notify::notify(false, &[NotifyState::Ready]);
}

/// Reports that the configuration is being read again.
pub fn reloading() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now().ok());
    let _ = sd_notify::notify(false, &states);
}

/// Reports that no more connections are accepted.
pub fn stopping() {
    let _ = sd_notify::notify(false, &[NotifyState::Stopping]);
}
