//! A directory of people (LDAP), which checks passwords, and knows people's groups and access keys.

use std::error::Error;
use std::fmt::{self, Debug};

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use s3_types::UnixName;
use zeroize::Zeroizing;

use crate::account::AccountId;
use crate::credential::{AccessKeyId, Credential};
use crate::documents::StoreError;

/// The prefix of names of the directory in ARNs, so that no name for which a user asks by
/// GetFederationToken is one of them: such a name has no slash.
const DIRECTORY_PATH: &str = "ldap/";

/// A password. It is wiped from memory when it is dropped, and never printed.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Keeps a password.
    pub const fn new(text: Zeroizing<String>) -> Self {
        Self(text)
    }

    /// Returns the password, which is then sent to the directory.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// A person whom the directory knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The directory's id of the person's entry. Sessions keep it, since an entry that is deleted
    /// and made again under the same DN has another id.
    pub entry: Box<str>,
    /// The person's name, in the spelling of the directory.
    pub name: Box<str>,
    /// The person's groups, and the groups that these are members of: their DNs, folded
    /// ([`crate::folded_dn`]).
    pub groups: Vec<Box<str>>,
    /// The POSIX identity that the directory gives it.
    pub unix: Option<UnixName>,
    /// The time up to which this description may be used without asking the directory again
    /// ([`Directory::is_present`]).
    pub until: Instant,
}

impl Person {
    /// Returns the unique id in an account.
    pub fn unique_id(&self, account: &AccountId) -> String {
        format!("{account}:{DIRECTORY_PATH}{}", self.name)
    }

    /// Returns the ARN in an account.
    pub fn arn(&self, account: &AccountId) -> String {
        format!("arn:aws:sts::{account}:federated-user/{DIRECTORY_PATH}{}", self.name)
    }
}

/// Somebody whose entry has an access key.
#[derive(Debug)]
pub struct KeyHolder {
    /// The person who has the key.
    pub person: Arc<Person>,
    /// The key, with its secret.
    pub credential: Credential,
    /// The time up to which this may be used without asking the directory again
    /// ([`Directory::is_current`]).
    pub until: Instant,
}

/// The reason why a person was not logged in.
#[derive(Debug)]
pub enum LoginError {
    /// Name and password do not belong together; with the entry, if there is one of the name.
    Refused(Option<Box<str>>),
    /// The password of this entry was wrong so often that the directory is not asked again for now.
    TooOften(Box<str>),
    /// This entry cannot log in here, whatever the password: its name is none of IAM's, for
    /// example.
    Unusable(Box<str>, &'static str),
    /// The directory cannot be reached.
    Unavailable(StoreError),
}

impl LoginError {
    /// Returns the entry that was not logged in, if it is known ([`Person::entry`]).
    pub fn entry(&self) -> Option<&str> {
        match self {
            Self::Refused(entry) => entry.as_deref(),
            Self::TooOften(entry) | Self::Unusable(entry, _) => Some(entry),
            Self::Unavailable(_) => None,
        }
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(_) => f.write_str("the name or the password is wrong"),
            Self::TooOften(_) => f.write_str("the password was wrong too often: try again later"),
            Self::Unusable(_, why) => f.write_str(why),
            Self::Unavailable(cause) => write!(f, "the directory cannot be used: {cause}"),
        }
    }
}

impl Error for LoginError {
    // The sentence has the cause, so that the next error of the chain is that of the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) => cause.source(),
            Self::Refused(_) | Self::TooOften(_) | Self::Unusable(..) => None,
        }
    }
}

/// A directory of people: LDAP.
#[async_trait]
pub trait Directory: Debug + Send + Sync {
    /// Finds a person by [`Person::entry`]. Returns `None` if the entry does not exist or is
    /// disabled.
    async fn by_entry(&self, entry: &str) -> Result<Option<Arc<Person>>, StoreError>;

    /// True if the directory's description of a person may be used without asking again. It is
    /// called for each request, and does not wait.
    fn is_present(&self, person: &Person) -> bool;

    /// True if entries may have access keys.
    fn has_keys(&self) -> bool;

    /// Finds whose an access key is. `None` if it is nobody's, or whoever has it is disabled.
    async fn by_access_key(&self, id: &AccessKeyId) -> Result<Option<Arc<KeyHolder>>, StoreError>;

    /// True if what the directory said of a key may be used without asking again. It is called for
    /// each request, and does not wait.
    fn is_current(&self, holder: &KeyHolder) -> bool;

    /// Notes that an access key of a document was used; `hour` counts from 1970. If an entry has
    /// the same key, that is logged. It does not wait.
    fn notice_other(&self, id: &AccessKeyId, hour: i64);

    /// Checks a name and a password, and returns the person to whom they belong.
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
