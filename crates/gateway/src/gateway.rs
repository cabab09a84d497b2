//! What all requests share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use backend::Backend;
use iam::{Authorizer, Identities};
use s3_wire::auth::{SigningKeyCache, SigningPolicy};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::body::DigestServices;
use crate::clients::Clients;
use crate::metrics::Connections;
use crate::observers::Observers;
use crate::request_id::{HostId, RequestIds};

/// What a reload changes. A request keeps those that it began with.
#[derive(Debug)]
pub struct Settings {
    /// Whose signatures count.
    pub identities: Identities,
    /// Domains below which buckets are hosts, in lower case.
    pub domains: Vec<String>,
}

/// A gateway: a backend, who may use it, and under which names.
pub struct Gateway {
    /// Where objects are.
    pub backend: Arc<dyn Backend>,
    /// What a reload changes.
    pub settings: ArcSwap<Settings>,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// Which signatures count.
    pub signing: SigningPolicy,
    /// Keys that were derived already.
    pub signing_keys: SigningKeyCache,
    /// Places for requests in progress.
    pub requests: Places,
    /// Computes the MD5 and SHA-256 of bodies.
    pub digests: DigestServices,
    /// Turns for large documents.
    pub large_documents: Semaphore,
    /// How long a body may make no progress.
    pub stall_timeout: std::time::Duration,
    /// Makes the ids of requests.
    pub request_ids: RequestIds,
    /// Names this gateway in answers.
    pub host_id: HostId,
    /// Finds out who the client is.
    pub clients: Clients,
    /// Counters of its connections.
    pub connections: Connections,
    /// Who is told of each request when it has ended, if anybody is.
    pub observers: Option<Arc<Observers>>,
}

/// Places of which only so many can be taken at a time.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    count: u32,
}

impl Places {
    /// So many; what is beyond `u32::MAX` can't be told from it.
    pub fn new(count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self { free: Arc::new(Semaphore::new(count as usize)), count }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.count().saturating_sub(self.free.available_permits())
    }

    /// Takes one, as long as it has what this returns. `None` if all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Returns once none is taken.
    pub async fn all_free(&self) {
        // An error means that they were closed, which they never are.
        let _ = self.free.acquire_many(self.count).await;
    }
}
