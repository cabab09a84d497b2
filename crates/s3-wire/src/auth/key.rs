//! Credential scopes, the signing keys derived from them, and a cache of these keys.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use memchr::memchr;
use zeroize::Zeroizing;

use super::encoding::{Hex, hex};
use crate::limits::SIGNING_KEYS_MAX;

/// An access key and the scope of its signing key: `AKID/20130524/us-east-1/s3/aws4_request`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    text: Box<str>,
    access_key_length: usize,
}

impl Credential {
    /// Reads a credential; `None` for a text without a slash.
    pub(super) fn new(text: &str) -> Option<Self> {
        let access_key_length = memchr(b'/', text.as_bytes())?;
        Some(Self { text: text.into(), access_key_length })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn access_key(&self) -> &str {
        self.text.get(..self.access_key_length).unwrap_or_default()
    }

    pub(super) fn scope(&self) -> &str {
        self.text.get(self.access_key_length + 1..).unwrap_or_default()
    }
}

/// The signing key of SigV4 for one credential.
pub(super) struct SigningKey {
    credential: Credential,
    secret_key: Zeroizing<Box<[u8]>>,
    key: hmac::Key,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("credential", &self.credential).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Derives the key by HMACs of date, region, service and terminal, each with the one before as
    /// its key (SigV4, "Calculate signature").
    pub(super) fn derive(credential: &Credential, secret_key: &str) -> Self {
        let mut first = Zeroizing::new(Vec::with_capacity(4 + secret_key.len()));
        first.extend_from_slice(b"AWS4");
        first.extend_from_slice(secret_key.as_bytes());
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, &first);
        for part in credential.scope().split('/') {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        Self { credential: credential.clone(), secret_key: Zeroizing::new(secret_key.as_bytes().into()), key }
    }

    pub(super) fn credential(&self) -> &Credential {
        &self.credential
    }

    /// Signs the concatenation of `parts`.
    pub(super) fn sign(&self, parts: &[&[u8]]) -> Hex {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(part);
        }
        let mut bytes = [0; 32];
        bytes.copy_from_slice(context.sign().as_ref());
        hex(&bytes)
    }

    fn is_of(&self, credential: &Credential, secret_key: &str) -> bool {
        self.credential == *credential
            && verify_slices_are_equal(&self.secret_key, secret_key.as_bytes()).is_ok()
    }
}

const WAYS: usize = 4;
const SETS: usize = SIGNING_KEYS_MAX / WAYS;
const _: () = assert!(SETS * WAYS == SIGNING_KEYS_MAX && SETS.is_power_of_two());

/// A cache of the signing keys that have verified a request, by access key, date, region and
/// service.
///
/// It holds at most [`SIGNING_KEYS_MAX`] keys, in a table of small sets. Each set has its own lock,
/// and drops its least recently used key. Only keys that verified a valid signature are added, so
/// that strangers cannot empty the cache. An entry is used only with the secret it was derived
/// from: a changed secret takes effect at once.
pub struct SigningKeyCache {
    hasher: RandomState,
    sets: Box<[Mutex<Vec<Arc<SigningKey>>>]>,
}

impl std::fmt::Debug for SigningKeyCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKeyCache").finish_non_exhaustive()
    }
}

impl Default for SigningKeyCache {
    fn default() -> Self {
        Self::new()
    }
}

impl SigningKeyCache {
    /// Makes an empty cache.
    pub fn new() -> Self {
        Self { hasher: RandomState::new(), sets: (0..SETS).map(|_| Mutex::default()).collect() }
    }

    pub(super) fn get(&self, credential: &Credential, secret_key: &str) -> Option<Arc<SigningKey>> {
        let mut set = self.set(credential).lock().unwrap_or_else(PoisonError::into_inner);
        let at = set.iter().position(|key| key.is_of(credential, secret_key))?;
        set.get_mut(..=at)?.rotate_right(1);
        set.first().cloned()
    }

    pub(super) fn insert(&self, key: &Arc<SigningKey>) {
        let mut set = self.set(&key.credential).lock().unwrap_or_else(PoisonError::into_inner);
        set.retain(|old| old.credential != key.credential);
        set.truncate(WAYS - 1);
        set.insert(0, Arc::clone(key));
    }

    fn set(&self, credential: &Credential) -> &Mutex<Vec<Arc<SigningKey>>> {
        let hash = self.hasher.hash_one(credential.text());
        // The remainder fits into a `usize` of any width.
        &self.sets[usize::try_from(hash % SETS as u64).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(n: usize) -> Credential {
        Credential::new(&format!("AKID{n}/20130524/us-east-1/s3/aws4_request")).unwrap()
    }

    #[test]
    fn parts_of_a_credential() {
        let credential = credential(1);
        assert_eq!(credential.access_key(), "AKID1");
        assert_eq!(credential.scope(), "20130524/us-east-1/s3/aws4_request");
        assert_eq!(Credential::new("AKID"), None);
    }

    #[test]
    fn a_hit_needs_the_same_secret() {
        let cache = SigningKeyCache::new();
        assert!(cache.get(&credential(1), "old").is_none());
        cache.insert(&Arc::new(SigningKey::derive(&credential(1), "old")));
        assert!(cache.get(&credential(1), "old").is_some());
        assert!(cache.get(&credential(1), "new").is_none());
        cache.insert(&Arc::new(SigningKey::derive(&credential(1), "new")));
        assert!(cache.get(&credential(1), "new").is_some());
        assert!(cache.get(&credential(1), "old").is_none());
        let signed = |secret: &str| SigningKey::derive(&credential(1), secret).sign(&[b"x"]);
        assert_eq!(cache.get(&credential(1), "new").unwrap().sign(&[b"", b"x"]), signed("new"));
        assert_ne!(signed("new"), signed("old"));
    }

    #[test]
    fn it_stays_small_and_keeps_what_is_used() {
        let cache = SigningKeyCache::new();
        let key = |n| Arc::new(SigningKey::derive(&credential(n), "secret"));
        for n in 0..SIGNING_KEYS_MAX * 2 {
            cache.insert(&key(n));
            cache.insert(&key(0));
        }
        let size: usize = cache.sets.iter().map(|set| set.lock().unwrap().len()).sum();
        assert!(size <= SIGNING_KEYS_MAX && size > SIGNING_KEYS_MAX / 2, "{size}");
        assert!(cache.get(&credential(0), "secret").is_some());
    }

    #[test]
    fn secrets_stay_out_of_logs() {
        let text = format!("{:?}", SigningKey::derive(&credential(1), "hush"));
        assert!(text.contains("AKID1") && !text.contains("hush"), "{text}");
    }
}
