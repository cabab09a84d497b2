//! The caches of a tree, except that of the states of buckets.

use std::sync::Arc;

use crate::base::options::Options;
use crate::listing::{self, KnownFor};
use crate::object::ObjectCache;
use crate::upload::{OwnAssemblies, UploadIndexes};

/// Caches of a tree, each of which may be dropped at any time.
#[derive(Debug)]
pub(crate) struct Caches {
    pub listing: listing::Caches,
    pub objects: ObjectCache,
    pub uploads: UploadIndexes,
    /// The uploads whose assemblies this gateway made.
    pub own_assemblies: Arc<OwnAssemblies>,
}

impl Caches {
    pub fn new(options: &Options) -> Self {
        // What one user may read must not be told to another.
        let records = if options.impersonate { KnownFor::Nobody } else { KnownFor::All };
        Self {
            listing: listing::Caches::new(options.index_cache_bytes, records),
            objects: ObjectCache::new(if options.impersonate { 0 } else { options.object_cache_bytes }),
            uploads: UploadIndexes::new(options.index_cache_bytes),
            own_assemblies: Arc::default(),
        }
    }
}
