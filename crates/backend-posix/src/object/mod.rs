//! The operations on objects, one file each.

pub(crate) mod aliases;
mod body;
mod cache;
mod copy;
mod delete;
mod locks;
mod open;
mod read;
mod tags;
mod versions;
mod write;

pub(crate) use cache::ObjectCache;
pub(crate) use copy::{
    Copy, Source, append_range, begin as begin_copy, copy_bytes, copy_object, copy_range, known_digests,
};
#[cfg(test)]
pub(crate) use delete::delete;
pub(crate) use delete::delete_with;
pub(crate) use locks::{lock_of, put_lock};
#[cfg(test)]
pub(crate) use open::open_version;
pub(crate) use open::{marker, open};
pub(crate) use read::{ObjectReading, read, read_inline};
pub(crate) use tags::{Tagged, put_tags, tags};
pub(crate) use write::{
    Destination, NewObject, Writer, begin, check_access, check_early, check_space, is_much,
};
