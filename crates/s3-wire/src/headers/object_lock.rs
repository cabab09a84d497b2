use http::HeaderMap;
use s3_types::{ObjectLock, Retention, RetentionMode, Timestamp};

use super::text::lossless;
use crate::error::{ErrorCode, Result, S3Error};
use crate::time::parse_iso8601;

const MODE: &str = "x-amz-object-lock-mode";
const UNTIL: &str = "x-amz-object-lock-retain-until-date";
const HOLD: &str = "x-amz-object-lock-legal-hold";
const BYPASS: &str = "x-amz-bypass-governance-retention";

/// S3's sentence about a retention that would have ended already.
pub(crate) const IN_THE_PAST: &str = "The retain until date must be in the future!";

/// Reads the lock of a new object (`x-amz-object-lock-*`). Its retention must end after `now`.
pub fn object_lock(headers: &HeaderMap, now: Timestamp) -> Result<ObjectLock> {
    let mode = lossless(headers, MODE);
    let until = lossless(headers, UNTIL);
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(_), None) => return Err(both_needed(UNTIL)),
        (None, Some(_)) => return Err(both_needed(MODE)),
        (Some(mode), Some(until)) => {
            let unknown = || S3Error::invalid_argument(MODE, mode.as_ref(), "Unknown wormMode directive.");
            let mode = RetentionMode::of(&mode).ok_or_else(unknown)?;
            let wrong = |message| S3Error::invalid_argument(UNTIL, until.as_ref(), message);
            let end = parse_iso8601(&until)
                .ok_or_else(|| wrong("The retain until date must be provided in ISO 8601 format"))?;
            if end <= now {
                return Err(wrong(IN_THE_PAST));
            }
            Some(Retention::new(mode, end))
        }
    };
    let legal_hold = match lossless(headers, HOLD).as_deref() {
        None => None,
        Some("ON") => Some(true),
        Some("OFF") => Some(false),
        Some(other) => {
            let message = "Legal Hold must be either of 'ON' or 'OFF'";
            return Err(S3Error::invalid_argument(HOLD, other, message));
        }
    };
    Ok(ObjectLock { retention, legal_hold })
}

fn both_needed(missing: &'static str) -> S3Error {
    let message = "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied";
    S3Error::argument_named(missing, message)
}

/// Returns the error for a PUT of a locked object without a digest of its bytes.
pub fn lock_needs_digest() -> S3Error {
    let message = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters";
    S3Error::with_message(ErrorCode::InvalidRequest, message)
}

/// Reads `x-amz-bypass-governance-retention`; `None` if the request does not have it.
pub fn bypass_governance(headers: &HeaderMap) -> Option<bool> {
    lossless(headers, BYPASS).map(|value| value.eq_ignore_ascii_case("true"))
}

/// Returns the error for `x-amz-bypass-governance-retention`, whatever its value, in a bucket in
/// which nothing can be locked.
pub fn bypass_without_lock() -> S3Error {
    let message = "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets.";
    S3Error::argument_named(BYPASS, message)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: &str = "2030-01-01T00:00:00Z";

    fn read(given: &[(&'static str, &'static str)]) -> Result<ObjectLock> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        object_lock(&headers, NOW.parse().unwrap())
    }

    #[test]
    fn a_lock_is_read() {
        assert!(read(&[]).unwrap().is_empty());
        let lock = read(&[(MODE, "COMPLIANCE"), (UNTIL, "2030-01-01T00:00:00.001Z"), (HOLD, "OFF")]).unwrap();
        let retention = lock.retention.unwrap();
        assert_eq!((retention.mode, lock.legal_hold), (RetentionMode::Compliance, Some(false)));
        assert_eq!(retention.until().to_string(), "2030-01-01T00:00:00.001Z");
        // The form in which boto3 sends dates, and one with another offset.
        for until in ["2031-01-01T00:00:00Z", "2031-01-01T02:00:00+02:00"] {
            let retention = read(&[(MODE, "GOVERNANCE"), (UNTIL, until)]).unwrap().retention.unwrap();
            assert_eq!(retention.until().to_string(), "2031-01-01T00:00:00Z");
        }
    }

    /// The first four were recorded at Amazon S3.
    #[test]
    fn what_is_no_lock_is_an_invalid_argument() {
        let (ok, both) = ("2031-01-01T00:00:00Z", "must both be supplied");
        for (given, name, words) in [
            (&[(MODE, "BAD-VALUE")][..], UNTIL, both),
            (&[(MODE, "GOVERNANCE")], UNTIL, both),
            (&[(UNTIL, ok)], MODE, both),
            (&[(MODE, "BAD-VALUE"), (UNTIL, ok)], MODE, "Unknown wormMode directive."),
            (&[(MODE, "governance"), (UNTIL, ok)], MODE, "Unknown wormMode directive."),
            (&[(MODE, "GOVERNANCE"), (UNTIL, NOW)], UNTIL, IN_THE_PAST),
            (&[(MODE, "GOVERNANCE"), (UNTIL, "tomorrow")], UNTIL, "ISO 8601"),
            (&[(HOLD, "on")], HOLD, "either of"),
        ] {
            let error = read(given).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{given:?}");
            assert_eq!(error.details()[0], ("ArgumentName", name.to_owned()), "{given:?}");
            assert!(error.message().contains(words), "{given:?}: {}", error.message());
        }
    }
}
