//! Where records are kept: in attributes, or in files beside the objects'; what is too long for an
//! attribute in a file of its own.

mod companion;
mod kept;
mod sidecar;
mod sidecars;
mod update;

pub(crate) use companion::{
    complete, doubt_companion, move_companion, read as read_companion, release_companion, remove_companion,
    write_companion,
};
#[cfg(test)]
pub(crate) use kept::put;
pub(crate) use kept::{
    Rest, clear, forget, mark, of, of_directory, put_of_directory, put_staged, raw_of, raw_of_directory,
    read, remove, take_along,
};
pub(crate) use sidecar::Sidecar;
pub(crate) use sidecars::write as write_sidecar;
pub(crate) use update::{Present, update};
