use std::net::IpAddr;
use std::sync::Arc;

use s3_types::{BucketName, ObjectKey, RequesterFacts, S3Action};

use crate::credential::Identity;

/// Who makes a request.
#[derive(Debug, Clone)]
pub enum Requester {
    /// No credentials were sent.
    Anonymous,
    /// A known identity.
    Identity(Arc<Identity>),
}

impl Requester {
    /// True if no credentials were sent.
    pub const fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// True if everything is allowed.
    pub fn is_root(&self) -> bool {
        matches!(self, Self::Identity(identity) if identity.is_root)
    }

    /// What storages may know about the requester; `None` for an anonymous one.
    pub fn facts(&self) -> Option<&Arc<RequesterFacts>> {
        match self {
            Self::Anonymous => None,
            Self::Identity(identity) => Some(&identity.facts),
        }
    }
}

/// The facts that a decision may depend on besides the action: the keys of policy conditions.
#[derive(Clone)]
pub struct RequestFacts<'a> {
    /// Who asks.
    pub requester: &'a Requester,
    /// The client's address (`aws:SourceIp`); unknown on a unix socket.
    pub source_ip: Option<IpAddr>,
    /// True for a request over TLS (`aws:SecureTransport`).
    pub secure_transport: bool,
    /// The time, in seconds since 1970 (`aws:CurrentTime`).
    pub time_second: i64,
    /// Other values of the request, by lower-case name of a header or parameter (`s3:prefix`,
    /// `s3:x-amz-acl`, ...).
    pub values: &'a (dyn Fn(&str) -> Option<String> + Send + Sync),
}

/// An action on a resource, which must be allowed before an operation is performed.
#[derive(Debug, Clone, Copy)]
pub struct Permission<'a> {
    /// The action.
    pub action: S3Action,
    /// The bucket, unless the action is about the service.
    pub bucket: Option<&'a BucketName>,
    /// The key, if the action is about an object.
    pub key: Option<&'a ObjectKey>,
}

/// Whether a permission is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

/// Decides about requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Authorizer;

impl Authorizer {
    /// Decides whether the requester has a permission. Without policies and ACLs, root has all and
    /// others have none. (It is asynchronous because a bucket's policy has to be read.)
    #[allow(clippy::unused_async, reason = "see above: the callers must be able to wait")]
    pub async fn decide(&self, facts: &RequestFacts<'_>, _permission: &Permission<'_>) -> Decision {
        if facts.requester.is_root() { Decision::Allow } else { Decision::Deny }
    }
}
