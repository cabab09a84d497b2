//! What every backend must do, as tests that run against any of them.
//!
//! Each function makes buckets of its own and removes them. They panic where the backend errs, as
//! tests do.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "tests that other crates run")]

mod buckets;
mod copies;
mod fixture;
mod listing;
mod objects;
mod races;
mod uploads;

use std::sync::Arc;

use crate::Backend;

pub use buckets::{bucket_life, deleting_buckets_with_uploads, deleting_used_buckets, listing_buckets};
pub use copies::{copies, copy_conditions};
pub use fixture::{Fixture, collect, digests, if_absent, if_match, key, names, on_behalf_of};
pub use listing::{listing, listing_pages, odd_keys};
pub use objects::{
    bodies, conditional_reads, conditional_writes, deletes, directory_objects, only_versions, ranges,
    shared_names,
};
pub use races::{one_winner, readers_see_one_version};
pub use uploads::{
    strange_upload_ids, upload_checks, upload_conditions, upload_life, upload_listing, upload_patterns,
};

/// Runs all of it; for `deep_too` see [`odd_keys`].
pub async fn run(backend: Arc<dyn Backend>, deep_too: bool) {
    bucket_life(&backend).await;
    listing_buckets(&backend).await;
    deleting_used_buckets(&backend).await;
    deleting_buckets_with_uploads(&backend).await;
    bodies(&backend).await;
    ranges(&backend).await;
    conditional_reads(&backend).await;
    conditional_writes(&backend).await;
    deletes(&backend).await;
    directory_objects(&backend).await;
    shared_names(&backend).await;
    only_versions(&backend).await;
    odd_keys(&backend, deep_too).await;
    listing(&backend).await;
    listing_pages(&backend).await;
    copies(&backend).await;
    copy_conditions(&backend).await;
    upload_life(&backend).await;
    upload_checks(&backend).await;
    upload_conditions(&backend).await;
    upload_patterns(&backend).await;
    upload_listing(&backend).await;
    strange_upload_ids(&backend).await;
    one_winner(&backend).await;
    readers_see_one_version(&backend).await;
}
