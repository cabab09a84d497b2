use std::fmt;
use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::directory::Person;
use crate::session::Session;
use crate::state::Keys;
use crate::tokens::{Claims, SessionToken, TOKEN_CHARS_MAX};

/// The memory in bytes that cached sessions may take, as far as it is counted.
const CACHE_BYTES_MAX: u64 = 16 << 20;
/// The bytes of an entry besides its token and claims.
const ENTRY_OVERHEAD_BYTES: usize = 1_600;
/// The number of entries that there is room for if all have the smallest size.
const ENTRIES_MAX: usize = 10_000;

/// A session that was made from a token.
pub(crate) struct Opened {
    /// The token that came with the access key.
    pub token: SessionToken,
    /// The claims in the token.
    pub claims: Claims,
    /// The session, made from the state with the number `generation`.
    pub session: Arc<Session>,
    /// The number of that state.
    pub generation: u64,
    /// The keys that the token was opened with: with others it may not open.
    pub keys: Arc<Keys>,
    /// The answer of the directory about the person whose session it is; `None` if it was not
    /// asked.
    pub person: Option<Arc<Person>>,
}

/// The sessions of tokens that were opened, by access key. Tokens that could not be opened are not
/// remembered.
pub(crate) struct TokenCache(Cache<Box<str>, Arc<Opened>, Weighter>);

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenCache({} sessions)", self.0.len())
    }
}

#[derive(Debug, Clone)]
struct Weighter;

impl quick_cache::Weighter<Box<str>, Arc<Opened>> for Weighter {
    fn weight(&self, _: &Box<str>, opened: &Arc<Opened>) -> u64 {
        // Claims and the compiled policy are counted as three times what they are when packed.
        let bytes = 4 * opened.token.expose().len().min(TOKEN_CHARS_MAX);
        (bytes + ENTRY_OVERHEAD_BYTES) as u64
    }
}

impl TokenCache {
    pub fn new() -> Self {
        Self(Cache::with_weighter(ENTRIES_MAX, CACHE_BYTES_MAX, Weighter))
    }

    /// Returns the session of an access key, if it was opened with this very token.
    pub fn get(&self, access_key: &str, token: &str) -> Option<Arc<Opened>> {
        self.0.get(access_key).filter(|opened| opened.token.matches(token))
    }

    pub fn insert(&self, access_key: &str, opened: Opened) {
        self.0.insert(access_key.into(), Arc::new(opened));
    }

    /// Forgets all sessions, since the keys of tokens have changed.
    pub fn clear(&self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
