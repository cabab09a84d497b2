use s3_types::Timestamp;

use super::words::Owner;
use super::writer::Writer;

/// A bucket in a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListedBucket<'a> {
    /// The bucket's name.
    pub name: &'a str,
    /// The bucket's ARN.
    pub arn: &'a str,
    /// The time of the bucket's creation.
    pub created: Timestamp,
}

/// The answer of ListBuckets.
#[derive(Debug, Clone, Copy)]
pub struct ListBucketsResult<'a> {
    /// The owner of all buckets.
    pub owner: Owner<'a>,
    /// The prefix of the request; may be empty.
    pub prefix: Option<&'a str>,
    /// The token for the next page; `None` on the last.
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
    /// Writes the bucket's entry. Give `region` if the request asked for a page.
    pub fn write(&self, writer: &mut Writer, region: Option<&str>) {
        writer.open("Bucket");
        writer.text("Name", self.name);
        writer.time("CreationDate", self.created);
        writer.optional_text("BucketRegion", region);
        writer.text("BucketArn", self.arn);
        writer.close("Bucket");
    }
}
