//! Checks whether a signature is valid at the present time.

use http::header::DATE;
use http::{HeaderMap, HeaderName};
use s3_types::Timestamp;

use crate::error::{ErrorCode, Result, S3Error};
use crate::limits::CLOCK_SKEW_SECONDS_MAX;
use crate::time::{format_iso8601, parse_http_date, parse_iso_basic};

/// Returns the time at which a request with an `Authorization` header was signed, and its text:
/// those of `x-amz-date` or, if that is missing, of `Date`.
pub(super) fn request_time(headers: &HeaderMap) -> Result<(Timestamp, &str)> {
    const AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
    let text = headers.get(AMZ_DATE).or_else(|| headers.get(DATE));
    let text = text.and_then(|value| value.to_str().ok());
    let time = text.and_then(|text| parse_iso_basic(text).or_else(|| parse_http_date(text)));
    // No request was signed before 1970: such a date is broken, not skewed.
    let time = time.filter(|time| time.as_second() >= 0);
    time.zip(text).ok_or_else(|| {
        let message = "AWS authentication requires a valid Date or x-amz-date header";
        S3Error::with_message(ErrorCode::AccessDenied, message)
    })
}

/// Refuses a time that is too far from the server's (`RequestTimeTooSkewed`). `sent` is its text.
pub(super) fn check_skew(time: Timestamp, sent: &str, now: Timestamp) -> Result<()> {
    if time.as_second().abs_diff(now.as_second()) <= CLOCK_SKEW_SECONDS_MAX.unsigned_abs() {
        return Ok(());
    }
    Err(S3Error::new(ErrorCode::RequestTimeTooSkewed)
        .detail("RequestTime", sent)
        .detail("ServerTime", format_iso8601(now))
        .detail("MaxAllowedSkewMilliseconds", (CLOCK_SKEW_SECONDS_MAX * 1000).to_string()))
}

/// Refuses a presigned URL after its last second (`AccessDenied`). `lifetime_seconds` is for the
/// error: a SigV4 URL has a lifetime, a SigV2 URL only an end.
pub(super) fn check_expiry(end_second: i64, lifetime_seconds: Option<i64>, now: Timestamp) -> Result<()> {
    if now.as_second() <= end_second {
        return Ok(());
    }
    let mut error = S3Error::with_message(ErrorCode::AccessDenied, "Request has expired");
    if let Some(seconds) = lifetime_seconds {
        error = error.detail("X-Amz-Expires", seconds.to_string());
    }
    let end = Timestamp::from_second(end_second).unwrap_or(Timestamp::MIN);
    Err(error.detail("Expires", format_iso8601(end)).detail("ServerTime", format_iso8601(now)))
}
