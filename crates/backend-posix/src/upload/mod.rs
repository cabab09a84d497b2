//! stub
use crate::bucket::Bucket;
use crate::options::*;
use crate::publish::Stage;
use crate::staging::Sealed;
use crate::store::Store;
use backend::Result;
pub(crate) struct PartTarget { pub bucket: s3_types::BucketName }
impl PartTarget {
    pub fn stage<'s>(&self, _store: &'s Store) -> Result<Stage<'s>> { Err(backend::BackendError::Unsupported("")) }
    pub fn publish(&self, _b: &Bucket<'_>, _s: Sealed) -> Result<()> { Ok(()) }
}
pub(crate) fn sweep(_bucket: &Bucket<'_>, _options: &SweepOptions, _report: &mut SweepReport) -> Result<()> { Ok(()) }
