//! The values of options that offer a choice.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

pub use backend_posix::{AccessPattern, Durability, Metadata, Symlinks};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use s3_types::{DefaultBlock, ETagSource};

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
        Durability::Full => "The data, the metadata and the file's name: a power cut loses nothing",
        Durability::Data => {
            "The data and the metadata, but not the file's name: after a power cut the object may be missing"
        }
        Durability::None => {
            "Nothing: the data may be only in the kernel's memory, so that a power cut can lose or damage it"
        }
    })
}

/// Returns a parser for the place where objects' records are kept.
pub fn metadata() -> impl TypedValueParser<Value = Metadata> {
    choice(Metadata::ALL, |value| match value {
        Metadata::Xattr => "Extended attributes of the object's file",
        Metadata::Sidecar => {
            "Hidden files beside the objects' files, for file systems without extended attributes"
        }
    })
}

/// Returns a parser for the source of ETags of objects and parts.
pub fn etag_source() -> impl TypedValueParser<Value = ETagSource> {
    choice(ETagSource::ALL, |value| match value {
        ETagSource::Md5 => "The MD5 of the bytes, as on S3",
        ETagSource::Checksum => {
            "The CRC64NVME of the bytes, which takes much less CPU in a large PUT. For clients that need no MD5"
        }
    })
}

/// Returns a parser for whether public access is blocked to a bucket that does not say it.
pub fn default_block() -> impl TypedValueParser<Value = DefaultBlock> {
    choice(DefaultBlock::ALL, |value| match value {
        DefaultBlock::On => {
            "Public access lists and policies are refused, and those that exist have no effect"
        }
        DefaultBlock::Off => "Nothing is blocked",
    })
}

/// Returns a parser for the treatment of symbolic links.
pub fn symlinks() -> impl TypedValueParser<Value = Symlinks> {
    choice(Symlinks::ALL, |value| match value {
        Symlinks::FollowWithin => "Follow links that lead to a file or directory in the same bucket",
        Symlinks::Refuse => "Follow no links",
    })
}

/// Returns a parser for the way in which files are mostly read.
pub fn access_pattern() -> impl TypedValueParser<Value = AccessPattern> {
    choice(AccessPattern::ALL, |value| match value {
        AccessPattern::Automatic => {
            "The kernel decides how far it reads ahead, but for files of 4 MiB and more it reads twice as far"
        }
        AccessPattern::Streaming => {
            "Whole files, from the beginning to the end: the kernel reads twice as far ahead in files of any size"
        }
        AccessPattern::Random => "Ranges at any offsets: the kernel does not read ahead",
    })
}

/// Which requests with signature version 2 are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SigV2 {
    /// Only presigned URLs, which boto3 and the AWS CLI still make with this version by default
    Presigned,
    /// Presigned URLs, and requests with an Authorization header
    All,
    /// No requests
    Off,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people to read
    Text,
    /// One JSON object per line
    Json,
}

/// The source of the client's address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ClientAddress {
    /// The connection itself: the address that connects is the client's
    #[default]
    Connection,
    /// The headers X-Forwarded-For (address) and X-Forwarded-Proto (TLS)
    XForwardedFor,
    /// The header Forwarded (RFC 7239)
    Forwarded,
    /// The PROXY protocol, version 1 or 2, which the proxy sends at the beginning of each
    /// connection
    ProxyProtocol,
}

/// The form of lines of the access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AccessLogFormat {
    /// One JSON object per line
    Json,
    /// The format of Amazon S3's server access log
    S3,
}
