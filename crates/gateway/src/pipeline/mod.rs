//! The pipeline of a request, from top to bottom.

mod authenticate;
mod fork;
mod preflight;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Version, header};
use hyper::body::Incoming;
use iam::BucketRules;
use s3_types::Timestamp;
use s3_wire::auth::{self, SignedRequest};
use s3_wire::headers::has;
use s3_wire::honoured::Signed;
use s3_wire::route::{Route, route};
use s3_wire::target::bucket_of_host;
use s3_wire::{ErrorCode, Query, Result, S3Error, Target, limits};

use authenticate::{Authenticated, authenticate};
use fork::Fork;
use preflight::preflight;

use crate::access::Asker;
use crate::actions::{self, ActionRequest};
use crate::audit::Trail;
use crate::body::{InProgress, RequestBody, ResponseBody};
use crate::call::{self, Call};
use crate::errors::{self, ErrorSite};
use crate::gateway::{Gateway, Settings};
use crate::observers::{Report, Reporting};
use crate::ops;
use crate::outcome::Outcome;
use crate::peer::Peer;
use crate::phase::Phase;
use crate::reply::{self, Reply};
use crate::request::{Answered, Known, RequestContext};
use crate::request_bucket::RequestBucket;
use crate::spare_headers;

const HOST_ID: HeaderName = HeaderName::from_static("x-amz-id-2");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// Answers one request.
pub async fn handle(gateway: &Gateway, peer: Peer, phase: Arc<Phase>, request: Request<Incoming>) -> Reply {
    let place = gateway.requests.take().map(Arc::new);
    let (id, now, started) = (gateway.request_ids.next(), Timestamp::now(), Instant::now());
    let (mut head, incoming) = request.into_parts();
    let peer = gateway.clients.of_request(peer, &head.headers);
    let observers = gateway.observers.as_ref();
    let traces = observers.and_then(|observers| observers.traces.as_ref());
    let trace = traces.and_then(|traces| traces.begin(id, peer, &head.headers));
    let trail = gateway.audit.as_ref().map(|log| Arc::new(Trail::new(log, id, peer)));
    let mut cx = RequestContext { id, now, peer, place, started, trace, trail };
    let mut body = RequestBody::new(incoming, &head.headers, gateway.stall_timeout);
    let mut known = Known::default();
    let outcome = if gateway.audit.as_ref().is_some_and(|audit| audit.stops_requests()) {
        Err(ErrorCode::ServiceUnavailable.into())
    } else if cx.place.is_some() {
        let settings = gateway.settings.load_full();
        admit(gateway, &settings, &cx, &head, &mut body, &mut known).await
    } else {
        Err(ErrorCode::SlowDown.into())
    };
    let mut code = None;
    let mut reply = outcome.unwrap_or_else(|error| {
        code = Some(error.code());
        if let Some(trail) = &cx.trail {
            note_refusal(trail, &head, &known, &error);
        }
        // A refused request gives up its place before the rest of its body is read and dropped.
        cx.place = None;
        errors::render(&ErrorSite::new(gateway, &cx, &head, known.target.as_ref()), &error)
    });
    if !body.drain(phase.stopped()).await {
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        phase.leave_body_unread();
    }
    phase.answer_begins(code.is_some());
    finish(gateway, &cx, &head, &mut reply);
    let report = observers.filter(|observers| observers.are_told(&cx)).map(|observers| {
        let answered = Answered { status: reply.status(), code, bytes_in: body.bytes_read() };
        Reporting::new(Report::new(observers, &mut cx, &head, known, answered))
    });
    spare_headers::keep(std::mem::take(&mut head.headers));
    reply.map(|body| body.hold(InProgress::new(cx.id, phase, cx.place, report)))
}

/// Finds what the request asks for, verifies the requester, and goes on to [`operate`]. Sets
/// operation and requester in `known` as soon as they are clear.
async fn admit<'h>(
    gateway: &Gateway,
    settings: &Settings,
    cx: &RequestContext,
    head: &'h Parts,
    body: &mut RequestBody,
    known: &mut Known<'h>,
) -> Result<Reply> {
    let host = check_head(head)?;
    let query = &*known.query.insert(Query::parse(head.uri.query().unwrap_or_default())?);
    let headers = auth::effective_headers(query, &head.headers)?;
    let raw_path = head.uri.path();
    let virtual_bucket = host.and_then(|host| bucket_of_host(host, &settings.domains));
    let virtual_bucket = virtual_bucket.as_deref();
    let target = match Target::parse(virtual_bucket, raw_path) {
        Ok(target) => Ok(&*known.target.insert(target)),
        Err(error) => Err(error),
    };
    let signed =
        SignedRequest { method: &head.method, raw_path, query, headers: &headers, host, virtual_bucket };
    let shape = target.as_ref().ok().map(|target| target.shape());
    match Fork::of(&head.method, shape, query, &headers) {
        Fork::Preflight => return Err(preflight(gateway, cx, target?.bucket(), &headers).await),
        Fork::Action => {
            let request = ActionRequest { gateway, settings, cx, head, signed: &signed };
            let reply = actions::answer(request, body, &mut known.requester).await;
            let by_url = query.get("X-Amz-Credential").is_some();
            let signed = if by_url { Signed::UrlV4 } else { Signed::Headers };
            known.signed = known.requester.is_some().then_some(signed);
            return Ok(reply);
        }
        // Until they are built, forms are refused as operations that are not served.
        Fork::Form | Fork::Operation => {}
    }
    let route = match &target {
        Ok(target) => Some(route(&head.method, target.shape(), query, &headers)?),
        Err(_) => None,
    };
    if let Some(Route::Operation(operation)) = &route {
        known.operation = Some(*operation);
        if let Some(trail) = &cx.trail {
            trail.set_operation(operation.name());
        }
    }
    let by = authenticate(gateway, settings.identities.as_ref(), cx, &signed).await?;
    (known.requester, known.signed) = (Some(by.requester.clone()), Some(by.signed));
    // S3 checks the names of bucket and key after the signature.
    let target = target?;
    if has(&by.headers, RDMA_TOKEN) {
        return Ok(decline_rdma());
    }
    let verified = Verified { gateway, settings, cx, head, query, target, by };
    let outcome = operate(verified, route, body, &mut known.rules).await?;
    known.effects = outcome.effects;
    Ok(outcome.reply)
}

/// A request whose requester was verified.
struct Verified<'a> {
    gateway: &'a Gateway,
    settings: &'a Settings,
    cx: &'a RequestContext,
    head: &'a Parts,
    query: &'a Query<'a>,
    target: &'a Target,
    by: Authenticated<'a>,
}

/// Looks for the bucket, and performs the operation. If the bucket is gone, the error says so. Sets
/// `rules` to those of the bucket, for the access log.
async fn operate(
    request: Verified<'_>,
    route: Option<Route>,
    body: &mut RequestBody,
    rules: &mut Option<Arc<BucketRules>>,
) -> Result<Outcome> {
    let Verified { gateway, settings, cx, head, query, target, by } = request;
    let Authenticated { requester, payload, headers, signed, signature } = by;
    let unix = match &gateway.unix {
        Some(identities) => identities.of(&requester, settings.account.id()).await?,
        None => None,
    };
    if let (Some(trail), Some(unix)) = (&cx.trail, &unix) {
        trail.set_unix(unix.account);
    }
    let backend_cx = cx.backend_context(&requester, unix);
    let bucket = RequestBucket::of(&gateway.storage, &backend_cx, &settings.account, call::resource(target));
    let operation = match route {
        Some(Route::Operation(operation)) => operation,
        Some(Route::Refused(error)) => return Err(error),
        Some(Route::RefusedInBucket(error)) => return Err(bucket.refusal(error).await),
        None => return Err(ErrorCode::InvalidURI.into()),
    };
    let bucket = bucket.find(operation, &requester).await?;
    if gateway.observers.as_ref().is_some_and(|observers| observers.access_log.is_some()) {
        *rules = bucket.rules().cloned();
    }
    let asker = Asker {
        authorizer: &gateway.authorizer,
        requester: &requester,
        region: &gateway.signing.region,
        peer: cx.peer,
        now: cx.now,
        headers: &headers,
        signature,
        trail: cx.trail.as_ref(),
    };
    let call = Call {
        gateway,
        settings,
        cx,
        backend_cx: &backend_cx,
        head,
        headers: &headers,
        query,
        target,
        rules: bucket.rules(),
        versioning: bucket.versioning(),
        has_locks: bucket.has_locks(),
        operation,
        asker: &asker,
        signed,
        body,
        payload: Some(payload),
    };
    let outcome = match ops::dispatch(call) {
        Ok(work) => work.await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(bucket.refusal(error).await),
    }
}

/// A client that could move the object by RDMA sends this header. The answer's header
/// [`RDMA_REPLY`] says whether the server can.
const RDMA_TOKEN: &str = "x-amz-rdma-token";
const RDMA_REPLY: &str = "x-amz-rdma-reply";

/// Tells the client that nothing was stored or sent, and that it should ask again without RDMA.
fn decline_rdma() -> Reply {
    let mut reply = reply::empty(StatusCode::NOT_IMPLEMENTED);
    reply::set(reply.headers_mut(), RDMA_REPLY, "501");
    reply
}

/// The name the client used: the authority of an absolute URI (RFC 9112, section 3.2.2), or the
/// `Host` header.
fn host(head: &Parts) -> Option<&str> {
    let authority = head.uri.authority().map(http::uri::Authority::as_str);
    authority.or_else(|| head.headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

/// Refuses a head that is too large, or that a proxy could understand in another way than we do.
/// Returns the name the client used.
fn check_head(head: &Parts) -> Result<Option<&str>> {
    let (mut fields, mut hosts, mut authorizations, mut unknown_coding) = (0, 0, 0, false);
    for (name, value) in &head.headers {
        // "name: value\r\n"
        fields += name.as_str().len() + value.len() + 4;
        match *name {
            header::HOST => hosts += 1,
            header::AUTHORIZATION => authorizations += 1,
            header::TRANSFER_ENCODING => {
                unknown_coding |= !value.as_bytes().eq_ignore_ascii_case(b"chunked");
            }
            _ => {}
        }
    }
    if fields > limits::HEADER_SECTION_BYTES_MAX {
        return Err(S3Error::new(ErrorCode::RequestHeaderSectionTooLarge)
            .detail("MaxSizeAllowed", limits::HEADER_SECTION_BYTES_MAX.to_string()));
    }
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    if target > limits::TARGET_BYTES_MAX || hosts > 1 || authorizations > 1 {
        return Err(ErrorCode::InvalidURI.into());
    }
    let host = host(head);
    // RFC 9112, section 3.2.
    if head.version == Version::HTTP_11 && host.is_none() {
        return Err(ErrorCode::BadRequest.into());
    }
    if unknown_coding {
        return Err(S3Error::header_not_implemented("Transfer-Encoding"));
    }
    Ok(host)
}

/// Adds a line to the audit log for a request that is refused without one.
#[cold]
fn note_refusal(trail: &Trail, head: &Parts, known: &Known<'_>, error: &S3Error) {
    // A browser's question about another origin asks for no permission.
    let is_refusal = error.status() == StatusCode::FORBIDDEN
        || matches!(error.code(), ErrorCode::ExpiredToken | ErrorCode::InvalidToken);
    if is_refusal && head.method != Method::OPTIONS {
        let resource = known.target.as_ref().and_then(|target| call::resource(target).arn());
        trail.refused(known.requester.as_ref(), resource.as_deref(), errors::refusal(error));
    }
}

/// Adds the headers that every answer has.
fn finish(gateway: &Gateway, cx: &RequestContext, head: &Parts, reply: &mut Reply) {
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, HeaderValue::from_static("Slipway"));
    headers.insert(HOST_ID, gateway.host_id.header());
    if let Ok(id) = HeaderValue::from_bytes(cx.id.as_bytes()) {
        headers.insert(REQUEST_ID, id);
    }
    if head.method == Method::HEAD && reply.status().as_u16() >= 400 {
        *reply.body_mut() = ResponseBody::empty();
    }
}
