//! S3's terms as types, and one term of the file system: the requester's account there
//! ([`UnixAccount`]).
//!
//! Everything here is plain data with one constructor per type: code that gets a [`BucketName`] or
//! an [`ObjectKey`] need not check it again. The crate depends neither on the wire format nor on a
//! storage, so that the code of both can use it.

mod account;
mod action;
mod checksum;
mod combine;
mod completed_part;
mod conditions;
mod digest;
mod etag;
pub mod hex;
pub mod limits;
mod metadata;
mod names;
mod object_facts;
mod object_lock;
mod public_access;
mod range;
mod tags;
pub mod words;

pub use account::{RequesterFacts, UnixAccount, UnixIdentity, UnixName};
pub use action::{ActionSet, S3Action};
pub use checksum::{Checksum, ChecksumAlgorithm, ChecksumType, ChecksumValue};
pub use completed_part::CompletedPart;
pub use conditions::{Condition, Conditions, ETagCondition, IfRange, ReadVerdict};
pub use digest::{Checksummer, Checksums, Digester, Digests, ETagSource};
pub use etag::ETag;
pub use jiff::Timestamp;
pub use metadata::ObjectMetadata;
pub use names::{BucketName, InvalidName, ObjectKey, UploadId, VersionId};
pub use object_facts::{NeededFacts, ObjectFacts};
pub use object_lock::{
    DefaultRetention, LockStrength, ObjectLock, Retention, RetentionMode, RetentionPeriod,
};
pub use public_access::{DefaultBlock, Kept, ObjectOwnership, PublicAccessBlock};
pub use range::{ByteRange, Resolved};
pub use tags::{InvalidTags, Tag, Tags, value_of};
pub use words::UnknownWord;
