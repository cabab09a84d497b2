use s3_types::Timestamp;

use super::words::Owner;
use super::writer::Writer;

/// A bucket in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedBucket<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its ARN.
    pub arn: &'a str,
    /// When it was made.
    pub created: Timestamp,
}

/// The answer of ListBuckets.
#[derive(Debug, Clone, Copy)]
pub struct ListBucketsResult<'a> {
    /// Whose buckets these are.
    pub owner: Owner<'a>,
    /// The prefix asked for; may be empty.
    pub prefix: Option<&'a str>,
    /// Where the next page begins.
    pub continuation_token: Option<&'a str>,
}

impl ListBucketsResult<'_> {
    /// Begins the document, for at most `entries` buckets.
    pub fn begin(&self, entries: usize) -> Writer {
        let mut writer = Writer::document("ListAllMyBucketsResult", 256 + entries * 256);
        writer.owner("Owner", self.owner);
        writer.open("Buckets");
        writer.at_end(|writer| {
            writer.close("Buckets");
            writer.optional_text("Prefix", self.prefix);
            writer.optional_text("ContinuationToken", self.continuation_token);
        });
        writer
    }
}

impl ListedBucket<'_> {
    /// Writes the entry. `region` is shown where the request was a paged one.
    pub fn write(&self, writer: &mut Writer, region: Option<&str>) {
        writer.open("Bucket");
        writer.text("Name", self.name);
        writer.time("CreationDate", self.created);
        writer.optional_text("BucketRegion", region);
        writer.text("BucketArn", self.arn);
        writer.close("Bucket");
    }
}
