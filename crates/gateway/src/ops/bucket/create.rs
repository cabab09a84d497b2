use std::borrow::Cow;

use backend::{BackendError, CreateBucketRequest};
use http::StatusCode;
use iam::ConditionKey;
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use crate::access::Authorized;
use crate::call::{Call, resource};
use crate::ops::handler::{Handler, Needs};
use crate::outcome::Outcome;
use crate::reply;

/// CreateBucket.
pub struct CreateBucket;

impl<'a> Handler<'a> for CreateBucket {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    /// The region is in the document. An anonymous requester is refused before that is read.
    fn needs(&self, call: &Call<'a>) -> Needs {
        if call.asker.requester.is_anonymous() { Needs::Now(call.action().into()) } else { Needs::Later }
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let expected = ChecksumRequest::parse(call.headers)?;
        let parse = xml::CreateBucketConfiguration::parse;
        let asked = call.read_document(expected, limits::XML_BODY_BYTES_MAX, parse).await?;
        let region = call.gateway.signing.region.as_str();
        if asked.has_tags || asked.is_directory_bucket {
            let message = "Tags and directory buckets are not implemented.";
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        let location = asked.location_constraint.as_deref().filter(|location| !location.is_empty());
        let values = |key| location.filter(|_| key == ConditionKey::LocationConstraint).map(Cow::Borrowed);
        let storage = call.authorize(resource(call.target), call.action().into(), &values)?;
        check_location(asked.location_constraint.as_deref(), region)?;
        let request = CreateBucketRequest::plain(bucket);
        match storage.create_bucket(request).await {
            Ok(()) => {}
            // The oldest region has always answered so, and programs rely on it.
            Err(BackendError::BucketExists) if region == "us-east-1" => {}
            Err(error) => return Err(call.failed()(error)),
        }
        let mut reply = reply::empty(StatusCode::OK);
        reply::set(reply.headers_mut(), "location", format!("/{bucket}"));
        reply::set(reply.headers_mut(), "x-amz-bucket-arn", bucket.arn());
        Ok(reply.into())
    }
}

/// A bucket can only be made in the gateway's region. `us-east-1` is named by an absent constraint,
/// and only by that.
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
