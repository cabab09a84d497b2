use backend::{DocumentKind, Documents, LockRules, Versioning};
use http::StatusCode;
use s3_wire::headers::ChecksumRequest;
use s3_wire::xml::{VersioningStatus, versioning_configuration};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use super::documents::change_if;
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// PutBucketVersioning.
pub struct PutBucketVersioning {
    checksum: ChecksumRequest,
}

impl<'a> Handler<'a> for PutBucketVersioning {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { checksum: ChecksumRequest::parse(call.headers)? })
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let (bytes_max, parse) = (limits::XML_BODY_BYTES_MAX, VersioningStatus::parse);
        let versioning = match call.read_document(self.checksum, bytes_max, parse).await? {
            VersioningStatus::Enabled => Versioning::Enabled,
            VersioningStatus::Suspended => Versioning::Suspended,
        };
        change_if(&call, DocumentKind::Versioning, versioning.document(), |state, _| {
            let has_locks = LockRules::of(&state.documents) != Ok(None);
            if versioning == Versioning::Enabled || !has_locks {
                return Ok(());
            }
            let message = "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.";
            Err(S3Error::with_message(ErrorCode::InvalidBucketState, message))
        })
        .await?;
        Ok(reply::empty(StatusCode::OK).into())
    }
}

/// GetBucketVersioning.
pub struct GetBucketVersioning;

impl<'a> Handler<'a> for GetBucketVersioning {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let kind = DocumentKind::Versioning;
        let document = storage.bucket_document(call.action(), call.bucket()?, kind).await;
        let document = document.map_err(call.failed())?.map(|document| (kind, document));
        let status = status(&document.into_iter().collect())?;
        Ok(reply::ok_xml(versioning_configuration(status)).into())
    }
}

/// Returns the status that documents say. An unknown document is an error, also for root, who can
/// replace it.
fn status(documents: &Documents) -> Result<Option<VersioningStatus>> {
    match Versioning::of(documents) {
        Some(Versioning::Unset) => Ok(None),
        Some(Versioning::Enabled) => Ok(Some(VersioningStatus::Enabled)),
        Some(Versioning::Suspended) => Ok(Some(VersioningStatus::Suspended)),
        None => {
            let cause = "the bucket's versioning configuration has an unknown form";
            Err(S3Error::new(ErrorCode::InternalError).caused_by(cause))
        }
    }
}
