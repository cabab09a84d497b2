//! Lists keys in the order of their bytes, from directories in any order (ListObjectsV2 and
//! others).
//!
//! [`mod@read`] reads a directory, in which [`names`] decides what each name is, [`build`] sorts
//! that into an [`index`], and [`cache`] keeps it as long as it is correct ([`kept`],
//! [`mod@watch`], [`drain`]). [`walk`] goes through the directories' indexes in the order of keys,
//! entering only those that a page needs. [`page`] fills pages from a walk, within a [`budget`],
//! with [`attributes`] read by several threads. [`versions`] also lists the old versions of each
//! key, by [`chain_names`]. See `docs/decisions/0008-listing-index.md`.

mod attributes;
mod below;
mod budget;
mod build;
mod cache;
mod chain_names;
mod drain;
mod index;
mod kept;
mod known;
mod names;
mod order;
mod page;
mod read;
mod unread;
mod versions;
mod walk;
mod watch;

pub(crate) use cache::{Caches, KnownFor};
pub(crate) use chain_names::newest_old;
pub(crate) use order::{after_all, common_prefix};
#[cfg(test)]
pub(crate) use page::list;
pub(crate) use page::{Query, list_unless};
pub(crate) use versions::list_versions;
