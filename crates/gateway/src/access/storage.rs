use std::sync::Arc;

use backend::{Backend, BucketState, Capabilities, Context, ObjectCheck, Statistics};
use iam::{Decision, Values};
use s3_types::{ActionSet, BucketName, NeededFacts, S3Action};

use super::asker::{Asker, has_ended};
use super::authorized::Authorized;
use super::deferred::Deferred;
use super::rules::BucketDefaults;
use super::subject::Subject;

/// The reason why a requester does not get an [`Authorized`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The requester is not allowed to do this action.
    Denied(S3Action),
    /// The requester's session has ended since the request arrived.
    Ended,
}

/// The storage of a gateway. Requests reach its contents only through an [`Authorized`]. The
/// methods here need no permission: they are for monitoring, or tell whether a bucket exists, which
/// S3 tells everyone.
pub struct Storage {
    backend: Arc<dyn Backend>,
    defaults: BucketDefaults,
}

impl Storage {
    /// Wraps a backend, so that it can be reached only with permission. `defaults` hold for buckets
    /// that have no documents.
    pub fn new(backend: Arc<dyn Backend>, defaults: BucketDefaults) -> Self {
        Self { backend, defaults }
    }

    /// Returns what holds for buckets that have no documents.
    pub fn bucket_defaults(&self) -> BucketDefaults {
        self.defaults
    }

    /// Returns the permission of a requester to do all of these actions with a resource. Some of
    /// them may depend on facts of the object: they are decided when the storage has read it.
    pub fn authorize<'a>(
        &'a self,
        cx: &'a Context,
        asker: &'a Asker<'a>,
        subject: Subject<'a>,
        actions: ActionSet,
        values: &Values<'_>,
    ) -> Result<Authorized<'a>, Refused> {
        if has_ended(asker.requester) {
            return Err(Refused::Ended);
        }
        let mut waiting: Option<(ActionSet, NeededFacts)> = None;
        for action in actions.iter() {
            match asker.decide_noted(action, subject, values) {
                Decision::Allow => {}
                Decision::NeedsObject(facts) if subject.resource.key.is_some() => {
                    let (others, needs) = waiting.unwrap_or((ActionSet::NONE, NeededFacts::default()));
                    waiting = Some((others.and(action), needs.or(facts)));
                }
                Decision::Deny | Decision::NoGrant | Decision::NeedsObject(_) => {
                    return Err(Refused::Denied(action));
                }
            }
        }
        let check = waiting.map(|(of, needs)| -> Arc<dyn ObjectCheck> {
            Arc::new(Deferred::new(asker, subject, of, needs, values))
        });
        Ok(Authorized::new(&self.backend, cx, asker, subject, actions, check))
    }

    /// Returns the abilities of the storage.
    pub fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    /// See [`Backend::ready`].
    pub async fn ready(&self) -> Result<(), String> {
        self.backend.ready().await
    }

    /// Returns figures for monitoring.
    pub async fn statistics(&self) -> Statistics {
        self.backend.statistics().await
    }

    /// True if a bucket with this name exists.
    pub async fn bucket_exists(&self, cx: &Context, bucket: &BucketName) -> backend::Result<bool> {
        self.backend.bucket_exists(cx, bucket).await
    }

    /// See [`Backend::known_bucket`].
    pub fn known_bucket(&self, bucket: &BucketName) -> Option<Arc<BucketState>> {
        self.backend.known_bucket(bucket)
    }

    /// Reads the state of a bucket.
    pub async fn load_bucket(&self, cx: &Context, bucket: &BucketName) -> backend::Result<Arc<BucketState>> {
        self.backend.load_bucket(cx, bucket).await
    }
}
