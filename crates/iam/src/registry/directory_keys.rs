//! Access keys that entries of the directory have.

use std::sync::Arc;

use super::key_cache::FoundKey;
use super::present::Registry;
use crate::credential::AccessKeyId;
use crate::directory::Directory;
use crate::identities::{SessionResult, Unidentified};
use crate::session::Session;
use crate::state::Snapshot;

/// True for the id of a session's key, which no document has, and which is nothing without its
/// token.
pub(super) fn is_of_session(access_key: &str) -> bool {
    access_key.starts_with("ASIA")
}

impl Registry {
    fn directory_with_keys(&self) -> Option<&Arc<dyn Directory>> {
        self.directory.get().filter(|directory| directory.has_keys())
    }

    /// Returns the session of a key that no document of a state has, if what the directory said of
    /// it may be used still.
    pub(super) fn known_of_directory(&self, state: &Snapshot, access_key: &str) -> Option<Arc<Session>> {
        let directory = self.directory_with_keys()?;
        let found = self.directory_keys.get(access_key)?;
        let counts = found.generation == state.generation() && directory.is_current(&found.holder);
        counts.then(|| Arc::clone(&found.session))
    }

    /// Asks the directory about a key that no document of a state has.
    pub(super) async fn find_in_directory(&self, state: &Snapshot, access_key: &str) -> SessionResult {
        let unknown = state.unknown_key();
        // A document that cannot be read may have it, and would count.
        if !matches!(unknown, Unidentified::UnknownKey) || is_of_session(access_key) {
            return Err(unknown);
        }
        let (Some(directory), Ok(id)) = (self.directory_with_keys(), AccessKeyId::new(access_key)) else {
            return Err(unknown);
        };
        let holder = match directory.by_access_key(&id).await {
            Ok(Some(holder)) => holder,
            Ok(None) => return Err(unknown),
            Err(why) => return Err(Unidentified::Unavailable(Box::new(why))),
        };
        let account = state.root().principal.account.id();
        let session = Arc::new(state.session_of_key(account, &holder)?);
        let generation = state.generation();
        let found = FoundKey { session: Arc::clone(&session), generation, holder };
        self.directory_keys.insert(access_key, found);
        Ok(session)
    }

    /// Tells the directory that a lasting key of a document was used in an hour.
    pub(super) fn notice_use(&self, session: &Session, hour: i64) {
        if let (None, Some(directory)) = (&session.token, self.directory_with_keys()) {
            directory.notice_other(&session.credential.access_key, hour);
        }
    }
}
