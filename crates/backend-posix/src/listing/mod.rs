//! ListObjectsV2 and its kin: keys in the order of their bytes, from directories in whatever order.
//!
//! [`names`] reads a directory, [`build`] sorts what is in it into an [`index`], and [`cache`]
//! keeps that as long as it is true. [`walk`] goes through the directories' indexes in the order of
//! keys, entering only those that a page needs. [`page`] fills pages from a walk, within a
//! [`budget`], with [`attributes`] read by several threads. See
//! `docs/decisions/0008-listing-index.md`.

mod attributes;
mod below;
mod budget;
mod build;
mod cache;
mod index;
mod known;
mod names;
mod page;
mod walk;
mod watch;

pub(crate) use cache::Caches;
#[cfg(test)]
pub(crate) use page::list;
pub(crate) use page::{Query, common_prefix, list_unless};
pub(crate) use walk::after_all;
