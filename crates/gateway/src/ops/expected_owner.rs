//! The account that a client expects to own a bucket.

use std::borrow::Cow;

use iam::{Account, AccountId};
use s3_wire::{ErrorCode, Result, S3Error};

/// Reads the account id in a header; `InvalidBucketOwnerAWSAccountID` if it cannot be one.
pub fn id(text: &str) -> Result<AccountId> {
    AccountId::new(text.trim()).map_err(|_| {
        let code = ErrorCode::InvalidBucketOwnerAWSAccountID;
        S3Error::with_message(code, format!("{} [{text}]", code.message()))
    })
}

/// Fails with `AccessDenied` if a header names another account than the bucket's owner.
pub fn check(expected: Option<Cow<'_, str>>, owner: &Account) -> Result<()> {
    match expected.map(|text| id(&text)).transpose()? {
        Some(expected) if expected != *owner.id() => Err(ErrorCode::AccessDenied.into()),
        _ => Ok(()),
    }
}
