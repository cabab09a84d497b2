use s3_types::Timestamp;

use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::TRUST_CHARS_MAX;
use super::limits::{
    GROUP_POLICIES_CHARS_MAX, POLICY_CHARS_MAX, ROLE_POLICIES_CHARS_MAX, USER_POLICIES_CHARS_MAX,
};
use super::names::Document;
use crate::sealing::MasterKeys;
use crate::unique_id::{Fill, IdKind, NoRandomNumbers, UniqueId};

/// The number of times, at most, that a random id is drawn until an unused one is found. In
/// practice the first one is unused.
pub(super) const DRAWS_MAX: usize = 8;

/// The use of a policy document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PolicyUse {
    /// A managed policy.
    Managed,
    /// An inline policy of a user.
    User,
    /// An inline policy of a group.
    Group,
    /// An inline policy of a role.
    Role,
    /// The policy of a service key, or of a session.
    Session,
    /// The policy that says who may assume a role.
    Trust,
}

impl PolicyUse {
    /// Returns the largest size in characters, white space not counted. For inline policies it is
    /// the limit of all policies of one identity together.
    pub const fn chars_max(self) -> usize {
        match self {
            Self::Managed => POLICY_CHARS_MAX,
            Self::User | Self::Session => USER_POLICIES_CHARS_MAX,
            Self::Group => GROUP_POLICIES_CHARS_MAX,
            Self::Role => ROLE_POLICIES_CHARS_MAX,
            Self::Trust => TRUST_CHARS_MAX,
        }
    }
}

/// The reason why a policy document is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyFault {
    /// The text is not a policy document; the sentence says why.
    Malformed(String),
    /// The text is longer than [`PolicyUse::chars_max`].
    TooLong,
}

/// A checker of policy documents.
pub trait PolicyCheck: Send + Sync {
    /// Checks a document, and returns the number of its characters without white space.
    fn check(&self, used_as: PolicyUse, document: &str) -> Result<usize, PolicyFault>;
}

/// The inputs of a change apart from the document.
pub struct Context<'c> {
    /// The time.
    pub now: Timestamp,
    /// The source of random numbers.
    pub fill: &'c Fill<'c>,
    /// The check of policy documents.
    pub policies: &'c dyn PolicyCheck,
    /// The master keys, without which no access key can be made.
    pub master_keys: Option<&'c MasterKeys>,
}

impl Context<'_> {
    /// Returns the time in whole seconds, the precision that documents keep.
    pub(super) fn second(&self) -> Timestamp {
        Timestamp::from_second(self.now.as_second()).unwrap_or(self.now)
    }

    /// Checks a policy. `TooLong` becomes the error that `too_long` makes.
    pub(super) fn check_policy(
        &self,
        used_as: PolicyUse,
        document: &Document,
        too_long: impl Fn() -> IamError,
    ) -> Result<usize, IamError> {
        match self.policies.check(used_as, document.as_str()) {
            Ok(chars) if chars > used_as.chars_max() => Err(too_long()),
            Ok(chars) => Ok(chars),
            Err(PolicyFault::TooLong) => Err(too_long()),
            Err(PolicyFault::Malformed(why)) => Err(IamError::new(IamCode::MalformedPolicyDocument, why)),
        }
    }
}

impl From<NoRandomNumbers> for IamError {
    fn from(error: NoRandomNumbers) -> Self {
        Self::new(IamCode::ServiceFailure, error.to_string())
    }
}

/// A change of an account. It has no side effects, so that it can be made again on a newer
/// document.
pub type Change<'c, T> = dyn Fn(&mut AccountDocument, &Context<'_>) -> Result<T, IamError> + Send + Sync + 'c;

/// The result of a change.
#[derive(Debug)]
pub struct Changed<T> {
    /// The document after the change.
    pub document: AccountDocument,
    /// The JSON of the document, to be written; `None` if the change left it as it was.
    pub json: Option<Vec<u8>>,
    /// The return value of the change.
    pub value: T,
}

impl AccountDocument {
    /// Makes a change in a copy of the document. The number of the revision goes up by one.
    pub fn changed<T>(&self, change: &Change<'_, T>, cx: &Context<'_>) -> Result<Changed<T>, IamError> {
        let too_large =
            |e: super::document::DocumentError| IamError::new(IamCode::LimitExceeded, e.to_string());
        let mut document = self.clone();
        let value = change(&mut document, cx)?;
        let json = document.to_json().map_err(too_large)?;
        if self.to_json().is_ok_and(|before| before == json) {
            return Ok(Changed { document, json: None, value });
        }
        document.revision = self.revision.saturating_add(1);
        let json = document.to_json().map_err(too_large)?;
        Ok(Changed { document, json: Some(json), value })
    }

    /// Draws a unique id that nothing in the account has.
    pub(super) fn new_id(&self, kind: IdKind, cx: &Context<'_>) -> Result<UniqueId, IamError> {
        for _ in 0..DRAWS_MAX {
            let id = UniqueId::random(kind, cx.fill)?;
            if !self.unique_ids().iter().any(|(_, _, there)| **there == id) {
                return Ok(id);
            }
        }
        Err(NoRandomNumbers.into())
    }
}
