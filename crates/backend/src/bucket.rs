use s3_types::{BucketName, Timestamp};

/// A bucket as ListBuckets and HeadBucket show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketAttributes {
    /// Its name.
    pub name: BucketName,
    /// When it was made.
    pub created: Timestamp,
}

/// One page of buckets, sorted by name.
#[derive(Debug, Clone, Default)]
pub struct BucketPage {
    /// At most as many as were asked for.
    pub buckets: Vec<BucketAttributes>,
    /// The last name of this page, if there are more.
    pub next: Option<BucketName>,
}

/// Which buckets to list.
#[derive(Debug, Clone, Default)]
pub struct ListBucketsQuery {
    /// Only names that start with this.
    pub prefix: String,
    /// Only names after this one.
    pub after: Option<String>,
    /// At most this many, 1 to 10,000.
    pub max_buckets: usize,
}
