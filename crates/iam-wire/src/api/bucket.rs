//! The input and answer of our action about the owners of buckets.

use s3_types::Timestamp;

use crate::input::inputs;
use crate::output::{elements, outputs};
use crate::page::Page;
use crate::rule::{ACCOUNT_ID, BUCKET_NAME};
use crate::xml::Text;

inputs! {
    SetBucketOwner<'f> {
        bucket_name: &'f str = text("BucketName", &BUCKET_NAME),
        account_id: &'f str = text("AccountId", &ACCOUNT_ID),
    }
    ListBucketOwners {
        page: Page = page(),
    }
}

elements! {
    /// A bucket and its owner. The member `Closed` is present if only root may use the bucket, and
    /// says why.
    BucketOwner<'a> {
        "BucketName" bucket_name: Text<'a>,
        "AccountId" account_id: Option<Text<'a>>,
        "AccountName" account_name: Option<Text<'a>>,
        "CreateDate" create_date: Timestamp,
        "Closed" closed: Option<Text<'a>>,
    }
}

outputs! {
    ListBucketOwners => ListBucketOwnersResult<'a> {
        "Buckets" buckets: Vec<BucketOwner<'a>>,
        "IsTruncated" is_truncated: bool,
        "Marker" marker: Option<Text<'a>>,
    }
}
