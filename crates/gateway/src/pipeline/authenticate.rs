//! Identifies the requester, and determines how the request's body will be verified.

use std::borrow::Cow;

use backend::seldom::Seldom;
use http::HeaderMap;
use iam::{Identities, Requester, Unidentified, UsedService};
use s3_wire::auth::{self, Authorization, PayloadMode, SignatureFacts, SignedRequest};
use s3_wire::honoured::Signed;
use s3_wire::{ErrorCode, Result, S3Error, headers};

use crate::gateway::Gateway;
use crate::request::RequestContext;

/// The result of verifying a signature.
pub struct Authenticated<'a> {
    /// The requester.
    pub requester: Requester,
    /// The method by which the body will be verified.
    pub payload: PayloadMode,
    /// The headers, and the parameters of a presigned URL that replace headers.
    pub headers: Cow<'a, HeaderMap>,
    /// The place of the signature.
    pub signed: Signed,
    /// The signature; `None` for an anonymous requester.
    pub signature: Option<SignatureFacts>,
}

/// Verifies the signature. A request without one is anonymous.
pub async fn authenticate<'a>(
    gateway: &Gateway,
    identities: &dyn Identities,
    cx: &RequestContext,
    request: &SignedRequest<'a>,
) -> Result<Authenticated<'a>> {
    let authorization = Authorization::parse(request, &gateway.signing, cx.now)?;
    let Some(access_key) = authorization.access_key() else {
        let payload = auth::anonymous_payload(request)?;
        return Ok(Authenticated {
            requester: Requester::Anonymous,
            payload,
            headers: Cow::Borrowed(request.headers),
            signed: Signed::Headers,
            signature: None,
        });
    };
    let token = authorization.security_token();
    let found = match identities.known(access_key, token) {
        Some(found) => found,
        None => identities.find(access_key, token).await,
    };
    let session = found.map_err(|why| {
        if let Some(trail) = &cx.trail {
            trail.set_refused_key(access_key, &why);
        }
        unidentified(why, access_key, token)
    })?;
    if session.has_ended(cx.now) {
        cx.note_presented(access_key);
        return Err(unidentified(Unidentified::Expired, access_key, token));
    }
    let secret_key = session.credential.secret_key.expose();
    let payload = auth::verify(&authorization, request, secret_key, &gateway.signing_keys)
        .inspect_err(|_| cx.note_presented(access_key))?;
    gateway.registry.note_use(&session, cx.now, UsedService::S3, &gateway.signing.region);
    let signature = authorization.facts();
    let mut all = Cow::Borrowed(request.headers);
    let signed = match &authorization {
        _ if !authorization.is_presigned() => Signed::Headers,
        Authorization::SigV4(_) => Signed::UrlV4,
        _ => Signed::UrlV2,
    };
    // SigV4 signs the whole query. SigV2 does not: for it, `auth::effective_headers` did the same.
    if signed == Signed::UrlV4 && headers::is_hoisted(request.query) {
        headers::hoist_query(request.query, all.to_mut())?;
    }
    let requester = Requester::Session(session);
    Ok(Authenticated { requester, payload, headers: all, signed, signature })
}

/// Returns S3's error for a key that has no session. S3 does not reveal that a key was disabled;
/// for a wrong or outdated token, its error repeats the token.
#[cold]
fn unidentified(why: Unidentified, access_key: &str, token: Option<&str>) -> S3Error {
    static LOGGED: Seldom = Seldom::new(1);
    let of_token = |code| match token {
        Some(token) => S3Error::new(code).detail("Token-0", token),
        None => S3Error::new(code),
    };
    match why {
        Unidentified::UnknownKey | Unidentified::Inactive => {
            auth::invalid_access_key(access_key).caused_by(why)
        }
        Unidentified::Expired => of_token(ErrorCode::ExpiredToken),
        Unidentified::InvalidToken => of_token(ErrorCode::InvalidToken),
        Unidentified::Unavailable(_) => {
            if LOGGED.is_due() {
                tracing::error!(
                    %why,
                    "a request was refused, since its access key cannot be checked: the store of the keys does not answer, a \
                     document in it is damaged, or a master key is missing (logged at most once a minute)"
                );
            }
            S3Error::new(ErrorCode::ServiceUnavailable).caused_by(why)
        }
    }
}
