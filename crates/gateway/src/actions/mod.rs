//! The actions of IAM and STS, which come to the same port as S3
//! (docs/decisions/0043-iam-and-sts-on-the-port.md). This file is their pipeline, from top to
//! bottom.
//!
//! Each kind of thing (user, key, role, ...) has a file with its actions: the target of each, the
//! values that conditions may ask for, and the implementation.

mod account;
mod admin;
mod attached;
mod authorize;
mod bucket;
mod call;
mod details;
mod dispatch;
mod entities;
mod error;
mod group;
mod inline;
mod key;
mod ldap_identity;
mod perform;
mod place;
mod policy;
mod provider;
mod role;
mod service_key;
mod session;
mod simulate;
mod sources;
mod target;
mod unserved;
mod user;
mod web_identity;

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use iam::{Requester, Session, Unidentified, UsedService};
use iam_wire::limits::FORM_BYTES_MAX;
use iam_wire::{Action, ActionInfo, Form, QueryCode, QueryError, Secrets, Service};
use s3_wire::ErrorCode;
use s3_wire::auth::{ServiceAuthorization, ServiceScope, SignedRequest, SigningService, signed_service};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::audit::Refusal;
use crate::body::RequestBody;
use crate::gateway::{Gateway, Places, Settings};
use crate::limits::ACTION_BODY_TIME_MAX;
use crate::reply::{self, Reply};
use crate::request::RequestContext;
use call::ActionCall;
use ldap_identity::DirectoryLogin;
use web_identity::Login;

/// The actions whose requests are not signed, since their parameters contain another proof.
const LOGINS: [Action; 2] = [Action::AssumeRoleWithWebIdentity, Action::AssumeRoleWithLDAPIdentity];

/// The content type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// A request for an action, before any check.
pub struct ActionRequest<'a> {
    /// The gateway.
    pub gateway: &'a Gateway,
    /// The settings.
    pub settings: &'a Settings,
    /// The facts about the request.
    pub cx: &'a RequestContext,
    /// Method, URI and headers.
    pub head: &'a Parts,
    /// The parts of the request that a signature covers.
    pub signed: &'a SignedRequest<'a>,
}

/// Performs an action, and renders its answer or its error. `by` is set to the requester once that
/// is known.
pub async fn answer(request: ActionRequest<'_>, body: &mut RequestBody, by: &mut Option<Requester>) -> Reply {
    let mut service = None;
    let result = perform(&request, body, by, &mut service).await;
    let id = request.cx.id.as_str();
    let mut reply = match result {
        Ok(document) => reply::ok_xml(document),
        Err(error) => {
            log(&request, &error);
            note_refusal(&request, &error, by.as_ref());
            reply::xml(error.status(), error.render(service, id))
        }
    };
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/xml"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply::set(headers, "x-amzn-requestid", id);
    reply
}

/// Logs an error: a fault of the server as an error, all others as debug messages. Parameters may
/// be secrets, and are not logged.
fn log(request: &ActionRequest<'_>, error: &QueryError) {
    let id = request.cx.id.as_str();
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    let causes = Some(causes.join(": ")).filter(|causes| !causes.is_empty());
    if error.status().is_server_error() && error.code() != QueryCode::NotImplemented {
        tracing::error!(id, causes, "{error}");
    } else {
        tracing::debug!(id, causes, "{error}");
    }
}

/// Adds a line to the audit log for a refused request, unless there is one already.
fn note_refusal(request: &ActionRequest<'_>, error: &QueryError, by: Option<&Requester>) {
    // A token of a provider that does not count is no 403.
    let is_refusal = error.status() == StatusCode::FORBIDDEN
        || matches!(
            error.code(),
            QueryCode::ExpiredTokenException
                | QueryCode::InvalidIdentityToken
                | QueryCode::IDPCommunicationError
        );
    if let Some(trail) = request.cx.trail.as_ref().filter(|_| is_refusal) {
        trail.refused(by, None, Refusal::of_server(error.code().as_str()));
    }
}

async fn perform(
    request: &ActionRequest<'_>,
    body: &mut RequestBody,
    by: &mut Option<Requester>,
    service: &mut Option<Service>,
) -> Result<String, QueryError> {
    let ActionRequest { gateway, cx, head, signed, .. } = request;
    // Before the body, so that strangers have none of the places.
    let Some(claimed) = signed_service(signed.query, signed.headers) else {
        return perform_unsigned(request, body, service).await;
    };
    find_session(request, claimed).await?;
    let Some(_place) = gateway.actions.take() else {
        return Err(throttled());
    };
    let (bytes, _) = read_in_time(body, &head.headers, None).await?;
    let form = Form::parse(head.uri.query().unwrap_or_default().as_bytes(), &bytes)?;
    let row = Action::of(&form)?.info();
    *service = Some(row.service);
    if let Some(trail) = &cx.trail {
        trail.set_operation(row.name);
    }
    check_served(row)?;
    check_privacy(request, row)?;
    if LOGINS.contains(&row.action) {
        return login(request, row.action, &form).await;
    }
    let session = authenticate(request, row, &bytes).await?;
    let requester = Requester::Session(Arc::clone(&session));
    *by = Some(requester.clone());
    // A second is too old for who creates a user and then its key.
    let state = gateway.registry.look().await.map_err(error::unavailable)?;
    let account = state.account(session.principal.account.id()).cloned();
    let account = account.ok_or_else(|| {
        QueryError::new(QueryCode::ServiceUnavailable, "The account cannot be read at the moment.")
    })?;
    let asker = authorize::asker(gateway, cx, &head.headers, &requester);
    let call = ActionCall {
        registry: &gateway.registry,
        storage: &gateway.storage,
        unix: gateway.unix.as_ref(),
        state,
        account,
        session: &session,
        requester: &requester,
        asker: &asker,
        form: &form,
        request_id: cx.id.as_str(),
        now: cx.now,
    };
    call.check_session(row)?;
    dispatch::dispatch(row.action, &form, &call).await
}

/// Performs an action whose requests are not signed, and refuses all others. A request that cannot
/// be for such an action is refused before its body is read.
async fn perform_unsigned(
    request: &ActionRequest<'_>,
    body: &mut RequestBody,
    service: &mut Option<Service>,
) -> Result<String, QueryError> {
    let ActionRequest { gateway, head, signed, .. } = request;
    let is_login = |name: &str| LOGINS.iter().any(|action| action.info().name == name);
    if !signed.query.get("Action").map_or_else(|| is_form(&head.headers), is_login) {
        return Err(unsigned());
    }
    let (bytes, _held) = read_in_time(body, &head.headers, Some(&gateway.unsigned_bytes)).await?;
    let Some(_place) = gateway.unsigned_actions.take() else {
        return Err(throttled());
    };
    let form = Form::parse(head.uri.query().unwrap_or_default().as_bytes(), &bytes)?;
    let action = Action::of(&form).ok().filter(|action| LOGINS.contains(action)).ok_or_else(unsigned)?;
    let row = action.info();
    *service = Some(row.service);
    check_privacy(request, row)?;
    login(request, action, &form).await
}

async fn login(request: &ActionRequest<'_>, action: Action, form: &Form<'_>) -> Result<String, QueryError> {
    let ActionRequest { gateway, settings, cx, head, .. } = request;
    if let Some(trail) = &cx.trail {
        trail.set_operation(action.info().name);
    }
    let account = settings.account.id();
    if action == Action::AssumeRoleWithLDAPIdentity {
        return DirectoryLogin { gateway, account, cx }.perform(form).await;
    }
    Login { gateway, account, cx, headers: &head.headers }.perform(form).await
}

/// The bytes of a form, and their places, if those are counted.
type HeldForm = (Vec<u8>, Option<OwnedSemaphorePermit>);

async fn read_in_time(
    body: &mut RequestBody,
    headers: &HeaderMap,
    places: Option<&Places>,
) -> Result<HeldForm, QueryError> {
    let form = timeout(ACTION_BODY_TIME_MAX, read(body, headers, places)).await;
    form.map_err(|_| error::of_body(ErrorCode::RequestTimeout.into()))?
}

fn throttled() -> QueryError {
    QueryError::new(QueryCode::Throttling, "Rate exceeded")
}

/// True if the content type of the body is that of a form.
fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let kind = kind.map(|kind| kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii());
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(FORM.as_bytes()))
}

/// Reads the body, which is a form. With `places`, each byte takes one of them when it arrives.
async fn read(
    body: &mut RequestBody,
    headers: &HeaderMap,
    places: Option<&Places>,
) -> Result<HeldForm, QueryError> {
    let mut bytes = Vec::new();
    let mut held: Option<OwnedSemaphorePermit> = None;
    while let Some(piece) = body.next_raw().await.map_err(error::of_body)? {
        if bytes.len() + piece.len() > FORM_BYTES_MAX {
            let message = format!("A request has at most {FORM_BYTES_MAX} bytes of parameters.");
            return Err(QueryError::new(QueryCode::ValidationError, message));
        }
        if let Some(places) = places {
            let more = places.take_many(piece.len()).ok_or_else(throttled)?;
            match &mut held {
                Some(held) => held.merge(more),
                None => held = Some(more),
            }
        }
        bytes.extend_from_slice(&piece);
    }
    if bytes.is_empty() || is_form(headers) {
        return Ok((bytes, held));
    }
    let message = format!("The body of an action has the content type {FORM}.");
    Err(QueryError::new(QueryCode::ValidationError, message))
}

/// Refuses an action that is not implemented, naming it.
fn check_served(row: &ActionInfo) -> Result<(), QueryError> {
    if row.state.is_served() { Ok(()) } else { Err(QueryError::action_not_implemented(row.name)) }
}

/// Refuses an action with secrets if the connection can be listened to.
fn check_privacy(request: &ActionRequest<'_>, row: &ActionInfo) -> Result<(), QueryError> {
    let ActionRequest { gateway, cx, .. } = request;
    if row.secrets != Secrets::Plain && !gateway.secrets_in_clear && !is_private(cx) {
        return Err(in_clear(row));
    }
    Ok(())
}

/// True if no third party can listen to the connection: it is TLS, a Unix socket, or comes from
/// this machine.
fn is_private(cx: &RequestContext) -> bool {
    let peer = cx.peer;
    peer.secure || (!peer.proxied && peer.ip().is_none_or(|ip| ip.is_loopback()))
}

fn in_clear(row: &ActionInfo) -> QueryError {
    let message = format!(
        "{} has a secret in its request or its answer, which this server sends over TLS only. Use https; or a \
         shell on the gateway's machine, and its address 127.0.0.1; or start the server with --secrets-in-clear.",
        row.name
    );
    QueryError::new(QueryCode::AccessDenied, message)
}

fn unsigned() -> QueryError {
    QueryError::new(QueryCode::MissingAuthenticationToken, "Request is missing Authentication Token")
}

/// Finds the session of the key that the request names, for a service. The signature is not
/// verified here.
async fn find_session(
    request: &ActionRequest<'_>,
    service: SigningService,
) -> Result<(ServiceAuthorization, Arc<Session>), QueryError> {
    let ActionRequest { gateway, settings, cx, signed, .. } = request;
    let scope = ServiceScope { service, region: &gateway.signing.region };
    let authorization = ServiceAuthorization::parse(signed, &scope, cx.now)?.ok_or_else(unsigned)?;
    let (access_key, token) = (authorization.access_key(), authorization.security_token());
    let found = match settings.identities.known(access_key, token) {
        Some(found) => found,
        None => settings.identities.find(access_key, token).await,
    };
    let session = found.map_err(|why| {
        if let Some(trail) = &cx.trail {
            trail.set_refused_key(access_key, &why);
        }
        error::unidentified(why)
    })?;
    if session.has_ended(cx.now) {
        cx.note_presented(access_key);
        return Err(error::unidentified(Unidentified::Expired));
    }
    Ok((authorization, session))
}

/// Finds the session of the key that the request names, and verifies the signature.
async fn authenticate(
    request: &ActionRequest<'_>,
    row: &ActionInfo,
    body: &[u8],
) -> Result<Arc<Session>, QueryError> {
    let ActionRequest { gateway, cx, signed, .. } = request;
    let (authorization, session) = find_session(request, row.service.signed_for()).await?;
    let secret_key = session.credential.secret_key.expose();
    authorization
        .verify(signed, &error::sha256(body), secret_key, &gateway.signing_keys)
        .inspect_err(|_| cx.note_presented(authorization.access_key()))?;
    let used = if row.service == Service::Sts { UsedService::Sts } else { UsedService::Iam };
    gateway.registry.note_use(&session, cx.now, used, &gateway.signing.region);
    Ok(session)
}
