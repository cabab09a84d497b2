//! The rules for the tags that a request sets, with S3's errors.

use s3_types::limits::{BUCKET_TAGS_MAX, OBJECT_TAGS_MAX};
use s3_types::{InvalidTags, Tag, Tags};

use crate::error::{ErrorCode, Result, S3Error};

/// The thing that is tagged. S3 has a sentence for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tagged {
    /// An object.
    Object,
    /// A bucket that exists.
    Bucket,
    /// A bucket that is made.
    NewBucket,
}

/// Checks tags; the first that S3 does not allow is `InvalidTag`, and too many are `BadRequest`.
pub fn checked(tags: Vec<Tag>, of: Tagged) -> Result<Tags> {
    let max = if of == Tagged::Object { OBJECT_TAGS_MAX } else { BUCKET_TAGS_MAX };
    Tags::new(tags, max).map_err(|invalid| refused(invalid, of))
}

/// Returns S3's error for tags that it does not allow.
pub(crate) fn refused(invalid: InvalidTags, of: Tagged) -> S3Error {
    let about = |key: Box<str>, message| {
        S3Error::with_message(ErrorCode::InvalidTag, message).detail("TagKey", key.into_string())
    };
    match invalid {
        InvalidTags::TooMany if of == Tagged::Object => {
            S3Error::with_message(ErrorCode::BadRequest, "Object tags cannot be greater than 10")
        }
        InvalidTags::TooMany => {
            S3Error::with_message(ErrorCode::BadRequest, "Bucket tag count cannot be greater than 50")
        }
        InvalidTags::Duplicate { key } => about(key, "Cannot provide multiple Tags with the same key"),
        InvalidTags::Key { key } => about(key, "The TagKey you have provided is invalid"),
        InvalidTags::Value { key, value } => {
            let error = about(key, "The TagValue you have provided is invalid");
            error.detail("TagValue", value.into_string())
        }
        InvalidTags::Reserved { key } => match of {
            Tagged::Object => about(key, "Your TagKey cannot be prefixed with aws:"),
            Tagged::Bucket => about(key, "System tags cannot be added/updated by requester"),
            Tagged::NewBucket => {
                let message = "User-defined tag keys can't start with \"aws:\". This prefix is reserved for \
                    system tags. Remove \"aws:\" from your tag keys and try again.";
                S3Error::with_message(ErrorCode::InvalidTag, message)
            }
        },
    }
}
