//! `OPTIONS`, which browsers send to ask whether a page may send a request to another origin.

use http::HeaderMap;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, ORIGIN};
use iam::Requester;
use s3_types::BucketName;
use s3_wire::{ErrorCode, S3Error};

use crate::gateway::Gateway;
use crate::request::RequestContext;

/// Returns S3's refusal, since no bucket here has a CORS configuration. Browsers do not sign these
/// requests.
pub async fn preflight(
    gateway: &Gateway,
    cx: &RequestContext,
    bucket: Option<&BucketName>,
    headers: &HeaderMap,
) -> S3Error {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    if text(ORIGIN).is_none() {
        let message = "Insufficient information. Origin request header needed.";
        return S3Error::with_message(ErrorCode::BadRequest, message);
    }
    let method = text(ACCESS_CONTROL_REQUEST_METHOD).unwrap_or("OPTIONS");
    if !["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"].contains(&method) {
        let message = format!("Invalid Access-Control-Request-Method: {method}");
        return S3Error::with_message(ErrorCode::BadRequest, message);
    }
    let error = match bucket {
        Some(bucket) => {
            match gateway
                .storage
                .bucket_exists(&cx.backend_context(&Requester::Anonymous, None), bucket)
                .await
            {
                Ok(false) => missing_bucket(),
                _ => ErrorCode::AccessForbidden.into(),
            }
        }
        None => missing_bucket(),
    };
    error.detail("Method", method).detail("ResourceType", "BUCKET")
}

fn missing_bucket() -> S3Error {
    S3Error::with_message(ErrorCode::AccessForbidden, "CORSResponse: Bucket not found")
}
