use s3_types::Timestamp;

use super::Owner;
use super::writer::Writer;

/// A bucket in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedBucket<'a> {
    /// Its name.
    pub name: &'a str,
    /// When it was made.
    pub created: Timestamp,
}

/// The answer of ListBuckets.
#[derive(Debug, Clone, Copy)]
pub struct ListBucketsResult<'a> {
    /// Whose buckets these are.
    pub owner: Owner<'a>,
    /// The region of all of them, to be shown where the request was a paged one.
    pub region: Option<&'a str>,
    /// The prefix asked for.
    pub prefix: Option<&'a str>,
    /// Where the next page begins.
    pub continuation_token: Option<&'a str>,
}

impl ListBucketsResult<'_> {
    /// The document.
    pub fn render<'b>(&self, buckets: impl IntoIterator<Item = ListedBucket<'b>>) -> String {
        let buckets = buckets.into_iter();
        let mut writer = Writer::document("ListAllMyBucketsResult", 256 + buckets.size_hint().0 * 160);
        writer.owner("Owner", self.owner);
        writer.open("Buckets");
        for bucket in buckets {
            writer.open("Bucket");
            writer.text("Name", bucket.name);
            writer.time("CreationDate", bucket.created);
            writer.optional_text("BucketRegion", self.region);
            writer.close("Bucket");
        }
        writer.close("Buckets");
        writer.optional_text("ContinuationToken", self.continuation_token);
        writer.optional_text("Prefix", self.prefix);
        writer.finish()
    }
}
