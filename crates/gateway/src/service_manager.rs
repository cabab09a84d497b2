//! Notifies systemd, or another program that set `NOTIFY_SOCKET`, of the server's state. Errors are
//! ignored: a service manager that does not listen is no reason to stop.

use sd_notify::NotifyState;

/// Requests are served, with the latest configuration.
pub fn ready() {
    let _ = sd_notify::notify(false, &[NotifyState::Ready]);
}

/// The configuration is being read again.
pub fn reloading() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now().ok());
    let _ = sd_notify::notify(false, &states);
}

/// No more connections are accepted.
pub fn stopping() {
    let _ = sd_notify::notify(false, &[NotifyState::Stopping]);
}
