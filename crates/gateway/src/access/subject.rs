use std::sync::Arc;

use iam::{BucketRules, Resource};

/// The resource that a permission is about, with the rules of its bucket that the request was
/// checked with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The resource.
    pub resource: Resource<'a>,
    /// The rules; `None` for the service, and for a bucket that does not exist yet.
    pub rules: Option<&'a Arc<BucketRules>>,
}

impl Subject<'_> {
    /// Returns the subject for the bucket of the resource.
    pub fn bucket(self) -> Self {
        Self { resource: Resource { key: None, ..self.resource }, ..self }
    }
}
