use std::fmt;

use zeroize::Zeroizing;

/// The lengths, in characters, that an access key id may have. AWS's have 16 to 128, other servers
/// allow 3.
const ACCESS_KEY_LENGTHS: std::ops::RangeInclusive<usize> = 3..=128;
/// The lengths, in characters, that a secret key may have.
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
    /// Checks length and characters of a secret key.
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
