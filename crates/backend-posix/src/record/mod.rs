//! Records: what S3 knows of a file or directory beyond its bytes, in one extended attribute, or in
//! a file beside it ([`records`](crate::records)).
//!
//! `user.slipway` holds a version byte and then fields of the form `tag, length, value`
//! ([`codec`]). An ordinary object's record (stamp, MD5, CRC64NVME, a common content type) takes 45
//! to 50 bytes, which fit a 256-byte ext4 inode. A record that the file system refuses as too large
//! is split ([`records`](crate::records)).
//!
//! Each kind of record has a type, which names its fields ([`kind`]). Code that makes one record
//! from another destructures that completely, so that no new field is forgotten (a test of `xtask`
//! checks that).

mod attached;
pub(crate) mod attribute;
mod codec;
mod content_types;
mod directory;
mod input;
mod kind;
mod object;
mod part;
mod parts;
mod predecessor;
mod raw;
mod tag;
mod upload;
mod values;
mod version;

pub(crate) use attached::Attached;
pub(crate) use attribute::{peek, peek_place, peek_short, raw as raw_attribute, raw_of_place, set_small};
pub(crate) use codec::{
    Encoded, Reading, Unread, decode as from_bytes, decode_brief as from_bytes_brief, doubt_of,
    encode as to_bytes, is_empty, path_of, stamp_of, unknown_version, with_doubt, with_path,
};
pub(crate) use directory::{BucketRecord, DirectoryRecord};
pub(crate) use kind::{Divided, Kind, OfFile, Unknown};
pub(crate) use object::{ObjectContent, ObjectRecord};
pub(crate) use part::{LayoutRecord, PartRecord};
pub(crate) use predecessor::{ObjectIdentity, Predecessor};
pub(crate) use raw::Raw;
pub(crate) use upload::{CompletionRecord, UploadRecord};
pub(crate) use values::{fits, is_etag};
pub(crate) use version::{Named, Version, early_id, is_order, order_after, removed_id, text_of};
