//! What all requests share.

use std::sync::Arc;

use backend::Backend;
use iam::{Authorizer, Identities};
use s3_wire::auth::{SigningKeyCache, SigningPolicy};
use tokio::sync::Semaphore;

use crate::body::DigestServices;
use crate::config::AccessPattern;
use crate::request_id::{HostId, RequestIds};

/// A gateway: a backend, who may use it, and under which names.
pub struct Gateway {
    /// Where objects are.
    pub backend: Arc<dyn Backend>,
    /// Whose signatures count.
    pub identities: Identities,
    /// Who may do what.
    pub authorizer: Authorizer,
    /// Which signatures count.
    pub signing: SigningPolicy,
    /// Keys that were derived already.
    pub signing_keys: SigningKeyCache,
    /// Domains below which buckets are hosts, in lower case.
    pub domains: Vec<String>,
    /// Free places for requests in progress.
    pub requests: Arc<Semaphore>,
    /// Computes the MD5 and SHA-256 of bodies.
    pub digests: DigestServices,
    /// Turns for large documents.
    pub large_documents: Semaphore,
    /// What the kernel is told of files that are read.
    pub access_pattern: AccessPattern,
    /// How long a body may make no progress.
    pub stall_timeout: std::time::Duration,
    /// Makes the ids of requests.
    pub request_ids: RequestIds,
    /// Names this gateway in answers.
    pub host_id: HostId,
}
