//! A store of identities in the tree's own files.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use backend::BackendError;
use backend_posix::{DocumentTag, OpenError, ReplaceError, TreeDocuments};
use bytes::Bytes;
use iam::{DocumentName, Documents, Mark, StoreError, Tag};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::limits::IDENTITIES_THREADS_MAX;

/// [`TreeDocuments`] as a store of identities. Calls that may wait for a disk run on the pool of
/// threads for such work. Only a few run at a time, so that they cannot occupy all threads if the
/// file system does not answer.
#[derive(Debug, Clone)]
pub struct InTree {
    documents: Arc<TreeDocuments>,
    turns: Arc<Semaphore>,
}

fn unavailable(error: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable(Box::new(error))
}

impl InTree {
    /// Opens the store of the tree at `dir`. No file is made before the first document.
    pub fn open(dir: &Path) -> Result<Self, OpenError> {
        TreeDocuments::open(dir).map(Self::of)
    }

    /// Opens the store without write access: changes fail.
    pub fn open_to_read(dir: &Path) -> Result<Self, OpenError> {
        TreeDocuments::open_to_read(dir).map(Self::of)
    }

    fn of(documents: TreeDocuments) -> Self {
        let turns = Arc::new(Semaphore::new(IDENTITIES_THREADS_MAX));
        Self { documents: Arc::new(documents), turns }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TreeDocuments) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(unavailable)?;
        let documents = Arc::clone(&self.documents);
        let work = move || {
            // It is the thread's, not that of who waits for it and may go away.
            let _turn = turn;
            work(&documents)
        };
        spawn_blocking(work).await.unwrap_or_else(|error| Err(unavailable(error)))
    }
}

fn tag(tag: &DocumentTag) -> Tag {
    Tag::new(tag.as_str())
}

#[async_trait]
impl Documents for InTree {
    async fn look(&self) -> Result<Mark, StoreError> {
        let mark = self.run(|documents| documents.look().map_err(unavailable)).await?;
        Ok(Mark::new(mark.as_bytes()))
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        let list = self.run(|documents| documents.list().map_err(unavailable)).await?;
        list.iter().map(|(name, of)| Ok((DocumentName::new(name).map_err(unavailable)?, tag(of)))).collect()
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        let name = name.clone();
        let read = self.run(move |documents| documents.read(name.as_str()).map_err(unavailable)).await?;
        Ok(read.map(|(bytes, of)| (bytes, tag(&of))))
    }

    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        let (name, expected) = (name.clone(), expected.map(|tag| DocumentTag::new(tag.as_str())));
        let work = move |documents: &TreeDocuments| {
            let replaced = documents.replace(name.as_str(), expected.as_ref(), with.as_deref());
            replaced.map_err(|error| match error {
                ReplaceError::Changed => StoreError::Changed,
                ReplaceError::TooLarge => StoreError::TooLarge,
                ReplaceError::Storage(BackendError::ReadOnly) => StoreError::ReadOnly,
                ReplaceError::Storage(error) => unavailable(error),
            })
        };
        Ok(self.run(work).await?.as_ref().map(tag))
    }
}

#[cfg(test)]
mod tests {
    use iam::conformance::documents::{Subject, run};
    use iam::{AccessKeyId, Account, AccountId, Credential, Principal, Registry, RootIdentity, SecretKey};

    use super::*;
    use crate::identities::SystemClock;

    fn two(dir: &Path) -> [Arc<dyn Documents>; 2] {
        [0; 2].map(|_| Arc::new(InTree::open(dir).unwrap()) as Arc<dyn Documents>)
    }

    #[tokio::test]
    async fn files_are_documents() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = two(dir.path());
        run(&Subject { one, other, bytes_max: None }).await;
        let left = std::fs::read_dir(dir.path().join(".slipway/iam")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [",lock"]);
    }

    async fn registry(documents: Arc<dyn Documents>) -> Arc<Registry> {
        let account = AccountId::new("123456789012").unwrap();
        let credential = Credential {
            access_key: AccessKeyId::new("the-root-of-the-server").unwrap(),
            secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
        };
        let root = RootIdentity::new(Principal::root(Arc::new(Account::new(account)), None), credential);
        Registry::open(documents, None, &root, Arc::new(SystemClock::start())).await.unwrap()
    }

    /// A change by one gateway is seen by another after its next look; changes that both make are
    /// all kept.
    #[tokio::test]
    async fn two_gateways_share_a_tree() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = two(dir.path());
        let (one, other) = (registry(one).await, registry(other).await);
        assert!(!dir.path().join(".slipway").exists(), "who only looks makes nothing");
        let account = one.create_account("lab").await.unwrap();
        assert!(other.look().await.unwrap().account(&account).is_some());
        for round in 0..10 {
            let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
            let disabled = round % 4 < 2;
            from.update_account(&account, None, Some(disabled)).await.unwrap();
            let seen = to.look().await.unwrap();
            assert_eq!(seen.account(&account).unwrap().document().disabled, disabled, "{round}");
        }
        let made = tokio::join!(one.create_account("left"), other.create_account("right"));
        let made = [made.0.unwrap(), made.1.unwrap()];
        for registry in [&one, &other] {
            let state = registry.look().await.unwrap();
            assert!(made.iter().all(|account| state.account(account).is_some()));
        }
    }

    /// A registry that only reads changes nothing, and makes no directory.
    #[tokio::test]
    async fn a_tree_that_is_only_read() {
        let dir = tempfile::tempdir().unwrap();
        let only_read = registry(Arc::new(InTree::open_to_read(dir.path()).unwrap())).await;
        let refused = only_read.create_account("lab").await.unwrap_err();
        assert!(refused.message.contains("--read-only"), "{refused}");
        assert!(!dir.path().join(".slipway").exists());
        let other = registry(Arc::new(InTree::open(dir.path()).unwrap())).await;
        let account = other.create_account("lab").await.unwrap();
        assert!(only_read.look().await.unwrap().account(&account).is_some());
    }

    /// A document that cannot be read closes its account, and no other.
    #[tokio::test]
    async fn a_document_that_is_damaged_closes_its_account_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = two(dir.path());
        let (one, other) = (registry(one).await, registry(other).await);
        let damaged = one.create_account("damaged").await.unwrap();
        let whole = one.create_account("whole").await.unwrap();
        let file = dir.path().join(format!(".slipway/iam/account-{damaged}.json"));
        let before = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        for registry in [&one, &other] {
            let state = registry.look().await.unwrap();
            assert_eq!((state.account(&damaged).is_none(), state.account(&whole).is_some()), (true, true));
            assert!(registry.update_account(&damaged, None, Some(true)).await.is_err());
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, before).unwrap();
        for registry in [&one, &other] {
            assert!(registry.look().await.unwrap().account(&damaged).is_some());
        }
    }
}
