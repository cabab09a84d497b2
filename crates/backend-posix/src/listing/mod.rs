//! ListObjectsV2 and its kin: keys in the order of their bytes, from directories in whatever order.
//!
//! [`index`] reads one directory into a sorted list of components. [`walk`] goes through the directories' indexes in the order
//! of keys, entering only those that a page needs. [`page`] fills pages from a walk.

mod below;
mod index;
mod page;
mod walk;

pub(crate) use index::read_names;
pub(crate) use page::{Query, common_prefix, list};
pub(crate) use walk::after_all;
