use backend::{BackendError, DeleteReceipt, DeleteRequest, ObjectRef};
use futures_util::stream::{self, StreamExt as _};
use http::StatusCode;
use iam::Resource;
use s3_types::{ActionSet, BucketName, Conditions, ObjectKey, S3Action, VersionId};
use s3_wire::headers::ChecksumRequest;
use s3_wire::xml::{DeleteEntry, DeleteMarker, DeleteObjectsRequest, DeleteOutcome, delete_result};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use crate::access::{Authorized, Subject, has_ended};
use crate::call::Call;
use crate::errors::{from_backend, refusal};
use crate::fair_share::FairShare;
use crate::limits::DELETE_CONCURRENCY;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::NULL;
use crate::outcome::Outcome;
use crate::reply;

/// DeleteObjects.
pub struct DeleteObjects {
    checksum: ChecksumRequest,
    bypasses: bool,
}

impl<'a> Handler<'a> for DeleteObjects {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { checksum: ChecksumRequest::required(call.headers)?, bypasses: values::bypasses(call)? })
    }

    /// Returns no actions for the bucket, since the permission is checked for each key.
    fn needs(&self, _: &Call<'a>) -> ActionSet {
        ActionSet::NONE
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        call.require_bucket().await?;
        let bytes_max = limits::DELETE_BODY_BYTES_MAX;
        let request = call.read_document(self.checksum, bytes_max, DeleteObjectsRequest::parse).await?;
        let call = &call;
        // All are decided before the first one is deleted.
        let mut allowed = Vec::with_capacity(request.objects.len());
        // A decision by many policies takes milliseconds.
        let mut share = FairShare::begin();
        for entry in &request.objects {
            share.rest().await;
            allowed.push(Deletion::allow(call, bucket, entry, self.bypasses));
        }
        // Made before they are polled: a stream of borrowing closures is not known to be `Send`.
        let deletions: Vec<_> = allowed.into_iter().map(|deletion| delete_one(call, deletion)).collect();
        let outcomes: Vec<_> = stream::iter(deletions).buffered(DELETE_CONCURRENCY).collect().await;
        let writer = delete_result(request.objects.len());
        let outcomes = request.objects.into_iter().zip(outcomes);
        let shown = outcomes.filter(move |(_, outcome)| outcome.is_err() || !request.quiet);
        let reply = reply::ok_entries(writer, shown, |(entry, outcome), writer| {
            let (key, version_id) = (entry.key_text(), entry.version_id.as_deref());
            let outcome = match &outcome {
                Ok(receipt) => DeleteOutcome::Deleted { key, version_id, delete_marker: marker(receipt) },
                Err(error) => {
                    DeleteOutcome::Failed { key, version_id, code: error.code(), message: error.message() }
                }
            };
            outcome.write(writer);
        });
        Ok(reply.into())
    }
}

/// Returns the delete marker that was made or removed, if any. It may be the null version.
fn marker(receipt: &DeleteReceipt) -> Option<DeleteMarker<'_>> {
    let version_id = receipt.version.as_ref().map_or(NULL, VersionId::as_str);
    receipt.delete_marker.then_some(DeleteMarker { version_id })
}

/// A deletion of a key that is allowed.
struct Deletion<'r> {
    storage: Authorized<'r>,
    bucket: &'r BucketName,
    key: &'r ObjectKey,
    version: Option<VersionId>,
    conditions: &'r Conditions,
    bypass_governance: bool,
}

impl<'r> Deletion<'r> {
    fn allow<'a: 'r>(
        call: &Call<'a>,
        bucket: &'r BucketName,
        entry: &'r DeleteEntry,
        bypass_governance: bool,
    ) -> Result<Self> {
        let key = entry.key.as_ref().map_err(|none| S3Error::new(none.code))?;
        let version = entry.version_id.as_deref().map(VersionId::new).transpose();
        let version = version.map_err(|_| no_such_version())?;
        let conditions = &entry.conditions;
        let about = About { version: version.as_ref(), conditions: Some(conditions) };
        let resource = Resource { bucket: Some(bucket), key: Some(key) };
        let subject = Subject { resource, rules: call.rules };
        let actions = about.actions(S3Action::DeleteObject);
        let storage = call.authorize(subject, actions, &|key| about.value(key)).inspect_err(|error| {
            // Whatever else is refused here was decided.
            if error.code() == ErrorCode::ExpiredToken {
                note_refusal(call, resource, error);
            }
        })?;
        let storage = if bypass_governance { storage.with_bypass(&|key| about.value(key)) } else { storage };
        Ok(Self { storage, bucket, key, version, conditions, bypass_governance })
    }
}

/// Returns the error for an invalid version id, whatever the storage says about the id: only
/// DeleteObject answers that an id is invalid.
fn no_such_version() -> S3Error {
    S3Error::new(ErrorCode::NoSuchVersion)
}

async fn delete_one(call: &Call<'_>, deletion: Result<Deletion<'_>>) -> Result<DeleteReceipt> {
    let Deletion { storage, bucket, key, version, conditions, bypass_governance } = deletion?;
    let object = ObjectRef::current(bucket, key).of(version.as_ref());
    let deleted =
        storage.delete_object(DeleteRequest { object, conditions, bypass_governance, check: None }).await;
    deleted.map_err(|error| {
        if matches!(error, BackendError::InvalidVersionId(_)) {
            return no_such_version();
        }
        let resource = Resource { bucket: Some(bucket), key: Some(key) };
        // What policies decide by the object is told where they do.
        let is_decided = matches!(error, BackendError::NotAllowed) && !has_ended(call.asker.requester);
        let error = from_backend(error, resource);
        call.site().log(&error);
        if error.status() == StatusCode::FORBIDDEN && !is_decided {
            note_refusal(call, resource, &error);
        }
        error
    })
}

/// Adds a line to the audit log for a key that is refused for another reason than policies: by the
/// kernel, or since the session has ended. The status of the whole request (200) does not show it.
#[cold]
fn note_refusal(call: &Call<'_>, resource: Resource<'_>, error: &S3Error) {
    if let Some(trail) = call.asker.trail {
        let arn = resource.arn();
        trail.refused_part(call.asker.requester, arn.as_deref(), refusal(error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_marker_is_told_apart_from_a_version() {
        let told = |id: Option<&str>, delete_marker| {
            let version = id.map(|id| VersionId::new(id).unwrap());
            marker(&DeleteReceipt { existed: true, version, delete_marker })
                .map(|marker| marker.version_id.to_owned())
        };
        assert_eq!([Some("id"), None].map(|id| told(id, true)), [Some("id".into()), Some("null".into())]);
        assert_eq!([Some("id"), None].map(|id| told(id, false)), [None, None]);
    }
}
