use backend::{DocumentKind, LockRules, Versioning};
use http::StatusCode;
use s3_types::S3Action;
use s3_wire::headers::ChecksumRequest;
use s3_wire::xml::{lock_configuration, parse_lock_configuration};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use super::documents::change_if;
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// GetObjectLockConfiguration.
pub struct GetObjectLockConfiguration;

impl<'a> Handler<'a> for GetObjectLockConfiguration {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, kind) = (call.bucket()?, DocumentKind::ObjectLock);
        let action = S3Action::GetBucketObjectLockConfiguration;
        let document = storage.bucket_document(action, bucket, kind).await.map_err(call.failed())?;
        let documents = document.map(|document| (kind, document)).into_iter().collect();
        let rules = LockRules::of(&documents)
            .map_err(|unknown| S3Error::new(ErrorCode::InternalError).caused_by(unknown))?
            .ok_or_else(|| {
                let missing = S3Error::new(ErrorCode::ObjectLockConfigurationNotFoundError);
                missing.detail("BucketName", bucket.as_str())
            })?;
        Ok(reply::ok_xml(lock_configuration(rules.default)).into())
    }
}

/// PutObjectLockConfiguration.
pub struct PutObjectLockConfiguration {
    checksum: ChecksumRequest,
}

impl<'a> Handler<'a> for PutObjectLockConfiguration {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { checksum: ChecksumRequest::required(call.headers)? })
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let (bytes_max, parse) = (limits::XML_BODY_BYTES_MAX, parse_lock_configuration);
        let default = call.read_document(self.checksum, bytes_max, parse).await?;
        let document = LockRules { default }.document();
        // In the same step, so that nobody suspends versioning meanwhile.
        change_if(&call, DocumentKind::ObjectLock, Some(document), |state, _| {
            if Versioning::of(&state.documents) == Some(Versioning::Enabled) {
                return Ok(());
            }
            let message = "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration";
            Err(S3Error::with_message(ErrorCode::InvalidBucketState, message))
        })
        .await?;
        Ok(reply::empty(StatusCode::OK).into())
    }
}
