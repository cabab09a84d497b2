//! A directory of people and keys, which is asked.

use std::error::Error;
use std::fmt::{self, Debug};

use async_trait::async_trait;
use zeroize::Zeroizing;

use crate::credential::Credential;
use crate::documents::StoreError;
use crate::model::Posix;

/// A password. It is wiped from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes a password.
    pub const fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// Returns the password, for the directory.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// Somebody whom the directory knows.
#[derive(Debug, Clone)]
pub struct Person {
    /// The entry, by the name that the directory has for it (LDAP's DN).
    pub entry: Box<str>,
    /// The name to log in with.
    pub name: Box<str>,
    /// The access key with its secret, if the entry has one.
    pub credential: Option<Credential>,
    /// The groups, with those that these are in, by the directory's names for them.
    pub groups: Vec<Box<str>>,
    /// Whom it is on the file system.
    pub posix: Option<Posix>,
}

/// The reason why somebody was not logged in.
#[derive(Debug)]
pub enum LoginError {
    /// Name and password do not belong together.
    Refused,
    /// The password was wrong so often that the directory is not asked again for now.
    TooOften,
    /// The directory cannot be asked.
    Unavailable(StoreError),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the name or the password is wrong"),
            Self::TooOften => f.write_str("the password was wrong too often: try again later"),
            Self::Unavailable(cause) => write!(f, "the directory cannot be used: {cause}"),
        }
    }
}

impl Error for LoginError {}

/// A directory of people and keys: LDAP.
#[async_trait]
pub trait Directory: Debug + Send + Sync {
    /// Finds somebody by an access key.
    async fn by_access_key(&self, id: &str) -> Result<Option<Person>, StoreError>;

    /// Finds somebody by the entry's name, which sessions hold.
    async fn by_entry(&self, entry: &str) -> Result<Option<Person>, StoreError>;

    /// Checks a password.
    async fn log_in(&self, name: &str, password: &SecretText) -> Result<Person, LoginError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        let password = SecretText::new(Zeroizing::new("open-sesame".to_owned()));
        assert_eq!((format!("{password:?}").as_str(), password.expose()), ("SecretText(…)", "open-sesame"));
    }
}
