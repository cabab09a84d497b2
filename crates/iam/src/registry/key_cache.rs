use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::directory::KeyHolder;
use crate::session::Session;

/// The most sessions that are kept.
const SESSIONS_MAX: usize = 10_000;

/// The session of an access key of the directory.
pub(crate) struct FoundKey {
    /// The session, as the state with the number has it.
    pub session: Arc<Session>,
    /// The number of that state.
    pub generation: u64,
    /// The holder of the key, as the directory answered.
    pub holder: Arc<KeyHolder>,
}

/// Sessions of access keys of the directory, by their ids.
pub(crate) struct KeyCache(Cache<Box<str>, Arc<FoundKey>>);

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyCache({} sessions)", self.0.len())
    }
}

impl KeyCache {
    pub fn new() -> Self {
        Self(Cache::new(SESSIONS_MAX))
    }

    pub fn get(&self, access_key: &str) -> Option<Arc<FoundKey>> {
        self.0.get(access_key)
    }

    pub fn insert(&self, access_key: &str, found: FoundKey) {
        self.0.insert(access_key.into(), Arc::new(found));
    }
}
