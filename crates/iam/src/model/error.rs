use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The code of an error, as IAM names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IamCode {
    /// Other changes were made in between, again and again.
    ConcurrentModification,
    /// The entity to be deleted is in use, or is not empty.
    DeleteConflict,
    /// The name is taken.
    EntityAlreadyExists,
    /// The input contradicts itself.
    InvalidInput,
    /// A quota is used up.
    LimitExceeded,
    /// The policy document is not valid.
    MalformedPolicyDocument,
    /// Nothing has the name.
    NoSuchEntity,
    /// This server does not implement the operation.
    NotImplemented,
    /// The policies and tags of a session are larger than a token has room for.
    PackedPolicyTooLarge,
    /// Something failed that is not the client's fault.
    ServiceFailure,
    /// The store cannot be reached.
    ServiceUnavailable,
    /// The entity to be changed is built in.
    UnmodifiableEntity,
    /// A parameter does not have the form that it must have.
    ValidationError,
}

impl IamCode {
    /// Returns the code as it stands in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConcurrentModification => "ConcurrentModification",
            Self::DeleteConflict => "DeleteConflict",
            Self::EntityAlreadyExists => "EntityAlreadyExists",
            Self::InvalidInput => "InvalidInput",
            Self::LimitExceeded => "LimitExceeded",
            Self::MalformedPolicyDocument => "MalformedPolicyDocument",
            Self::NoSuchEntity => "NoSuchEntity",
            Self::NotImplemented => "NotImplemented",
            Self::PackedPolicyTooLarge => "PackedPolicyTooLarge",
            Self::ServiceFailure => "ServiceFailure",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::UnmodifiableEntity => "UnmodifiableEntity",
            Self::ValidationError => "ValidationError",
        }
    }
}

/// The error of a change: IAM's code, and IAM's sentence if one was recorded or is documented.
#[derive(Debug, Clone)]
pub struct IamError {
    /// The code.
    pub code: IamCode,
    /// The sentence, for the client.
    pub message: String,
    /// The error behind this one, for the log and not for the client.
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// Errors are equal if a client cannot tell them apart: code and message count, the cause does not.
impl PartialEq for IamError {
    fn eq(&self, other: &Self) -> bool {
        (self.code, &self.message) == (other.code, &other.message)
    }
}

impl Eq for IamError {}

impl IamError {
    /// Makes an error.
    pub fn new(code: IamCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None }
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub(crate) fn caused_by(self, cause: impl Error + Send + Sync + 'static) -> Self {
        Self { cause: Some(Arc::new(cause)), ..self }
    }

    pub(crate) fn no_user(name: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("The user with name {name} cannot be found."))
    }

    pub(crate) fn no_group(name: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("The group with name {name} cannot be found."))
    }

    pub(crate) fn no_role(name: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("The role with name {name} cannot be found."))
    }

    pub(crate) fn no_policy(arn: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("Policy {arn} was not found."))
    }

    pub(crate) fn not_attachable(arn: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("Policy {arn} does not exist or is not attachable."))
    }

    /// Makes the error for a boundary that does not exist.
    pub(crate) fn not_a_boundary(arn: &dyn fmt::Display) -> Self {
        let message = format!("Scope ARN: {arn} does not exist or is not attachable.");
        Self::new(IamCode::NoSuchEntity, message)
    }

    pub(crate) fn no_provider(arn: &dyn fmt::Display) -> Self {
        Self::new(IamCode::NoSuchEntity, format!("OpenIDConnect Provider not found for arn {arn}"))
    }

    /// Makes the error for a parameter that breaks one constraint of its form.
    pub(crate) fn constraint(parameter: &str, rule: &str) -> Self {
        let message = format!(
            "1 validation error detected: Value at '{parameter}' failed to satisfy constraint: {rule}"
        );
        Self::new(IamCode::ValidationError, message)
    }

    pub(crate) fn exists(kind: &str, name: &dyn fmt::Display) -> Self {
        Self::new(IamCode::EntityAlreadyExists, format!("{kind} with name {name} already exists."))
    }

    pub(crate) fn quota(name: &str, max: usize) -> Self {
        Self::new(IamCode::LimitExceeded, format!("Cannot exceed quota for {name}: {max}"))
    }

    pub(crate) fn conflict(first: &str) -> Self {
        Self::new(IamCode::DeleteConflict, format!("Cannot delete entity, must {first} first."))
    }
}

impl fmt::Display for IamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl Error for IamError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause: &(dyn Error + 'static) = self.cause.as_deref()?;
        Some(cause)
    }
}
