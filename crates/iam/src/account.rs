use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use s3_types::hex;

/// The number of digits of an account id.
const DIGITS: usize = 12;
/// The first id whose first digit is not 0.
const ID_FIRST: u64 = 100_000_000_000;
/// The number of ids whose first digit is not 0.
const IDS_MADE: u64 = 900_000_000_000;

/// The error for a text that is not an account id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidAccountId;

impl fmt::Display for InvalidAccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an account id must consist of {DIGITS} decimal digits")
    }
}

impl std::error::Error for InvalidAccountId {}

/// The id of an account: 12 decimal digits, like AWS's. Clients send the id that they expect in
/// `x-amz-expected-bucket-owner`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId(Box<str>);

impl AccountId {
    /// Checks length and digits of `text`. Leading zeros are allowed.
    pub fn new(text: &str) -> Result<Self, InvalidAccountId> {
        if text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_digit()) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidAccountId)
        }
    }

    /// Makes an id from random bits. It has no leading zero, which spreadsheets would drop.
    pub fn from_random(bits: u64) -> Self {
        Self((ID_FIRST + bits % IDS_MADE).to_string().into())
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The account that owns buckets and objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    id: AccountId,
    canonical_id: Box<str>,
}

impl Account {
    /// Makes the account with this id. The canonical id is derived from the id, so that only the id
    /// has to be kept and all gateways know both (docs/decisions/0016-the-trees-account.md).
    pub fn new(id: AccountId) -> Self {
        let hash = digest(&SHA256, format!("slipway canonical user id {id}").as_bytes());
        Self { id, canonical_id: hex::encode(hash.as_ref()).into() }
    }

    /// Returns the account's id.
    pub const fn id(&self) -> &AccountId {
        &self.id
    }

    /// Returns the canonical user id: 64 hexadecimal digits. Answers show it as `Owner`.
    pub fn canonical_id(&self) -> &str {
        &self.canonical_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_twelve_digits() {
        for good in ["123456789012", "000000000001"] {
            assert_eq!(AccountId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "12345678901", "1234567890123", "12345678901x", "1234-5678-90", "１２３４"] {
            assert_eq!(AccountId::new(bad), Err(InvalidAccountId), "{bad}");
        }
    }

    #[test]
    fn made_ids_are_ids_without_a_leading_zero() {
        for bits in [0, 1, 899_999_999_999, 900_000_000_000, u64::MAX] {
            let id = AccountId::from_random(bits);
            assert_eq!(AccountId::new(id.as_str()), Ok(id.clone()));
            assert!(!id.as_str().starts_with('0'), "{id}");
        }
    }

    /// The canonical id of an account may never change: objects that are stored with it would
    /// belong to another account.
    #[test]
    fn the_canonical_id_follows_from_the_id() {
        let canonical = |id| Account::new(AccountId::new(id).unwrap()).canonical_id().to_owned();
        assert_eq!(
            canonical("123456789012"),
            "6906902c2fe356a8f148460733938d0c4d6a7a0489ea72af3564e5c5808a032e"
        );
        assert_ne!(canonical("123456789012"), canonical("123456789013"));
    }
}
