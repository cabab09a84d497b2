//! Explanations in the log of refusals that are caused by the contents of DIR or by its file
//! system. The client made no mistake, and cannot see the cause.

use std::fmt;

use backend::BackendError;
use backend::seldom::SeldomEach;
use iam::Resource;

use crate::limits::EXPLAINED_EVERY;

/// The cause of an [`S3Error`](s3_wire::S3Error) that operators must be able to understand, though
/// it is not a fault, and they need not do anything.
#[derive(Debug)]
pub struct Explanation {
    kind: Kind,
    /// The bucket that the refusal is about, if it is about one.
    pub bucket: Option<String>,
    /// The key.
    pub key: Option<String>,
    cause: String,
}

/// The kind of an explanation. Log lines of one kind about one bucket share a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    BucketHoldsFiles,
    BucketHasUploads,
    BucketMounted,
    BucketName,
    DamagedRecord,
    FileSize,
    KeyNotStorable,
    Leased,
    NewerRecord,
    Obstructed,
    OtherName,
    SameObject,
}

impl Explanation {
    /// Returns the explanation of an error of the storage; `None` if it needs none. That is so for
    /// errors of the storage itself ([`BackendError::is_of_storage`]), and for those that it logs
    /// itself, except errors that anyone can cause who may change the object's file.
    pub fn of(error: &BackendError, resource: Resource<'_>) -> Option<Self> {
        let kind = match error {
            BackendError::BucketHoldsFiles { .. } => Kind::BucketHoldsFiles,
            BackendError::BucketHasUploads => Kind::BucketHasUploads,
            BackendError::BucketMounted => Kind::BucketMounted,
            BackendError::BucketNameTaken => Kind::BucketName,
            BackendError::DamagedRecord => Kind::DamagedRecord,
            BackendError::FileTooLarge => Kind::FileSize,
            BackendError::KeyNotStorable(_) => Kind::KeyNotStorable,
            BackendError::Leased => Kind::Leased,
            BackendError::NewerRecord => Kind::NewerRecord,
            BackendError::Obstructed(_) => Kind::Obstructed,
            BackendError::OtherName => Kind::OtherName,
            BackendError::SameObject => Kind::SameObject,
            _ => return None,
        };
        let bucket = resource.bucket.map(|name| name.as_str().to_owned());
        let key = resource.key.map(|key| key.as_str().to_owned());
        Some(Self { kind, bucket, key, cause: error.to_string() })
    }

    /// True if the explanation may be logged now, which then counts as logged. The number of log
    /// lines is limited, since a client may try again and again.
    pub fn is_due(&self) -> bool {
        static LOGGED: SeldomEach<(Kind, Option<String>)> = SeldomEach::every(EXPLAINED_EVERY);
        LOGGED.is_due((self.kind, self.bucket.clone()))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Explanation {}
