//! The lookup of the access keys of requests.

use std::sync::Arc;

use async_trait::async_trait;

use super::directory_keys::is_of_session;
use super::present::Registry;
use super::token_cache::Opened;
use crate::credential::{AccessKeyId, Credential};
use crate::directory::Person;
use crate::identities::{Identities, SessionResult, Unidentified};
use crate::state::Snapshot;
use crate::tokens::{Claims, SessionKind, SessionToken, Who};

impl Registry {
    /// Returns root's session if `access_key` is the key that the server was started with; the
    /// store is not asked for it.
    fn of_root(&self, access_key: &str, token: Option<&str>) -> Option<SessionResult> {
        let root = self.root.load();
        if root.credential.access_key.as_str() != access_key {
            return None;
        }
        // Root's key has no token.
        Some(if token.is_none() { Ok(Arc::clone(&root)) } else { Err(Unidentified::InvalidToken) })
    }

    /// True if a session was made from this state, and the directory's description of its person
    /// may still be used.
    fn is_present(&self, opened: &Opened, state: &Snapshot) -> bool {
        let may_use = |person: &Arc<Person>| self.directory.get().is_some_and(|of| of.is_present(person));
        opened.generation == state.generation() && opened.person.as_ref().is_none_or(may_use)
    }

    /// Opens a token, and makes its session from a state, or takes it from the cache.
    async fn open_token(&self, state: &Snapshot, access_key: &str, token: &str) -> SessionResult {
        let (now, keys) = (self.clock.now(), self.keys.load_full());
        let cached = self.tokens.get(access_key, token).filter(|opened| Arc::ptr_eq(&opened.keys, &keys));
        if let Some(opened) = cached.as_ref().filter(|opened| self.is_present(opened, state)) {
            return Ok(Arc::clone(&opened.session));
        }
        let (claims, credential) = if let Some(opened) = cached {
            // The state has changed since, or it is time to ask the directory again.
            (opened.claims.clone(), opened.session.credential.clone())
        } else {
            let tokens = keys.tokens.as_ref().ok_or(Unidentified::InvalidToken)?;
            let (claims, secret_key) = tokens.open(access_key, token)?;
            let access_key = AccessKeyId::new(access_key).map_err(|_| Unidentified::InvalidToken)?;
            (claims, Credential { access_key, secret_key })
        };
        claims.check_time(now)?;
        let person = self.person_of(&claims).await?;
        let session = Arc::new(state.session_of(&claims, credential, person.as_deref())?);
        let opened = Opened {
            token: SessionToken::received(token),
            claims,
            session: Arc::clone(&session),
            generation: state.generation(),
            keys,
            person,
        };
        self.tokens.insert(access_key, opened);
        Ok(session)
    }

    /// Asks the directory for the person who has a session; `None` for a session of another kind.
    async fn person_of(&self, claims: &Claims) -> Result<Option<Arc<Person>>, Unidentified> {
        let entry = match (claims.kind, &claims.principal) {
            (SessionKind::Ldap, Who::Entry(entry)) => entry,
            (SessionKind::Ldap, _) => return Err(Unidentified::InvalidToken),
            _ => return Ok(None),
        };
        let directory = self.directory.get().ok_or(Unidentified::UnknownKey)?;
        match directory.by_entry(entry).await {
            Ok(Some(person)) => Ok(Some(person)),
            Ok(None) => Err(Unidentified::UnknownKey),
            Err(why) => Err(Unidentified::Unavailable(Box::new(why))),
        }
    }

    async fn answer(&self, state: &Snapshot, access_key: &str, token: Option<&str>) -> SessionResult {
        match (state.by_access_key(access_key), token) {
            // A key that lasts has no token.
            (Some(_), Some(_)) => Err(Unidentified::InvalidToken),
            (Some(found), None) => found,
            (None, Some(token)) => self.open_token(state, access_key, token).await,
            (None, None) => self.find_in_directory(state, access_key).await,
        }
    }
}

#[async_trait]
impl Identities for Registry {
    fn known(&self, access_key: &str, token: Option<&str>) -> Option<SessionResult> {
        if let Some(of_root) = self.of_root(access_key, token) {
            return Some(of_root);
        }
        let state = self.fresh()?;
        match (state.by_access_key(access_key), token) {
            (Some(_), Some(_)) => Some(Err(Unidentified::InvalidToken)),
            (Some(found), None) => Some(found),
            (None, Some(token)) => {
                let opened = self.tokens.get(access_key, token)?;
                self.is_present(&opened, &state).then(|| Ok(Arc::clone(&opened.session)))
            }
            (None, None) if is_of_session(access_key) => Some(Err(Unidentified::UnknownKey)),
            // It may have been made at another gateway just now, or be one of the directory.
            (None, None) => self.known_of_directory(&state, access_key).map(Ok),
        }
    }

    async fn find(&self, access_key: &str, token: Option<&str>) -> SessionResult {
        if let Some(of_root) = self.of_root(access_key, token) {
            return of_root;
        }
        let fresh = self.fresh().map(|state| Arc::clone(&state));
        let Some(state) = fresh else {
            let state = self.look().await?;
            return self.answer(&state, access_key, token).await;
        };
        let answer = self.answer(&state, access_key, token).await;
        // The key, or whose session it is, may have been made at another gateway just now.
        let is_unknown = matches!(answer, Err(Unidentified::UnknownKey | Unidentified::Unavailable(_)));
        let can_be_new = token.is_some() || !is_of_session(access_key);
        if is_unknown && can_be_new && self.may_look_for_unknown() {
            let state = self.look().await?;
            return self.answer(&state, access_key, token).await;
        }
        answer
    }
}
