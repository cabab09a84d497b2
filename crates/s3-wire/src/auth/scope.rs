//! Checks the credential of a SigV4 signature against this server's region and service.

use super::key::Credential;
use super::request::SigningPolicy;
use crate::error::{ErrorCode, Result, S3Error};
use crate::split::pieces;
use crate::time::parse_basic_date;

const SERVICE: &str = "s3";
const TERMINAL: &str = "aws4_request";

/// The place of a credential, which decides the code of errors and the beginning of their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The `Authorization` header.
    Header,
    /// The query parameter `X-Amz-Credential`.
    Query,
}

impl Place {
    pub(super) fn error(self, reason: &str) -> S3Error {
        let (code, beginning) = match self {
            Self::Header => {
                (ErrorCode::AuthorizationHeaderMalformed, "The authorization header is malformed")
            }
            Self::Query => {
                (ErrorCode::AuthorizationQueryParametersError, "Error parsing the X-Amz-Credential parameter")
            }
        };
        S3Error::with_message(code, format!("{beginning}; {reason}"))
    }
}

/// Reads `AKID/20130524/us-east-1/s3/aws4_request`; returns the credential, and the date in it.
pub(super) fn parse_credential<'a>(
    place: Place,
    text: &'a str,
    policy: &SigningPolicy,
) -> Result<(Credential, &'a str)> {
    let mal_formed = || {
        place.error(
            "the Credential is mal-formed; expecting \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".",
        )
    };
    let mut parts = pieces(text, b'/');
    let mut part = || parts.next().ok_or_else(mal_formed);
    let (access_key, date, region, service, terminal) = (part()?, part()?, part()?, part()?, part()?);
    if access_key.is_empty() || parts.next().is_some() {
        return Err(mal_formed());
    }
    if service != SERVICE {
        return Err(
            place.error(&format!("incorrect service \"{service}\". This endpoint belongs to \"{SERVICE}\"."))
        );
    }
    if terminal != TERMINAL {
        return Err(
            place.error(&format!("incorrect terminal \"{terminal}\". This endpoint uses \"{TERMINAL}\"."))
        );
    }
    if parse_basic_date(date).is_none() {
        let reason = format!(
            "incorrect date format \"{date}\". This date in the credential must be in the format \"yyyyMMdd\"."
        );
        return Err(place.error(&reason));
    }
    if !policy.accepts_region(region) {
        let expected = &policy.region;
        let error = place.error(&format!("the region '{region}' is wrong; expecting '{expected}'"));
        return Err(error.detail("Region", expected.as_str()));
    }
    Ok((Credential::new(text).ok_or_else(mal_formed)?, date))
}
