use std::fmt;
use std::sync::Arc;

use s3_types::{RequesterFacts, UnixAccount};
use zeroize::Zeroizing;

use crate::account::Account;

/// The lengths that an access key id may have. AWS's have 16 to 128 characters, other servers allow
/// 3.
const ACCESS_KEY_LENGTHS: std::ops::RangeInclusive<usize> = 3..=128;
/// The lengths that a secret key may have.
const SECRET_KEY_LENGTHS: std::ops::RangeInclusive<usize> = 8..=128;

/// The reason why a text is not an access key id or a secret key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidCredential {
    /// The access key id is not 3 to 128 letters, digits or `-._@+`.
    AccessKey,
    /// The secret key is not 8 to 128 printable ASCII characters without spaces.
    SecretKey,
}

impl fmt::Display for InvalidCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AccessKey => "an access key must have 3 to 128 characters from A-Z a-z 0-9 - . _ @ +",
            Self::SecretKey => "a secret key must have 8 to 128 printable ASCII characters, without spaces",
        })
    }
}

impl std::error::Error for InvalidCredential {}

/// The public half of a credential, which requests send.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccessKeyId(Box<str>);

impl AccessKeyId {
    /// Checks length and characters. Slashes and commas would break the `Authorization` header.
    pub fn new(id: &str) -> Result<Self, InvalidCredential> {
        let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'@' | b'+');
        if ACCESS_KEY_LENGTHS.contains(&id.len()) && id.bytes().all(valid) {
            Ok(Self(id.into()))
        } else {
            Err(InvalidCredential::AccessKey)
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The secret half of a credential. It is wiped from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<String>);

impl SecretKey {
    /// Checks length and characters.
    pub fn new(secret: &str) -> Result<Self, InvalidCredential> {
        if SECRET_KEY_LENGTHS.contains(&secret.len()) && secret.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(Zeroizing::new(secret.to_owned())))
        } else {
            Err(InvalidCredential::SecretKey)
        }
    }

    /// Returns the secret, for signing.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

/// An access key with its secret.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The public half.
    pub access_key: AccessKeyId,
    /// The secret half.
    pub secret_key: SecretKey,
}

/// An identity that may sign requests.
#[derive(Debug)]
pub struct Identity {
    /// The facts that storages may know about the identity. Answers show its name, with the
    /// account's id, as the initiator. They never show an access key, which is half of a credential
    /// and may be changed.
    pub facts: Arc<RequesterFacts>,
    /// True for root, to whom everything is allowed.
    pub is_root: bool,
    /// The credential that the identity signs with.
    pub credential: Credential,
}

/// The identities whose signatures are accepted, and the account that they belong to.
#[derive(Debug)]
pub struct Identities {
    account: Account,
    root: Arc<Identity>,
}

impl Identities {
    /// Makes the identities of a server with root alone. `unix_account` is root's account on the
    /// file system.
    pub fn root_only(account: Account, credential: Credential, unix_account: Option<UnixAccount>) -> Self {
        let canonical_id = account.canonical_id().into();
        let facts = Arc::new(RequesterFacts { canonical_id, name: "root".into(), unix_account });
        Self { account, root: Arc::new(Identity { facts, is_root: true, credential }) }
    }

    /// Returns the identity with this access key id. It is asynchronous, since identities that are
    /// not in memory will have to be read; for one in memory it neither waits nor allocates.
    #[allow(clippy::unused_async, reason = "callers must be able to wait")]
    pub async fn find(&self, access_key: &str) -> Option<&Arc<Identity>> {
        (self.root.credential.access_key.as_str() == access_key).then_some(&self.root)
    }

    /// Returns the account that owns buckets and objects.
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the initiator that answers show: root, until there are other identities.
    pub fn initiator(&self) -> &Identity {
        &self.root
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let secret = SecretKey::new("a-secret-of-mine").unwrap();
        assert!(!format!("{secret:?}").contains("mine"));
    }

    #[test]
    fn what_breaks_a_header_is_no_access_key() {
        assert!(AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").is_ok());
        for bad in ["", "ab", "a/b/c", "a b c", "a,b,c", "a\nbc"] {
            assert_eq!(AccessKeyId::new(bad), Err(InvalidCredential::AccessKey), "{bad:?}");
        }
        assert!(SecretKey::new("short").is_err());
        assert!(SecretKey::new("with a space in it").is_err());
    }
}
