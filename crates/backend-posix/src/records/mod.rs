//! The places of records: attributes, or files beside the objects'. A record that is too long for
//! an attribute is in a file of its own.
//!
//! Only the functions here read and write records of objects and directories: each does so where
//! the tree keeps them ([`kept`]).

mod attributes;
mod companion;
mod kept;
mod look;
mod sidecar;
mod sidecars;
mod staged;
mod update;

pub(crate) use companion::{
    complete, doubt_companion, move_companion, read as read_companion, release_companion,
};
#[cfg(test)]
pub(crate) use kept::put;
pub(crate) use kept::{
    clear, forget, is_sure, mark, of, of_directory, put_of_directory, raw_of, raw_of_directory, read, remove,
    restore, sync, take_along,
};
pub(crate) use look::{HeldAttribute, Look};
pub(crate) use sidecar::Sidecar;
pub(crate) use staged::{DeferredRecord, restage, stage};
pub(crate) use update::{Present, update};
