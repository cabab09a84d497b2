//! The conformance tests of backends: what every backend must do.
//!
//! A test reads through the subject's reader, and does everything else through its writer. So it
//! can test a read-only view, and what one gateway sees of another's writes.
//!
//! Each function makes buckets of its own and removes them. If the backend errs, it panics, like
//! any test. [`run`] calls all of them but [`refused_writes`]. They are not exported one by one, so
//! that the compiler reports one that nothing calls.
#![allow(clippy::missing_panics_doc, clippy::unwrap_used, reason = "tests that other crates run")]

mod buckets;
mod checks;
mod copies;
mod documents;
mod fixture;
mod listing;
mod locks;
mod objects;
mod races;
mod read_only;
mod tags;
mod uploads;
mod versions;

use buckets::{bucket_life, deleting_buckets_with_uploads, deleting_used_buckets, listing_buckets};
use checks::{checked_completions, checked_copies, checked_reads, checked_writes, checks_of_late_writes};
use copies::{copies, copy_conditions};
use documents::{
    documents_at_once, documents_of_buckets, documents_of_new_buckets, documents_of_writers,
    owners_of_buckets,
};
use listing::{listing, listing_pages, odd_keys};
use locks::{default_retentions, locked_versions, no_locks, retentions};
use objects::{
    bodies, conditional_reads, conditional_writes, deletes, directory_objects, only_versions, ranges,
    shared_names,
};
use races::{one_winner, readers_see_one_version};
use tags::{checks_of_tags, tags_of_copies_and_uploads, tags_of_objects};
use uploads::{
    strange_upload_ids, upload_checks, upload_conditions, upload_life, upload_listing, upload_patterns,
};

use versions::versions;

pub use fixture::{Fixture, Subject, collect, digests, if_absent, if_match, key, names, on_behalf_of};
pub use read_only::refused_writes;

/// Runs all tests; for `deep_too` see [`odd_keys`].
pub async fn run(subject: &Subject, deep_too: bool) {
    bucket_life(subject).await;
    listing_buckets(subject).await;
    documents_of_buckets(subject).await;
    owners_of_buckets(subject).await;
    documents_at_once(subject).await;
    documents_of_new_buckets(subject).await;
    documents_of_writers(subject).await;
    deleting_used_buckets(subject).await;
    deleting_buckets_with_uploads(subject).await;
    bodies(subject).await;
    ranges(subject).await;
    conditional_reads(subject).await;
    conditional_writes(subject).await;
    deletes(subject).await;
    directory_objects(subject).await;
    shared_names(subject).await;
    only_versions(subject).await;
    versions(subject).await;
    no_locks(subject).await;
    locked_versions(subject).await;
    retentions(subject).await;
    default_retentions(subject).await;
    odd_keys(subject, deep_too).await;
    listing(subject).await;
    listing_pages(subject).await;
    checked_reads(subject).await;
    checked_writes(subject).await;
    checks_of_late_writes(subject).await;
    checked_copies(subject).await;
    checked_completions(subject).await;
    copies(subject).await;
    copy_conditions(subject).await;
    tags_of_objects(subject).await;
    tags_of_copies_and_uploads(subject).await;
    checks_of_tags(subject).await;
    upload_life(subject).await;
    upload_checks(subject).await;
    upload_conditions(subject).await;
    upload_patterns(subject).await;
    upload_listing(subject).await;
    strange_upload_ids(subject).await;
    one_winner(subject).await;
    readers_see_one_version(subject).await;
}
