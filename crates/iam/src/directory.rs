//! A directory of people and keys, which is asked.

use std::error::Error;
use std::fmt::{self, Debug};

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use s3_types::UnixName;
use zeroize::Zeroizing;

use crate::credential::{AccessKeyId, Credential};
use crate::documents::StoreError;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The entry, as sessions hold it: one that is made again under the same DN is another one.
    pub entry: Box<str>,
    /// The name, in the spelling of the directory.
    pub name: Box<str>,
    /// The groups, with those that these are in: their DNs, folded ([`crate::folded_dn`]).
    pub groups: Vec<Box<str>>,
    /// The POSIX identity that the directory gives it.
    pub unix: Option<UnixName>,
    /// The time up to which this may be used without asking the directory again
    /// ([`Directory::is_present`]).
    pub until: Instant,
}

/// Somebody whose entry has an access key.
#[derive(Debug)]
pub struct KeyHolder {
    /// Whose it is.
    pub person: Arc<Person>,
    /// The key, with its secret.
    pub credential: Credential,
    /// Up to when this may be used without asking the directory again ([`Directory::is_current`]).
    pub until: Instant,
}

/// The reason why somebody was not logged in.
#[derive(Debug)]
pub enum LoginError {
    /// Name and password do not belong together.
    Refused,
    /// The password was wrong so often that the directory is not asked again for now.
    TooOften,
    /// The entry cannot log in here, whatever the password: its name is none of IAM's, for example.
    Unusable(&'static str),
    /// The directory cannot be asked.
    Unavailable(StoreError),
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => f.write_str("the name or the password is wrong"),
            Self::TooOften => f.write_str("the password was wrong too often: try again later"),
            Self::Unusable(why) => f.write_str(why),
            Self::Unavailable(cause) => write!(f, "the directory cannot be used: {cause}"),
        }
    }
}

impl Error for LoginError {}

/// A directory of people: LDAP.
#[async_trait]
pub trait Directory: Debug + Send + Sync {
    /// Finds somebody by [`Person::entry`]. `None` if there is no such entry, or it is disabled.
    async fn by_entry(&self, entry: &str) -> Result<Option<Arc<Person>>, StoreError>;

    /// True if what the directory said of somebody may be used without asking again. It is called
    /// for each request, and does not wait.
    fn is_present(&self, person: &Person) -> bool;

    /// True if entries may have access keys.
    fn has_keys(&self) -> bool;

    /// Finds whose an access key is. `None` if it is nobody's, or whoever has it is disabled.
    async fn by_access_key(&self, id: &AccessKeyId) -> Result<Option<Arc<KeyHolder>>, StoreError>;

    /// True if what the directory said of a key may be used without asking again. It is called for
    /// each request, and does not wait.
    fn is_current(&self, holder: &KeyHolder) -> bool;

    /// Takes notice that a document has an access key, which was used in an hour since 1970: an
    /// entry that has it, too, is to be logged. It does not wait.
    fn notice_other(&self, id: &AccessKeyId, hour: i64);

    /// Checks a password.
    async fn log_in(&self, name: &str, password: &SecretText) -> Result<Arc<Person>, LoginError>;
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
