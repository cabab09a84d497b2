use backend::DocumentKind;
use http::StatusCode;
use s3_types::{Kept, PublicAccessBlock};
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use super::documents::{change, fresh_rules};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// GetPublicAccessBlock.
pub struct GetPublicAccessBlock;

impl<'a> Handler<'a> for GetPublicAccessBlock {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let block = fresh_rules(&call).await?.public_access_block(bucket).ok_or_else(|| {
            let code = ErrorCode::NoSuchPublicAccessBlockConfiguration;
            S3Error::new(code).detail("BucketName", bucket.as_str())
        })?;
        Ok(reply::ok_xml(xml::public_access_block(block)).into())
    }
}

/// PutPublicAccessBlock.
pub struct PutPublicAccessBlock;

impl<'a> Handler<'a> for PutPublicAccessBlock {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let (bytes_max, parse) = (limits::XML_BODY_BYTES_MAX, xml::parse_public_access_block);
        let block = call.read_document(checksum, bytes_max, parse).await?;
        put(&call, Kept::Set(block)).await?;
        Ok(reply::empty(StatusCode::OK).into())
    }
}

/// DeletePublicAccessBlock. A deletion is kept, too: without a document, the bucket would have the
/// default.
pub struct DeletePublicAccessBlock;

impl<'a> Handler<'a> for DeletePublicAccessBlock {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        put(&call, Kept::Deleted).await?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}

async fn put(call: &Call<'_>, kept: Kept<PublicAccessBlock>) -> Result<()> {
    change(call, DocumentKind::PublicAccessBlock, kept.document().map(Into::into)).await
}
