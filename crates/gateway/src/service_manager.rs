//! Telling systemd (or who else set `NOTIFY_SOCKET`) how far the server is. Without it, nobody is
//! told, and a service manager that does not listen is no reason to stop.

use sd_notify::NotifyState;

/// Requests are served, with what was configured last.
pub fn ready() {
    let _ = sd_notify::notify(false, &[NotifyState::Ready]);
}

/// The configuration is read again.
pub fn reloading() {
    let mut states = vec![NotifyState::Reloading];
    states.extend(NotifyState::monotonic_usec_now().ok());
    let _ = sd_notify::notify(false, &states);
}

/// No more connections are accepted.
pub fn stopping() {
    let _ = sd_notify::notify(false, &[NotifyState::Stopping]);
}
