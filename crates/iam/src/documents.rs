//! The interface of stores of documents: bytes by name, with compare-and-swap.

use std::error::Error;
use std::fmt::{self, Debug};

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use s3_types::hex;

use crate::account::AccountId;

/// The number of characters that a name may have.
const NAME_CHARS_MAX: usize = 64;
/// The prefix of the names of accounts' documents.
const OF_ACCOUNT: &str = "account-";
/// The name of the document about the master keys.
const OF_KEYS: &str = "keys";
/// The name of the document with the list of accounts.
const OF_ACCOUNTS: &str = "accounts";
/// The name of the document about the names of accounts.
const OF_NAMES: &str = "names";
/// The name of the document about the last uses of keys.
const OF_USES: &str = "used";

/// The error for a text that is not the name of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidDocumentName;

impl fmt::Display for InvalidDocumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the name of a document has 1 to {NAME_CHARS_MAX} characters from a-z 0-9 -")
    }
}

impl Error for InvalidDocumentName {}

/// The name of a document. It can be the name of a file, a key of an object, and the name of a
/// secret in another store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentName(Box<str>);

impl DocumentName {
    /// Checks characters and length.
    pub fn new(text: &str) -> Result<Self, InvalidDocumentName> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=NAME_CHARS_MAX).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidDocumentName)
        }
    }

    /// Makes the name of an account's document.
    pub fn of_account(account: &AccountId) -> Self {
        Self(format!("{OF_ACCOUNT}{account}").into())
    }

    /// Makes the name of the document about the master keys.
    pub fn of_keys() -> Self {
        Self(OF_KEYS.into())
    }

    /// Makes the name of the document with the list of accounts.
    pub fn of_accounts() -> Self {
        Self(OF_ACCOUNTS.into())
    }

    /// Makes the name of the document about the names of accounts.
    pub fn of_names() -> Self {
        Self(OF_NAMES.into())
    }

    /// Makes the name of the document about the last uses of keys.
    pub fn of_uses() -> Self {
        Self(OF_USES.into())
    }

    /// Returns the account whose document has this name; `None` if it is the name of another kind
    /// of document.
    pub fn account(&self) -> Option<AccountId> {
        AccountId::new(self.0.strip_prefix(OF_ACCOUNT)?).ok()
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DocumentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tag, such as an ETag: two different states of a document have different ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tag(Box<str>);

impl Tag {
    /// Wraps a tag that a store has given.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Makes a tag from a hash of the bytes, for stores that have no tags of their own. If a
    /// document gets the same bytes again, it has the same tag again.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(hex::encode(digest(&SHA256, bytes).as_ref()).into())
    }

    /// Returns the tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A mark of the whole store, which differs whenever any document has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(Box<[u8]>);

impl Mark {
    /// Makes a mark of bytes that a store provides.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

/// The error of a request to a store.
#[derive(Debug)]
pub enum StoreError {
    /// The document has changed: it has another tag than was expected, exists already, or is gone.
    Changed,
    /// The document is larger than the store takes.
    TooLarge,
    /// The store is open for reading only.
    ReadOnly,
    /// The store cannot be reached, or its answer was not understood. If it was asked for a change,
    /// the change may or may not have been made.
    Unavailable(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed => f.write_str("the document was changed meanwhile"),
            Self::TooLarge => f.write_str("the document is larger than the store allows"),
            Self::ReadOnly => f.write_str("documents are only read, and none is changed"),
            Self::Unavailable(cause) => write!(f, "the store cannot be used: {cause}"),
        }
    }
}

impl Error for StoreError {
    // The sentence has the cause, so that the next error of the chain is that of the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) => cause.source(),
            Self::Changed | Self::TooLarge | Self::ReadOnly => None,
        }
    }
}

/// A store of documents, which several gateways share. `conformance::documents` tests what every
/// store must do.
#[async_trait]
pub trait Documents: Debug + Send + Sync {
    /// Returns a mark, which differs from earlier ones if any document has changed since. The call
    /// is cheap. It fails if the store cannot know that now.
    async fn look(&self) -> Result<Mark, StoreError>;

    /// Returns the names and tags of all documents, in the order of their names.
    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError>;

    /// Reads a document; `None` if it does not exist.
    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError>;

    /// Replaces, makes (`expected: None`) or removes (`with: None`) a document, and returns its new
    /// tag. Fails with [`StoreError::Changed`] if the present tag is not the expected one, also if
    /// the document is gone, or exists though none was expected. When this returns, every gateway
    /// sees the change.
    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_files() {
        let account = AccountId::new("123456789012").unwrap();
        let name = DocumentName::of_account(&account);
        assert_eq!((name.as_str(), name.account()), ("account-123456789012", Some(account)));
        assert_eq!(DocumentName::new("account-1234").unwrap().account(), None);
        let others = [DocumentName::of_keys(), DocumentName::of_names(), DocumentName::of_uses()];
        for name in others.into_iter().chain([DocumentName::of_accounts()]) {
            assert_eq!((DocumentName::new(name.as_str()), name.account()), (Ok(name.clone()), None));
        }
        for bad in ["", "a/b", "..", "A", "a.json", "ä", &"a".repeat(65)] {
            assert_eq!(DocumentName::new(bad), Err(InvalidDocumentName), "{bad}");
        }
    }

    #[test]
    fn equal_bytes_have_one_tag() {
        assert_eq!(Tag::of_bytes(b"a"), Tag::of_bytes(b"a"));
        assert_ne!(Tag::of_bytes(b"a"), Tag::of_bytes(b"b"));
        assert_eq!(Tag::of_bytes(b"").as_str().len(), 64);
    }
}
