use backend::{BackendError, CreateBucketRequest, DocumentKind, Documents, LockRules, Versioning};
use bytes::Bytes;
use http::StatusCode;
use iam::{AccountId, ConditionKey};
use policy::Value;
use s3_types::{ActionSet, BucketName, S3Action};
use s3_wire::headers::ChecksumRequest;
use s3_wire::tags::{Tagged, checked};
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use crate::access::{Authorized, KnownRules};
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;
use crate::reply;

/// CreateBucket.
pub struct CreateBucket;

impl<'a> Handler<'a> for CreateBucket {
    /// Reads the input. An anonymous requester is refused, since no policy can allow it this.
    fn parse(call: &Call<'a>) -> Result<Self> {
        if call.asker.requester.is_anonymous() {
            let message = "Anonymous users cannot invoke this API. Please authenticate.";
            return Err(S3Error::with_message(ErrorCode::AccessDenied, message));
        }
        Ok(Self)
    }

    /// Returns no actions: the permission depends on the region, which is in the document, and is
    /// checked once that was read.
    fn needs(&self, _: &Call<'a>) -> ActionSet {
        ActionSet::NONE
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let expected = ChecksumRequest::parse(call.headers)?;
        let parse = xml::CreateBucketConfiguration::parse;
        let asked = call.read_document(expected, limits::XML_BODY_BYTES_MAX, parse).await?;
        let region = call.gateway.signing.region.as_str();
        if asked.is_directory_bucket {
            let message = "Directory buckets are not implemented.";
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        let location = asked.location_constraint.as_deref().and_then(|asked| named_region(asked, region));
        let values = |key| value(&call, location, key);
        let own = ActionSet::from(call.action());
        let needs = if asked.tags.is_empty() { own } else { own.and(S3Action::TagResource) };
        let has_locks = wants_locks(&call);
        let of_locks =
            ActionSet::from(S3Action::PutBucketObjectLockConfiguration).and(S3Action::PutBucketVersioning);
        let needs = if has_locks { needs.or(of_locks) } else { needs };
        let needs = match values::header(&call, "x-amz-object-ownership") {
            Some(_) => needs.and(S3Action::PutBucketOwnershipControls),
            None => needs,
        };
        let storage = call.authorize(call.subject(), needs, &values)?;
        let tags = checked(asked.tags, Tagged::NewBucket)?;
        check_location(asked.location_constraint.as_deref(), region)?;
        let account = call.account().id();
        let owner = (account != call.settings.account.id()).then(|| account.as_str());
        let has_tags = !tags.is_empty();
        let document = has_tags.then(|| (DocumentKind::Tagging, Bytes::from(xml::tagging(tags.as_slice()))));
        let mut documents = Documents::from_iter(document);
        if has_locks {
            documents.extend(Versioning::Enabled.document().map(|on| (DocumentKind::Versioning, on)));
            documents.insert(DocumentKind::ObjectLock, LockRules::default().document());
        }
        let request = CreateBucketRequest { owner, documents, ..CreateBucketRequest::plain(bucket) };
        match storage.create_bucket(request).await {
            Ok(()) => {}
            Err(BackendError::BucketExists) if !is_of(&call, account).await? => {
                return Err(of_another(bucket));
            }
            // The oldest region has always answered so, and programs rely on it.
            // With tags it does not, whether or not they are those of the bucket, and a client that
            // wants locks must not take a bucket without them for one that has them.
            Err(BackendError::BucketExists) if region == "us-east-1" && !has_tags && !has_locks => {}
            Err(error) => return Err(call.fail(error)),
        }
        let mut reply = reply::empty(StatusCode::OK);
        reply::set(reply.headers_mut(), "location", format!("/{bucket}"));
        reply::set(reply.headers_mut(), "x-amz-bucket-arn", bucket.arn());
        Ok(reply.into())
    }
}

/// Returns the error for a bucket that exists and is not known to be the requester's. The log says
/// which of the causes of this answer it is.
fn of_another(bucket: &BucketName) -> S3Error {
    S3Error::new(ErrorCode::BucketAlreadyExists).detail("BucketName", bucket.as_str()).caused_by(
        "the bucket exists, and belongs to another account, or is closed, so that its owner is not known",
    )
}

/// True if versions of the new bucket are to be locked.
fn wants_locks(call: &Call<'_>) -> bool {
    let asked = values::header(call, "x-amz-bucket-object-lock-enabled");
    asked.is_some_and(|asked| asked.eq_ignore_ascii_case("true"))
}

/// True if the bucket that exists belongs to the account.
async fn is_of(call: &Call<'_>, account: &AccountId) -> Result<bool> {
    let state = call.gateway.storage.load_bucket(call.backend_cx, call.bucket()?).await;
    let state = state.map_err(call.failed())?;
    let known = KnownRules::of(&state, &call.settings.account, call.gateway.storage.bucket_defaults());
    // The owner of a closed bucket is not known.
    let is_known = state.closed.is_none() || call.asker.requester.is_root();
    Ok(is_known && known.is_some_and(|known| known.rules.owner.id() == account))
}

/// Returns the value of a condition key.
fn value<'v>(call: &Call<'v>, location: Option<&'v str>, key: ConditionKey) -> Value<'v> {
    match key {
        ConditionKey::LocationConstraint => location.into(),
        ConditionKey::ObjectOwnership => values::header(call, "x-amz-object-ownership").into(),
        ConditionKey::BucketNamespace => values::header(call, "x-amz-bucket-namespace").into(),
        ConditionKey::Acl => values::of_new_upload(call, key),
        _ => Value::Absent,
    }
}

/// Returns the region that a location constraint names; `None` for an empty one, which names none.
fn named_region<'v>(asked: &'v str, own: &'v str) -> Option<&'v str> {
    match asked {
        "" => None,
        "auto" => Some(own),
        "EU" => Some("eu-west-1"),
        region => Some(region),
    }
}

/// Refuses a location constraint for another region than the gateway's. `us-east-1` is named by an
/// absent constraint, and only by that.
fn check_location(asked: Option<&str>, region: &str) -> Result<()> {
    match asked {
        None | Some("" | "auto") => Ok(()),
        Some(asked) if region == "us-east-1" => {
            Err(S3Error::new(ErrorCode::InvalidLocationConstraint).detail("LocationConstraint", asked))
        }
        Some(asked) if asked == region => Ok(()),
        Some("EU") if region == "eu-west-1" => Ok(()),
        Some(asked) => {
            let message = format!(
                "The {asked} location constraint is incompatible for the region specific endpoint this request was sent to."
            );
            Err(S3Error::with_message(ErrorCode::IllegalLocationConstraintException, message))
        }
    }
}
