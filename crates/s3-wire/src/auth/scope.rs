//! Checks the credential of a SigV4 signature against this server's region and service.

use super::key::Credential;
use super::request::SigningPolicy;
use crate::error::{ErrorCode, Result, S3Error};
use crate::split::pieces;
use crate::time::parse_basic_date;

const TERMINAL: &str = "aws4_request";

/// A service that the scope of a signature names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SigningService {
    /// Amazon S3.
    S3,
    /// AWS Identity and Access Management.
    Iam,
    /// AWS Security Token Service.
    Sts,
}

impl SigningService {
    /// Returns the name in scopes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Iam => "iam",
            Self::Sts => "sts",
        }
    }

    /// Returns the service of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::S3, Self::Iam, Self::Sts].into_iter().find(|service| service.name() == name)
    }
}

/// The parts of a credential, such as `AKID/20130524/us-east-1/s3/aws4_request`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    terminal: &'a str,
}

impl<'a> Scope<'a> {
    /// Splits a credential; `None` if it does not have five parts, or an empty access key.
    pub(super) fn of(credential: &'a str) -> Option<Self> {
        let mut parts = pieces(credential, b'/');
        let access_key = parts.next()?;
        let scope = Self {
            date: parts.next()?,
            region: parts.next()?,
            service: parts.next()?,
            terminal: parts.next()?,
        };
        (!access_key.is_empty() && parts.next().is_none()).then_some(scope)
    }

    /// True if the scope ends with the text with which all scopes end.
    pub(super) fn ends_well(&self) -> bool {
        self.terminal == TERMINAL
    }
}

/// The place of a credential in a request, which decides the code of errors and the beginning of
/// their messages.
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

/// Reads the credential of a request of S3. Returns it, with the date in it.
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
    let scope = Scope::of(text).ok_or_else(mal_formed)?;
    let Scope { date, region, service, terminal } = scope;
    let expected = SigningService::S3.name();
    if service != expected {
        return Err(place
            .error(&format!("incorrect service \"{service}\". This endpoint belongs to \"{expected}\".")));
    }
    if !scope.ends_well() {
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
