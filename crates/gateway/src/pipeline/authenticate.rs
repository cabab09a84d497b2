//! Who makes a request, and how its body will be verified.

use http::request::Parts;
use iam::Requester;
use s3_wire::auth::{self, Authorization, SignedRequest};
use s3_wire::payload::PayloadMode;
use s3_wire::{Query, Result};

use super::RequestContext;
use crate::gateway::Gateway;

/// Verifies the signature, if there is one.
pub fn authenticate(
    gateway: &Gateway,
    cx: &RequestContext,
    head: &Parts,
    query: &Query<'_>,
    host: Option<&str>,
    virtual_bucket: Option<&str>,
) -> Result<(Requester, PayloadMode)> {
    let request = SignedRequest {
        method: &head.method,
        raw_path: head.uri.path(),
        query,
        headers: &head.headers,
        host,
        virtual_bucket,
    };
    let authorization = Authorization::parse(&request, &gateway.signing, cx.now)?;
    let Some(access_key) = authorization.access_key() else {
        return Ok((Requester::Anonymous, auth::anonymous_payload(&request)?));
    };
    let credential =
        gateway.identities.find(access_key).ok_or_else(|| auth::invalid_access_key(access_key))?;
    let payload =
        auth::verify(&authorization, &request, credential.secret_key.expose(), &gateway.signing_keys)?;
    Ok((Requester::Root, payload))
}
