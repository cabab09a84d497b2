//! The values that options with a choice can have.

use clap::ValueEnum;

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Data, attributes and name are on disk
    Full,
    /// Data and attributes are on disk, the name may not be
    Data,
    /// The data is only in the kernel's memory; a power cut can lose it
    None,
}

/// Where objects' records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Metadata {
    /// In extended attributes of their files
    Xattr,
    /// In files beside the objects' files, for file systems without extended attributes
    Sidecar,
}

/// What the ETags of objects and parts are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ETagSource {
    /// The MD5 of their bytes, as in S3
    Md5,
    /// Their CRC64NVME, for sites whose clients need no MD5: a large PUT takes much less CPU
    Checksum,
}

/// What happens to symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Symlinks {
    /// Followed as long as they stay inside their bucket
    FollowWithin,
    /// Never followed
    Refuse,
}

/// How files are mostly read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessPattern {
    /// The kernel decides, and reads twice as far ahead in files of 4 MiB and more
    Automatic,
    /// From the beginning to the end: always read ahead
    Streaming,
    /// In ranges here and there: read nothing that was not asked for
    Random,
}

/// Which requests with signature version 2 are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SigV2 {
    /// Presigned URLs, which boto3 and the AWS CLI still make by default
    Presigned,
    /// Presigned URLs and the Authorization header
    All,
    /// No requests
    Off,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Where the client's address is taken from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ClientAddress {
    /// The connection: the client is whoever connects
    #[default]
    Connection,
    /// X-Forwarded-For, and X-Forwarded-Proto
    XForwardedFor,
    /// Forwarded (RFC 7239)
    Forwarded,
    /// The PROXY protocol, version 1 or 2, at the beginning of each connection
    ProxyProtocol,
}

/// How lines of the access log look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLogFormat {
    /// One JSON object a line
    Json,
    /// The fields of Amazon S3's server access log
    S3,
}
