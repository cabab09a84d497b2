//! The facts about a request, from its arrival to its answer.

use std::sync::Arc;
use std::time::Instant;

use backend::Context;
use http::StatusCode;
use iam::{BucketRules, Requester};
use s3_types::{Timestamp, UnixIdentity};
use s3_wire::honoured::Signed;
use s3_wire::operation::Operation;
use s3_wire::{ErrorCode, Query, Target};
use tokio::sync::OwnedSemaphorePermit;

use crate::audit::Trail;
use crate::effects::Effects;
use crate::peer::Peer;
use crate::request_id::RequestId;
use crate::trace_context::SpanContext;

/// The facts that are known of a request before it is parsed.
pub struct RequestContext {
    /// The id of the request, in the answer and in the log.
    pub id: RequestId,
    /// The time at which the request arrived.
    pub now: Timestamp,
    /// The client that it comes from.
    pub peer: Peer,
    /// The request's place among those in progress, kept as long as any work for the request goes
    /// on. `None` if there was no free place: the request is refused.
    pub place: Option<Arc<OwnedSemaphorePermit>>,
    /// The moment of the request's arrival, from which durations are measured.
    pub started: Instant,
    /// The request's place in a trace, if it has one.
    pub trace: Option<Box<SpanContext>>,
    /// The request's lines in the audit log, if there is one.
    pub trail: Option<Arc<Trail>>,
}

impl RequestContext {
    /// Returns the context for the request's calls of the storage, once the requester is known.
    pub fn backend_context(&self, requester: &Requester, unix: Option<Arc<UnixIdentity>>) -> Context {
        Context { request_id: self.id.as_str().into(), requester: requester.facts().cloned(), unix }
    }

    /// Has the audit log tell a key that is known, of a request whose signature was not verified.
    #[cold]
    pub fn note_presented(&self, access_key: &str) {
        if let Some(trail) = &self.trail {
            trail.set_presented_key(access_key, true);
        }
    }
}

/// The facts about a request that become known while it is performed.
#[derive(Debug, Default)]
pub struct Known<'h> {
    /// The query of the request's target.
    pub query: Option<Query<'h>>,
    /// The operation.
    pub operation: Option<Operation>,
    /// The bucket and key.
    pub target: Option<Target>,
    /// The rules of the bucket, if there is an access log.
    pub rules: Option<Arc<BucketRules>>,
    /// The requester.
    pub requester: Option<Requester>,
    /// The place of the signature.
    pub signed: Option<Signed>,
    /// The effects on objects.
    pub effects: Effects,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// The status.
    pub status: StatusCode,
    /// S3's code, if the answer is an error.
    pub code: Option<ErrorCode>,
    /// The number of bytes of the request's body that were read, including framing.
    pub bytes_in: u64,
}
