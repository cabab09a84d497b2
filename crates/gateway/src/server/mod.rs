//! A server: its listeners and connections, and its end.

mod connection;
mod connection_limit;
mod drain;
mod inherited;
mod io;
mod linger;
mod listener;
mod proxy_protocol;
mod refusal;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use s3_wire::ErrorCode;
use tokio::sync::{mpsc, watch};

pub use connection::ConnectionSettings;
use connection_limit::ConnectionLimit;
use drain::drained;
pub use inherited::{Inherited, Socket};
pub use io::Timeouts;
pub use listener::{ListenAddress, Listener};
pub use tls::Certificates;

/// A running server.
pub struct Server {
    settings: Arc<ConnectionSettings>,
    connection_limit: ConnectionLimit,
    draining: watch::Sender<bool>,
    // Every task holds a clone; when the last is gone, `ended` yields.
    alive: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Server {
    /// Makes a server without listeners.
    pub fn new(settings: ConnectionSettings, max_connections: usize) -> Self {
        let (alive, ended) = mpsc::channel(1);
        Self {
            settings: Arc::new(settings),
            connection_limit: ConnectionLimit::new(max_connections),
            draining: watch::Sender::new(false),
            alive,
            ended,
        }
    }

    /// Accepts connections from `listener` in a task of its own.
    pub fn listen(&self, listener: Listener) {
        let (settings, connection_limit) = (self.settings.clone(), self.connection_limit.clone());
        let (mut draining, alive) = (self.draining.subscribe(), self.alive.clone());
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = drained(&mut draining) => return,
                };
                let (stream, address) = match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of descriptors, mostly: wait for some to come back instead of
                        // spinning.
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                let (settings, draining, alive) = (settings.clone(), draining.clone(), alive.clone());
                let (connection_limit, place) = (connection_limit.clone(), connection_limit.enter());
                tokio::spawn(async move {
                    let connections = &settings.gateway.connections;
                    match place {
                        Some(place) => {
                            connections.accept();
                            connection::serve(&settings, stream, address, connection_limit, draining).await;
                            connections.close();
                            drop(place);
                        }
                        // The answer would have to be encrypted, which is too much work here.
                        None if settings.tls.is_some() && address.is_some() => {
                            connections.refuse();
                            drop(stream);
                        }
                        None => {
                            connections.refuse();
                            let waiting = connection_limit.linger();
                            let (error, lingers) = (ErrorCode::SlowDown.into(), waiting.is_some());
                            connection::refuse(&settings.gateway, stream, &error, lingers, draining).await;
                            drop(waiting);
                        }
                    }
                    drop(alive);
                });
            }
        });
    }

    /// Stops accepting, gives requests in progress `limit` to finish, then closes the remaining
    /// connections. Returns true if all requests finished.
    pub async fn drain(self, limit: Duration) -> bool {
        let Self { settings, draining, alive, mut ended, .. } = self;
        draining.send_replace(true);
        drop(alive);
        let finished = async {
            ended.recv().await;
            // Copies and completions go on without the connection that asked for them, and keep
            // their place among the requests.
            settings.gateway.requests.all_free().await;
        };
        tokio::time::timeout(limit, finished).await.is_ok()
    }
}
