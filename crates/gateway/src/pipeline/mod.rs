//! A request's life, top to bottom.

mod authenticate;
mod call;
mod errors;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use hyper::body::Incoming;
use s3_types::Timestamp;
use s3_wire::operation::Operation;
use s3_wire::target::bucket_of_host;
use s3_wire::{ErrorCode, Query, Result, S3Error, Target, headers, limits, route};

pub use call::{Call, Permission};
pub use errors::from_backend;

use crate::body::{InProgress, RequestBody, ResponseBody};
use crate::gateway::Gateway;
use crate::ops;
use crate::reply::Reply;
use crate::request_id::RequestId;
use crate::server::{Peer, Phase};

/// What is known of a request before it is read.
pub struct RequestContext {
    /// Its id, in the answer and in the log.
    pub id: RequestId,
    /// When it arrived.
    pub now: Timestamp,
    /// From where.
    pub peer: Peer,
    started: Instant,
}

/// Answers one request.
pub async fn handle(gateway: &Gateway, peer: Peer, phase: Arc<Phase>, request: Request<Incoming>) -> Reply {
    let cx = RequestContext {
        id: gateway.request_ids.next(),
        now: Timestamp::now(),
        peer,
        started: Instant::now(),
    };
    let (head, incoming) = request.into_parts();
    let mut body = RequestBody::new(incoming, &head.headers, gateway.stall_timeout);
    let permit = gateway.requests.clone().try_acquire_owned().ok();
    let outcome = if permit.is_some() {
        perform(gateway, &cx, &head, &mut body).await
    } else {
        Err(ErrorCode::SlowDown.into())
    };
    let (operation, mut reply) = match outcome {
        Ok((operation, reply)) => (Some(operation), reply),
        Err(error) => (None, errors::render(gateway, &cx, &head, &error)),
    };
    if !body.drain().await {
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        phase.leave_body_unread();
    }
    finish(gateway, &cx, &head, operation, &mut reply);
    reply.map(|body| body.hold(InProgress::new(phase, permit)))
}

async fn perform(
    gateway: &Gateway,
    cx: &RequestContext,
    head: &Parts,
    body: &mut RequestBody,
) -> Result<(Operation, Reply)> {
    check_head(head)?;
    let raw_query = head.uri.query().unwrap_or_default();
    let query = Query::parse(raw_query)?;
    let host = host(head);
    let virtual_bucket = host.and_then(|host| bucket_of_host(host, &gateway.domains));
    let target = Target::parse(virtual_bucket.as_deref(), head.uri.path())?;
    let operation = route::route(&head.method, target.shape(), &query, &head.headers)?;
    let (requester, payload) =
        authenticate::authenticate(gateway, cx, head, &query, host, virtual_bucket.as_deref())?;
    let headers = headers_of(head, &query)?;
    let call = Call {
        gateway,
        cx,
        head,
        headers: &headers,
        query: &query,
        target: &target,
        operation,
        requester,
        body,
        payload,
    };
    ops::dispatch(call).await.map(|reply| (operation, reply))
}

/// The headers, with what SDKs move into the query when they presign.
fn headers_of<'a>(head: &'a Parts, query: &Query<'_>) -> Result<Cow<'a, HeaderMap>> {
    if !headers::is_hoisted(query) {
        return Ok(Cow::Borrowed(&head.headers));
    }
    let mut all = head.headers.clone();
    headers::hoist_query(query, &mut all)?;
    Ok(Cow::Owned(all))
}

/// The name the client used: the `Host` header, or the authority of an absolute URI.
fn host(head: &Parts) -> Option<&str> {
    head.headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| head.uri.authority().map(http::uri::Authority::as_str))
}

fn check_head(head: &Parts) -> Result<()> {
    // "name: value\r\n"
    let lines = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let fields: usize = lines.sum();
    if fields > limits::HEADER_SECTION_BYTES_MAX {
        return Err(S3Error::new(ErrorCode::RequestHeaderSectionTooLarge)
            .detail("MaxSizeAllowed", limits::HEADER_SECTION_BYTES_MAX.to_string()));
    }
    Ok(())
}

/// What every answer carries, and its line in the log.
fn finish(
    gateway: &Gateway,
    cx: &RequestContext,
    head: &Parts,
    operation: Option<Operation>,
    reply: &mut Reply,
) {
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("Slipway"));
    headers.insert("x-amz-id-2", gateway.host_id.header());
    if let Ok(id) = HeaderValue::from_str(cx.id.as_str()) {
        headers.insert("x-amz-request-id", id);
    }
    if head.method == Method::HEAD && reply.status().as_u16() >= 400 {
        *reply.body_mut() = ResponseBody::empty();
    }
    tracing::debug!(
        target: "slipway::access",
        id = cx.id.as_str(),
        peer = cx.peer.address.map(tracing::field::display),
        method = head.method.as_str(),
        // Debug form: a line break in a path must not make a line of the log.
        path = ?head.uri.path(),
        operation = operation.map(Operation::name),
        status = reply.status().as_u16(),
        micros = u64::try_from(cx.started.elapsed().as_micros()).unwrap_or(u64::MAX),
    );
}
