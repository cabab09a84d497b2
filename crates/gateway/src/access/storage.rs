use std::sync::Arc;

use backend::{Backend, BucketState, Capabilities, Context, Result, Statistics};
use iam::{Decision, Resource, Values};
use s3_types::{ActionSet, BucketName};

use super::asker::Asker;
use super::authorized::Authorized;

/// The storage of a gateway. Requests reach what is in it by an [`Authorized`] alone; what needs no
/// permission is here: monitoring, and whether a bucket exists, which S3 tells everybody.
pub struct Storage(Arc<dyn Backend>);

impl Storage {
    /// Keeps a backend from whoever has no permission.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self(backend)
    }

    /// What a requester may do with a resource, once all of these actions are allowed. `None` if
    /// one is not.
    pub fn authorize<'a>(
        &'a self,
        cx: &'a Context,
        asker: &'a Asker<'a>,
        resource: Resource<'a>,
        actions: ActionSet,
        values: &Values<'_>,
    ) -> Option<Authorized<'a>> {
        let allows = |action| asker.decide(action, resource, values) == Decision::Allow;
        actions.iter().all(allows).then(|| Authorized::new(&self.0, cx, asker, resource, actions))
    }

    /// What the storage can do.
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// See [`Backend::ready`].
    pub async fn ready(&self) -> Result<(), String> {
        self.0.ready().await
    }

    /// Figures for monitoring.
    pub async fn statistics(&self) -> Statistics {
        self.0.statistics().await
    }

    /// True if there is a bucket of this name.
    pub async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> Result<bool> {
        self.0.bucket_exists(cx, bucket).await
    }

    /// See [`Backend::known_bucket`].
    pub fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.0.known_bucket(bucket)
    }

    /// Reads the state of a bucket.
    pub async fn load_bucket(&self, cx: &Context, bucket: &BucketName) -> Result<Arc<BucketState>> {
        self.0.load_bucket(cx, bucket).await
    }
}
