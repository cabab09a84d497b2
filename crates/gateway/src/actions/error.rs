//! The errors of actions, made from the errors of other modules.

use std::error::Error;

use iam::Unidentified;
use iam::model::{IamCode, IamError, InvalidText};
use iam_wire::{QueryCode, QueryError};
use s3_wire::{ErrorCode, S3Error};

/// Makes the error for a store of identities that cannot be reached.
pub(super) fn unavailable(cause: impl Error + Send + Sync + 'static) -> QueryError {
    let message = "The request has failed due to a temporary failure of the server.";
    QueryError::new(QueryCode::ServiceUnavailable, message).caused_by(cause)
}

/// Makes the error for a body that could not be read.
pub(super) fn of_body(error: S3Error) -> QueryError {
    let message = match error.code() {
        ErrorCode::RequestTimeout => "The body of the request did not arrive in time.",
        _ => "The body of the request did not arrive.",
    };
    QueryError::new(QueryCode::ValidationError, message).caused_by(error)
}

/// Makes the error for a key that has no session. The sentences are AWS's.
pub(super) fn unidentified(why: Unidentified) -> QueryError {
    let (code, message) = match why {
        Unidentified::UnknownKey | Unidentified::Inactive | Unidentified::InvalidToken => {
            (QueryCode::InvalidClientTokenId, "The security token included in the request is invalid.")
        }
        Unidentified::Expired => {
            (QueryCode::ExpiredToken, "The security token included in the request is expired")
        }
        Unidentified::Unavailable(_) => return unavailable(why),
    };
    QueryError::new(code, message).caused_by(why)
}

/// Makes the error for a change that failed.
pub(super) fn of_iam(error: IamError) -> QueryError {
    let code = match error.code {
        IamCode::ConcurrentModification => QueryCode::ConcurrentModification,
        IamCode::DeleteConflict => QueryCode::DeleteConflict,
        IamCode::EntityAlreadyExists => QueryCode::EntityAlreadyExists,
        IamCode::InvalidInput => QueryCode::InvalidInput,
        IamCode::LimitExceeded => QueryCode::LimitExceeded,
        IamCode::MalformedPolicyDocument => QueryCode::MalformedPolicyDocument,
        IamCode::NoSuchEntity => QueryCode::NoSuchEntity,
        IamCode::NotImplemented => QueryCode::NotImplemented,
        IamCode::PackedPolicyTooLarge => QueryCode::PackedPolicyTooLarge,
        IamCode::ServiceFailure => QueryCode::ServiceFailure,
        IamCode::ServiceUnavailable => QueryCode::ServiceUnavailable,
        IamCode::UnmodifiableEntity => QueryCode::UnmodifiableEntity,
        IamCode::ValidationError => QueryCode::ValidationError,
    };
    QueryError::new(code, error.message.clone()).caused_by(error)
}

/// Makes the error for a text that the account model refuses although the API model allows it.
pub(super) fn of_text(parameter: &str, why: InvalidText) -> QueryError {
    QueryError::new(QueryCode::ValidationError, format!("The value of {parameter} is refused: {why}."))
}

/// Makes the error for something that does not exist. `what` is its kind, such as `user`.
pub(super) fn missing(what: &str, name: &str) -> QueryError {
    QueryError::new(QueryCode::NoSuchEntity, format!("The {what} with name {name} cannot be found."))
}

/// Makes the error for a policy that does not exist.
pub(super) fn no_policy(arn: &str) -> QueryError {
    QueryError::new(QueryCode::NoSuchEntity, format!("Policy {arn} was not found."))
}

/// Computes the SHA-256 digest of a body.
pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let mut out = [0; 32];
    out.copy_from_slice(digest.as_ref());
    out
}
