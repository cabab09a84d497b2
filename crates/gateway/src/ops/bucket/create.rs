use backend::{BackendError, CreateBucketRequest};
use http::StatusCode;
use s3_wire::headers::ChecksumRequest;
use s3_wire::{ErrorCode, Result, S3Error, limits, xml};

use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// CreateBucket.
pub struct CreateBucket;

impl<'a> Handler<'a> for CreateBucket {
    fn parse(_: &Call<'a>) -> Result<Self> {
        Ok(Self)
    }

    async fn perform(self, mut call: Call<'a>) -> Result<Outcome> {
        let bucket = call.bucket()?;
        let expected = ChecksumRequest::parse(call.headers)?;
        let parse = xml::CreateBucketConfiguration::parse;
        let asked = call.read_document(expected, limits::XML_BODY_BYTES_MAX, parse).await?;
        let region = call.gateway.signing.region.as_str();
        if asked.has_tags || asked.is_directory_bucket {
            let message = "Tags and directory buckets are not implemented.";
            return Err(S3Error::with_message(ErrorCode::NotImplemented, message));
        }
        check_location(asked.location_constraint.as_deref(), region)?;
        let request = CreateBucketRequest::plain(bucket);
        match call.backend().create_bucket(call.backend_cx, request).await {
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
