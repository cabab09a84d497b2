//! The sources of secrets for a store.

use std::fmt;
use std::sync::Arc;

use iam::StoreError;
use tokio::task::spawn_blocking;

use crate::exchange::unavailable;

/// A function that reads the secrets for a store. It is called at the start, and when the store
/// refuses the secrets from before. It may block for a file or a command. Its errors do not contain
/// the secrets.
#[derive(Clone)]
pub struct SecretsOf<T>(Arc<dyn Fn() -> Result<T, String> + Send + Sync>);

impl<T> SecretsOf<T> {
    /// Wraps the function.
    pub fn new(find: impl Fn() -> Result<T, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }
}

impl<T> fmt::Debug for SecretsOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsOf")
    }
}

/// Reads the secrets on a thread that may block.
pub async fn read<T: Send + 'static>(secrets: &SecretsOf<T>) -> Result<T, StoreError> {
    let find = Arc::clone(&secrets.0);
    let found = spawn_blocking(move || find()).await;
    found.map_err(|error| unavailable(error.to_string()))?.map_err(unavailable)
}
