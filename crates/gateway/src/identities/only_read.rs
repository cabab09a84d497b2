use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use iam::{DocumentName, Documents, Mark, StoreError, Tag};

/// A store that this gateway may not change.
#[derive(Debug)]
pub struct OnlyRead(pub Arc<dyn Documents>);

#[async_trait]
impl Documents for OnlyRead {
    async fn look(&self) -> Result<Mark, StoreError> {
        self.0.look().await
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        self.0.list().await
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        self.0.read(name).await
    }

    async fn replace(
        &self,
        _: &DocumentName,
        _: Option<&Tag>,
        _: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        Err(StoreError::ReadOnly)
    }
}
