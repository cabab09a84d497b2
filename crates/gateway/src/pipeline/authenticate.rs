//! Who makes a request, and how its body will be verified.

use std::borrow::Cow;

use http::HeaderMap;
use iam::{Identities, Requester};
use s3_wire::auth::{self, Authorization, PayloadMode, SignatureFacts, SignedRequest};
use s3_wire::honoured::Signed;
use s3_wire::{ErrorCode, Result, headers};

use crate::gateway::Gateway;
use crate::request::RequestContext;

/// What is known once the signature has been verified.
pub struct Authenticated<'a> {
    /// Who signed.
    pub requester: Requester,
    /// How the body will be verified.
    pub payload: PayloadMode,
    /// The headers, and the parameters of a presigned URL that stand for headers.
    pub headers: Cow<'a, HeaderMap>,
    /// Where the signature is.
    pub signed: Signed,
    /// The signature; `None` for an anonymous requester.
    pub signature: Option<SignatureFacts>,
}

/// Verifies the signature. A request without one is anonymous.
pub async fn authenticate<'a>(
    gateway: &Gateway,
    identities: &Identities,
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
    // There are no temporary credentials yet, so that no token can be right.
    if authorization.security_token().is_some() {
        return Err(ErrorCode::InvalidToken.into());
    }
    let identity = identities.find(access_key).await.ok_or_else(|| auth::invalid_access_key(access_key))?;
    let secret_key = identity.credential.secret_key.expose();
    let payload = auth::verify(&authorization, request, secret_key, &gateway.signing_keys)?;
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
    let requester = Requester::Identity(identity.clone());
    Ok(Authenticated { requester, payload, headers: all, signed, signature })
}
