use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use s3_types::{BucketName, Timestamp};

use crate::documents::{DocumentChanges, Documents};

/// A bucket in a list of buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAttributes {
    /// The name of the bucket.
    pub name: BucketName,
    /// The time at which the bucket was made.
    pub created: Timestamp,
}

/// The state of a bucket as it was when it was read: its owner, its time and its documents.
///
/// A state does not prove that its bucket still exists: the storage reports that when it opens the
/// bucket.
#[derive(Debug)]
pub struct BucketState {
    /// The name of the bucket.
    pub name: BucketName,
    /// The time at which the bucket was made.
    pub created: Timestamp,
    /// The id of the account that owns the bucket; `None` for the account that owns the storage.
    pub owner: Option<Box<str>>,
    /// The bucket's documents of those kinds that states have
    /// ([`crate::DocumentKind::is_in_state`]). A damaged one is missing, and closes the bucket.
    pub documents: Documents,
    /// The tag of these documents: a change of any of them gives the bucket another tag.
    pub tag: BucketTag,
    /// The reason why only root may use the bucket; `None` if others may. Some or all of its
    /// documents could not be read, and a missing one may forbid something.
    pub closed: Option<Box<str>>,
    /// The parsed form of the documents, once it was needed.
    pub parsed: Parsed,
}

/// A tag that distinguishes the documents of a bucket from those that it has at other times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketTag(Box<[u8]>);

impl BucketTag {
    /// Makes a tag of these bytes, which only the storage interprets.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

/// A place in a state where the storage's caller keeps the parsed documents, so that they are
/// parsed once, and not for each request.
#[derive(Default)]
pub struct Parsed(OnceLock<Box<dyn Any + Send + Sync>>);

impl Parsed {
    /// Returns the value that the first call made; only that call runs `make`. `None` if the value
    /// has another type than `T`.
    pub fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl fmt::Debug for Parsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "Parsed(..)" } else { "Parsed" })
    }
}

/// A request to make a bucket.
#[derive(Debug, Clone)]
pub struct CreateBucketRequest<'a> {
    /// The name of the bucket.
    pub name: &'a BucketName,
    /// The id of the account that owns the bucket; `None` for the account that owns the storage.
    pub owner: Option<&'a str>,
    /// The documents that the bucket has from the beginning.
    pub documents: Documents,
}

impl<'a> CreateBucketRequest<'a> {
    /// Makes a request for a bucket of the account that owns the storage, without documents.
    pub const fn plain(name: &'a BucketName) -> Self {
        Self { name, owner: None, documents: Documents::new() }
    }
}

/// A change of a bucket's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnerChange<'a> {
    /// The owner stays.
    #[default]
    Kept,
    /// The account that owns the storage owns the bucket.
    Storage,
    /// The account with this id owns the bucket.
    Account(&'a str),
}

/// A request to change a bucket's documents and its owner. All of the changes are made, or none.
#[derive(Debug, Clone, Copy)]
pub struct ChangeBucketRequest<'a> {
    /// The name of the bucket.
    pub name: &'a BucketName,
    /// The tag of the state that the writer has read: with another one nothing is changed
    /// ([`crate::BackendError::BucketChanged`]).
    pub expected: &'a BucketTag,
    /// The changes of documents.
    pub changes: &'a DocumentChanges,
    /// The change of the owner.
    pub owner: OwnerChange<'a>,
}

/// One page of buckets, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct BucketPage {
    /// The buckets, at most as many as the query asks for.
    pub buckets: Vec<BucketAttributes>,
    /// The last name of this page, if there are more.
    pub next: Option<BucketName>,
    /// The number of buckets that could not be read, and are left out of this page. The storage has
    /// logged them.
    pub unreadable: usize,
}

/// A query for a page of buckets.
#[derive(Debug, Clone, Default)]
pub struct ListBucketsQuery {
    /// The prefix that names must have.
    pub prefix: String,
    /// The name after which the page begins.
    pub after: Option<String>,
    /// The largest number of buckets on the page, 1 to 10,000.
    pub max_buckets: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_parsed_first_stays() {
        let parsed = Parsed::default();
        assert_eq!(parsed.get_or_make(|| 1_u8), Some(&1));
        assert_eq!(parsed.get_or_make(|| 2_u8), Some(&1));
        assert_eq!(parsed.get_or_make(|| "another type"), None);
    }
}
