use backend::DocumentKind;
use http::StatusCode;
use s3_types::{Kept, ObjectOwnership};
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use super::documents::{change, fresh_rules};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// GetBucketOwnershipControls.
pub struct GetBucketOwnershipControls;

impl<'a> Handler<'a> for GetBucketOwnershipControls {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let rules = fresh_rules(&call).await?;
        Ok(reply::ok_xml(xml::ownership_controls(rules.access.ownership)).into())
    }
}

/// PutBucketOwnershipControls.
pub struct PutBucketOwnershipControls;

impl<'a> Handler<'a> for PutBucketOwnershipControls {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let (bytes_max, parse) = (limits::XML_BODY_BYTES_MAX, xml::parse_ownership_controls);
        let ownership = call.read_document(checksum, bytes_max, parse).await?;
        if ownership != ObjectOwnership::BucketOwnerEnforced {
            let message = format!("ObjectOwnership {ownership} is not implemented.");
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        let document = Kept::Set(ownership).document().map(Into::into);
        change(&call, DocumentKind::OwnershipControls, document).await?;
        Ok(reply::empty(StatusCode::OK).into())
    }
}
