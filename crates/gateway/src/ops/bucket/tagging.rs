use backend::DocumentKind;
use bytes::Bytes;
use http::StatusCode;
use s3_types::S3Action;
use s3_wire::headers::ChecksumRequest;
use s3_wire::tags::{Tagged, checked};
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use super::documents::change;
use crate::access::Authorized;
use crate::body::ResponseBody;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// GetBucketTagging. The document is kept in the form of the answer.
pub struct GetBucketTagging;

impl<'a> Handler<'a> for GetBucketTagging {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let stored = storage.bucket_document(S3Action::GetBucketTagging, bucket, DocumentKind::Tagging).await;
        let document = stored
            .map_err(call.failed())?
            .ok_or_else(|| S3Error::new(ErrorCode::NoSuchTagSet).detail("BucketName", bucket.as_str()))?;
        let mut reply = reply::ok_xml(String::new());
        *reply.body_mut() = ResponseBody::bytes(document);
        Ok(reply.into())
    }
}

/// PutBucketTagging.
pub struct PutBucketTagging;

impl<'a> Handler<'a> for PutBucketTagging {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let parse = xml::TaggingRequest::parse;
        let document = call.read_document(checksum, limits::XML_BODY_BYTES_MAX, parse).await?;
        let tags = checked(document.tags, Tagged::Bucket)?;
        // As on S3, a bucket with an empty set of tags has none.
        let document = (!tags.is_empty()).then(|| Bytes::from(xml::tagging(tags.as_slice())));
        change(&call, DocumentKind::Tagging, document).await?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}

/// DeleteBucketTagging.
pub struct DeleteBucketTagging;

impl<'a> Handler<'a> for DeleteBucketTagging {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        change(&call, DocumentKind::Tagging, None).await?;
        Ok(reply::empty(StatusCode::NO_CONTENT).into())
    }
}
