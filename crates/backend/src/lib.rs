//! The interface of a storage for S3 objects: the traits [`Backend`], [`ObjectWriter`] and
//! [`Maintenance`], and their types. Nothing here knows HTTP.

mod bucket;
mod capabilities;
mod chosen;
#[cfg(feature = "conformance")]
pub mod conformance;
mod context;
mod documents;
mod error;
mod listing;
mod maintenance;
mod metered;
mod object;
mod object_check;
mod object_lock;
mod read;
mod read_only;
mod replace;
pub mod seldom;
mod statistics;
mod storage;
mod upload;
mod version;
mod versioning;
mod writer;

pub use bucket::{
    BucketAttributes, BucketPage, BucketState, BucketTag, ChangeBucketRequest, CreateBucketRequest,
    ListBucketsQuery, OwnerChange, Parsed,
};
pub use capabilities::{Capabilities, Freshness};
pub use chosen::check_part_algorithm;
pub use context::Context;
pub use documents::{DOCUMENTS_BYTES_MAX, DocumentChanges, DocumentKind, Documents};
pub use error::{BackendError, BusyResource, Contention, CopySide, Result};
pub use listing::{ListItem, ListPage, ListPosition, ListQuery, ObjectSummary};
pub use maintenance::{Maintenance, SweepReport};
pub use metered::{Call, CallObserver, Metered};
pub use object::{
    Copied, CopyRequest, CopySource, DeleteReceipt, DeleteRequest, ObjectAttributes, ObjectPart, ObjectRef,
    ObjectTags, PutRequest, PutTagsRequest, TagsReceipt, TagsRequest, VersionRef, WriteOptions, WriteReceipt,
};
pub use object_check::{Check, NotAllowed, ObjectCheck};
pub use object_lock::{
    LockChange, LockReceipt, LockRequest, LockRules, PutLockRequest, UnknownLockRules, VersionLock,
};
pub use read::{FileBody, FileRead, ObjectBody, ObjectRead, ReadRequest, ReadSelector};
pub use read_only::ReadOnly;
pub use replace::replace_documents;
pub use statistics::{CacheStatistics, Statistics, VolumeStatistics};
pub use storage::Backend;
pub use upload::{
    AbortReceipt, AbortRequest, ChosenChecksum, CompleteRequest, CompleteUpload, CopyPartRequest,
    CreateUploadRequest, INITIATOR_BYTES_MAX, Initiator, ListPartsQuery, NewUpload, PartPage, PartReceipt,
    PartSummary, PutPartRequest, UploadPage, UploadPosition, UploadReceipt, UploadRef, UploadSummary,
};
pub use version::check_only_version;
pub use versioning::{DeleteMarker, VersionItem, VersionPage, Versioning, VersionsLack};
pub use writer::{ObjectWriter, PartWriter};
