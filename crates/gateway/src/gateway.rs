//! The state that all requests share: the storage, settings, limits and counters.

use std::sync::Arc;

use arc_swap::ArcSwap;
use iam::{Account, Authorizer, Identities, Registry};
use iam_remote::OpenId;
use iam_remote::ldap::Ldap;
use s3_wire::auth::{SigningKeyCache, SigningPolicy};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::Storage;
use crate::audit::AuditLog;
use crate::body::DigestServices;
use crate::clients::Clients;
use crate::identities::Looks;
use crate::metrics::Connections;
use crate::observers::Observers;
use crate::request_id::{HostId, RequestIds};
use crate::unix_identities::UnixIdentities;

/// The settings that a reload changes. A request keeps those that it began with.
#[derive(Debug)]
pub struct Settings {
    /// The account that owns buckets and objects.
    pub account: Arc<Account>,
    /// The keys whose signatures are accepted.
    pub identities: Arc<dyn Identities>,
    /// Domains whose subdomains are buckets, in lower case.
    pub domains: Vec<String>,
}

/// A gateway: its storage, settings, limits and counters.
pub struct Gateway {
    /// The storage.
    pub storage: Storage,
    /// The settings that a reload changes.
    pub settings: ArcSwap<Settings>,
    /// All identities, which requests may change.
    pub registry: Arc<Registry>,
    /// The results of the regular looks at the store of identities.
    pub looks: Arc<Looks>,
    /// The places for actions of IAM and STS that are performed at the same time.
    pub actions: Places,
    /// The places for actions of IAM and STS whose requests are not signed.
    pub unsigned_actions: Places,
    /// The bytes of forms of such actions, a place each.
    pub unsigned_bytes: Places,
    /// Verifies tokens of OpenID providers.
    pub openid: OpenId,
    /// The directory that people log in by, if there is one.
    pub ldap: Option<Arc<Ldap>>,
    /// True if actions with secrets are performed for clients without TLS, too.
    pub secrets_in_clear: bool,
    /// The POSIX identities of requesters; `None` if they make no difference.
    pub unix: Option<UnixIdentities>,
    /// The authorizer, which decides who may do what.
    pub authorizer: Arc<dyn Authorizer>,
    /// The rules that signatures must follow.
    pub signing: SigningPolicy,
    /// Signing keys that were already derived.
    pub signing_keys: SigningKeyCache,
    /// The places for requests in progress.
    pub requests: Places,
    /// Computes the MD5 and SHA-256 of bodies.
    pub digests: DigestServices,
    /// Permits for large documents.
    pub large_documents: Semaphore,
    /// The time after which a body that makes no progress is given up.
    pub stall_timeout: std::time::Duration,
    /// Makes the ids of requests.
    pub request_ids: RequestIds,
    /// The id of this gateway in answers.
    pub host_id: HostId,
    /// Finds out who the client of a request is.
    pub clients: Clients,
    /// The counters of the gateway's connections.
    pub connections: Connections,
    /// The metrics, access log and traces that requests are reported to, if there are any.
    pub observers: Option<Arc<Observers>>,
    /// The audit log, if there is one.
    pub audit: Option<Arc<AuditLog>>,
}

/// A limited number of places, which can be taken and given back.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    count: u32,
}

impl Places {
    /// Makes `count` places, or `u32::MAX` if that is less.
    pub fn new(count: usize) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Self { free: Arc::new(Semaphore::new(count as usize)), count }
    }

    /// Returns the number of places.
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the number of places that are taken.
    pub fn taken(&self) -> usize {
        self.count().saturating_sub(self.free.available_permits())
    }

    /// Takes a place until the returned permit is dropped. `None` if all are taken.
    pub fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Takes as many places as `count` until the returned permit is dropped. `None` if fewer are
    /// free.
    pub fn take_many(&self, count: usize) -> Option<OwnedSemaphorePermit> {
        let count = u32::try_from(count).ok()?;
        Arc::clone(&self.free).try_acquire_many_owned(count).ok()
    }

    /// Waits until no place is taken.
    pub async fn all_free(&self) {
        // An error means that they were closed, which they never are.
        let _ = self.free.acquire_many(self.count).await;
    }
}
