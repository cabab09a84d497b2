use std::io::BufRead;
use std::sync::Arc;

use backend::{BucketState, DocumentKind};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use iam::{BucketRules, Decision, Policy, PolicyKind};
use policy::Value;
use s3_types::S3Action;
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use super::documents::{change, change_if};
use crate::access::{Authorized, Subject};
use crate::body::ResponseBody;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;
use crate::reply;

/// PutBucketPolicy.
pub struct PutBucketPolicy {
    checksum: ChecksumRequest,
    /// True if the request confirms that the policy may take from the requester the right to change
    /// it.
    confirmed: bool,
}

impl<'a> Handler<'a> for PutBucketPolicy {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let confirmed = values::header(call, "x-amz-confirm-remove-self-bucket-access")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Self { checksum: ChecksumRequest::parse(call.headers)?, confirmed })
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        require_own_account(&call)?;
        if !call.gateway.authorizer.uses_bucket_policies() {
            let message = "Bucket policies are not implemented with --allow-same-names, where several keys \
                may be one object.";
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        let bucket = call.bucket()?;
        let bytes_max = limits::POLICY_BODY_BYTES_MAX;
        let document = call.read_document(self.checksum, bytes_max, whole).await?;
        let policy = Policy::parse(&document, PolicyKind::Bucket(bucket.as_str())).map_err(|malformed| {
            S3Error::with_message(ErrorCode::MalformedPolicy, malformed.s3_message()).caused_by(malformed)
        })?;
        let document = with_ids(&call, document).await?;
        if !self.confirmed {
            require_access_after(&call, &document)?;
        }
        let is_public = policy.is_public();
        let check = |_: &BucketState, rules: &BucketRules| {
            let blocks = rules.blocks(bucket).block_public_policy;
            if blocks && is_public { Err(blocked(&call)) } else { Ok(()) }
        };
        change_if(&call, DocumentKind::Policy, Some(document), check).await?;
        if is_public {
            tracing::info!(
                id = call.cx.id.as_str(),
                bucket = bucket.as_str(),
                "a policy was put that makes its bucket public"
            );
        }
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}

/// Returns the refusal of a public policy.
fn blocked(call: &Call<'_>) -> S3Error {
    call.refused_because("public policies are blocked by the BlockPublicPolicy block public access setting")
}

/// Replaces the ARNs of principals by unique ids, the form in which policies are stored.
async fn with_ids(call: &Call<'_>, document: Bytes) -> Result<Bytes> {
    let registry = &call.gateway.registry;
    let text = std::str::from_utf8(&document).unwrap_or_default();
    if registry.last_known().with_ids(text) == Ok(None) {
        return Ok(document);
    }
    // A second is too old for who creates a user and then grants it something.
    let state = registry.look().await;
    let state = state.map_err(|why| S3Error::new(ErrorCode::ServiceUnavailable).caused_by(why))?;
    match state.with_ids(text) {
        Ok(None) => Ok(document),
        Ok(Some(stored)) => Ok(stored.into()),
        Err(why) => {
            let message = "Invalid principal in policy";
            let error = S3Error::with_message(ErrorCode::MalformedPolicy, message);
            Err(error.detail("Detail", format!("\"AWS\" : \"{}\"", why.0)).caused_by(why))
        }
    }
}

/// Reads a document that is stored unchanged.
fn whole(body: &mut dyn BufRead) -> Result<Bytes> {
    let mut bytes = Vec::new();
    body.read_to_end(&mut bytes).map_err(|error| S3Error::new(ErrorCode::IncompleteBody).caused_by(error))?;
    Ok(bytes.into())
}

/// Refuses a requester of another account than the bucket's owner, whatever a policy allows.
///
/// Source: "PutBucketPolicy", "GetBucketPolicy" and "DeleteBucketPolicy" in the S3 API reference.
fn require_own_account(call: &Call<'_>) -> Result<()> {
    let requester = call.asker.requester;
    let is_of_owner =
        || requester.session().is_some_and(|session| session.principal.account.id() == call.account().id());
    if requester.is_root() || is_of_owner() {
        return Ok(());
    }
    Err(S3Error::method_not_allowed(&call.head.method, "BUCKETPOLICY", ""))
}

/// Refuses a policy by which the requester could not change the policy any more, since usually this
/// is a mistake. A request can confirm that it is intended.
fn require_access_after(call: &Call<'_>, document: &Bytes) -> Result<()> {
    let Some(now) = call.rules else { return Ok(()) };
    let then = Arc::new(now.with_policy(Some(document.clone())));
    let subject = Subject { resource: call.subject().resource, rules: Some(&then) };
    if call.asker.decide(S3Action::PutBucketPolicy, subject, &|_| Value::Absent) == Decision::Allow {
        return Ok(());
    }
    let message = "The policy would not allow you to change it again. To put it nevertheless, send \
        x-amz-confirm-remove-self-bucket-access: true.";
    Err(S3Error::with_message(ErrorCode::AccessDenied, message))
}

/// GetBucketPolicy.
pub struct GetBucketPolicy;

impl<'a> Handler<'a> for GetBucketPolicy {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        require_own_account(&call)?;
        let document = stored(&call, &storage).await?;
        let text = std::str::from_utf8(&document).unwrap_or_default();
        let document = call.gateway.registry.last_known().with_arns(text).map_or(document, Bytes::from);
        let mut reply = reply::empty(StatusCode::OK);
        *reply.body_mut() = ResponseBody::bytes(document);
        reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(reply.into())
    }
}

/// Returns the policy as it is stored; `NoSuchBucketPolicy` if there is none.
async fn stored(call: &Call<'_>, storage: &Authorized<'_>) -> Result<Bytes> {
    let bucket = call.bucket()?;
    let stored = storage.bucket_document(call.action(), bucket, DocumentKind::Policy).await;
    stored
        .map_err(call.failed())?
        .ok_or_else(|| S3Error::new(ErrorCode::NoSuchBucketPolicy).detail("BucketName", bucket.as_str()))
}

/// GetBucketPolicyStatus.
pub struct GetBucketPolicyStatus;

impl<'a> Handler<'a> for GetBucketPolicyStatus {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let document = stored(&call, &storage).await?;
        let policy = Policy::parse(&document, PolicyKind::Bucket(call.bucket()?.as_str()));
        // One that cannot be read denies everyone everything.
        let is_public = policy.is_ok_and(|policy| policy.is_public());
        Ok(reply::ok_xml(xml::policy_status(is_public)).into())
    }
}

/// DeleteBucketPolicy.
pub struct DeleteBucketPolicy;

impl<'a> Handler<'a> for DeleteBucketPolicy {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        require_own_account(&call)?;
        change(&call, DocumentKind::Policy, None).await?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}
