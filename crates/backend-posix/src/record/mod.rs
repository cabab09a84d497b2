//! The record: all that S3 knows of an object beyond its bytes, in one extended attribute, or in a
//! file beside it ([`records`](crate::records)).
//!
//! `user.slipway` holds a version byte and then fields of the form `tag, length, value`
//! ([`codec`]). An ordinary object's record (stamp, MD5, CRC64NVME, a common content type) takes 45
//! to 50 bytes, which a 256-byte ext4 inode has room for. A record that the file system refuses as
//! too large is split ([`records`](crate::records)).

pub(crate) mod attribute;
mod codec;
mod content_types;
mod fields;
mod input;
mod parts;
mod predecessor;
mod raw;

pub(crate) use attribute::{peek, peek_place, peek_short, raw as raw_attribute, raw_of_place, set_small};
pub(crate) use codec::{
    decode as from_bytes, decode_brief as from_bytes_brief, encode as to_bytes, is_newer,
};
pub(crate) use fields::{Record, fits, is_etag};
pub(crate) use predecessor::{ObjectIdentity, Predecessor};
pub(crate) use raw::Raw;
