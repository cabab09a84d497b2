use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::documents::{DocumentName, Documents, Mark, StoreError, Tag};
use crate::model::limits::ACCOUNT_BYTES_MAX;

/// Documents in memory, for tests, and for storages that keep nothing. Clones share the documents,
/// as several gateways share a store.
#[derive(Debug, Clone, Default)]
pub struct MemoryDocuments(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    documents: BTreeMap<DocumentName, Bytes>,
    /// The number of changes so far.
    changes: u64,
}

impl MemoryDocuments {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Each change is a single call of the map: it is whole also after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Documents for MemoryDocuments {
    async fn look(&self) -> Result<Mark, StoreError> {
        Ok(Mark::new(&self.kept().changes.to_be_bytes()))
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        let kept = self.kept();
        Ok(kept.documents.iter().map(|(name, bytes)| (name.clone(), Tag::of_bytes(bytes))).collect())
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        let found = self.kept().documents.get(name).cloned();
        Ok(found.map(|bytes| (bytes.clone(), Tag::of_bytes(&bytes))))
    }

    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        if with.as_ref().is_some_and(|bytes| bytes.len() > ACCOUNT_BYTES_MAX) {
            return Err(StoreError::TooLarge);
        }
        let mut kept = self.kept();
        let there = kept.documents.get(name).map(|bytes| Tag::of_bytes(bytes));
        if there.as_ref() != expected {
            return Err(StoreError::Changed);
        }
        kept.changes += 1;
        let tag = with.as_ref().map(|bytes| Tag::of_bytes(bytes));
        match with {
            Some(bytes) => drop(kept.documents.insert(name.clone(), bytes)),
            None => drop(kept.documents.remove(name)),
        }
        Ok(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::documents::{Subject, run};

    #[tokio::test]
    async fn documents_in_memory_are_documents() {
        let documents = MemoryDocuments::default();
        let one: Arc<dyn Documents> = Arc::new(documents.clone());
        run(&Subject { one, other: Arc::new(documents), bytes_max: None }).await;
    }
}
