//! The values of options that offer a choice.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

pub use backend_posix::{AccessPattern, Durability, Metadata, Symlinks};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use s3_types::ETagSource;

/// Returns a parser for one of the values of a type of the storage; `help` describes each value.
pub fn choice<T>(all: &'static [T], help: impl Fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Display + FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Send + Sync + 'static,
{
    let values = all.iter().map(|value| PossibleValue::new(value.to_string()).help(help(*value)));
    PossibleValuesParser::new(values).try_map(|text| text.parse::<T>())
}

/// Returns a parser for the durability: when a write is acknowledged.
pub fn durability() -> impl TypedValueParser<Value = Durability> {
    choice(Durability::ALL, |value| match value {
        Durability::Full => "Data, attributes and name are on disk",
        Durability::Data => "Data and attributes are on disk, the name may not be",
        Durability::None => "The data is only in the kernel's memory; a power cut can lose it",
    })
}

/// Returns a parser for the place where objects' records are kept.
pub fn metadata() -> impl TypedValueParser<Value = Metadata> {
    choice(Metadata::ALL, |value| match value {
        Metadata::Xattr => "In extended attributes of their files",
        Metadata::Sidecar => {
            "In files beside the objects' files, for file systems without extended attributes"
        }
    })
}

/// Returns a parser for the source of ETags of objects and parts.
pub fn etag_source() -> impl TypedValueParser<Value = ETagSource> {
    choice(ETagSource::ALL, |value| match value {
        ETagSource::Md5 => "The MD5 of their bytes, as in S3",
        ETagSource::Checksum => {
            "Their CRC64NVME, for sites whose clients need no MD5: a large PUT takes much less CPU"
        }
    })
}

/// Returns a parser for the treatment of symbolic links.
pub fn symlinks() -> impl TypedValueParser<Value = Symlinks> {
    choice(Symlinks::ALL, |value| match value {
        Symlinks::FollowWithin => "Followed as long as they stay inside their bucket",
        Symlinks::Refuse => "Never followed",
    })
}

/// Returns a parser for the way in which files are mostly read.
pub fn access_pattern() -> impl TypedValueParser<Value = AccessPattern> {
    choice(AccessPattern::ALL, |value| match value {
        AccessPattern::Automatic => {
            "The kernel decides, and reads twice as far ahead in files of 4 MiB and more"
        }
        AccessPattern::Streaming => "From the beginning to the end: always read ahead",
        AccessPattern::Random => "In ranges here and there: read nothing that was not asked for",
    })
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

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// The source of the client's address.
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

/// The form of lines of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLogFormat {
    /// One JSON object a line
    Json,
    /// The fields of Amazon S3's server access log
    S3,
}
