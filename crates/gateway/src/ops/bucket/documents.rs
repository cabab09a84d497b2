//! Changes of a bucket's configuration documents.

use std::sync::Arc;

use backend::{BackendError, BucketState, DocumentChanges, DocumentKind};
use bytes::Bytes;
use iam::{BucketRules, Resource};
use policy::Value;
use s3_wire::{ErrorCode, Result, S3Error};

use crate::access::{KnownRules, Subject};
use crate::call::Call;
use crate::closed;
use crate::limits::DOCUMENT_CHANGES_MAX;

/// Replaces a document of the bucket, or removes it. It is not an error to remove one that does not
/// exist.
///
/// The state of the bucket is read anew, since the one in memory may be older than the last change.
/// The permission is checked again by the rules of that state, so that a requester who has lost it
/// meanwhile changes nothing.
pub async fn change(call: &Call<'_>, kind: DocumentKind, document: Option<Bytes>) -> Result<()> {
    change_if(call, kind, document, |_, _| Ok(())).await
}

/// Does the same as [`change`] if `check` agrees to the state of the bucket that is changed, and to
/// the rules that the change is made by.
pub async fn change_if(
    call: &Call<'_>,
    kind: DocumentKind,
    document: Option<Bytes>,
    check: impl Fn(&BucketState, &BucketRules) -> Result<()> + Send + Sync,
) -> Result<()> {
    let (bucket, account) = (call.bucket()?, &call.settings.account);
    let changes = DocumentChanges::from([(kind, document)]);
    let defaults = call.gateway.storage.bucket_defaults();
    for _ in 0..DOCUMENT_CHANGES_MAX {
        let state = call.gateway.storage.load_bucket(call.backend_cx, bucket).await.map_err(call.failed())?;
        closed::check(&state, account, defaults, call.asker.requester)?;
        let rules = KnownRules::of(&state, account, defaults).ok_or(ErrorCode::InternalError)?;
        let resource = Resource { bucket: Some(bucket), key: None };
        let subject = Subject { resource, rules: Some(&rules.rules) };
        let storage = call.authorize(subject, call.action().into(), &|_| Value::Absent)?;
        check(&state, &rules.rules)?;
        let is_missing = state.closed.is_none() && !state.documents.contains_key(&kind);
        if is_missing && kind.is_in_state() && changes.values().all(Option::is_none) {
            return Ok(());
        }
        match storage.change_bucket(call.action(), bucket, &state.tag, &changes).await {
            Err(BackendError::BucketChanged) => {}
            outcome => return outcome.map_err(call.failed()),
        }
    }
    Err(call.fail(BackendError::BucketChanged))
}

/// Returns the rules of the bucket as they are now. If one of its documents cannot be read, it is
/// not known what the bucket says: that is an error, also for root, who can replace the document.
pub async fn fresh_rules(call: &Call<'_>) -> Result<Arc<BucketRules>> {
    let storage = &call.gateway.storage;
    let state = storage.load_bucket(call.backend_cx, call.bucket()?).await.map_err(call.failed())?;
    let known = KnownRules::of(&state, &call.settings.account, storage.bucket_defaults());
    let known = known.ok_or(ErrorCode::InternalError)?;
    match state.closed.as_deref().or(known.closed) {
        Some(why) => Err(S3Error::new(ErrorCode::InternalError).caused_by(why.to_owned())),
        None => Ok(Arc::clone(&known.rules)),
    }
}
