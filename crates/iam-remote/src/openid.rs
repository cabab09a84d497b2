//! The keys of OpenID providers, which are kept for some time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use s3_client::Trust;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::claims::{Expected, WebToken};
use crate::fetching::fetch;
use crate::jwt::{Keys, Unverified};
use crate::limits::{FETCH_INTERVAL, KEYS_TIME, PROVIDERS_KEPT_MAX};
use crate::refusal::Refusal;

/// Verifies tokens of OpenID providers. It fetches and keeps the keys for that.
#[derive(Debug)]
pub struct OpenId {
    trust: Trust,
    /// The providers by issuer.
    providers: Mutex<HashMap<Box<str>, Arc<Provider>>>,
}

/// The state of a provider.
#[derive(Debug, Default)]
struct Provider(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The keys, and the time at which they were fetched.
    keys: Option<(Arc<Keys>, Instant)>,
    /// The time at which the last attempt to fetch the keys began.
    tried: Option<Instant>,
    /// The reason why the last attempt failed.
    failure: Option<Arc<str>>,
    /// The receiver for an attempt that is under way: the attempt has ended when the sender is
    /// dropped.
    fetching: Option<watch::Receiver<()>>,
}

/// The result of looking for the keys that may verify a token.
enum Look {
    Found(Arc<Keys>),
    Failed(Arc<str>),
    /// An attempt is needed, or under way: wait for it to end. If there is a sender, begin it.
    Wait(watch::Receiver<()>, Option<watch::Sender<()>>),
}

impl State {
    /// Decides how to get the keys for a token. They are fetched if there are none yet, if they are
    /// old, and if none of them can be the token's. But they are fetched no more often than each
    /// [`FETCH_INTERVAL`], so that made-up tokens do not cause more requests to a provider.
    fn look(&mut self, token: &Unverified<'_>, now: Instant) -> Look {
        let fresh = self.keys.as_ref().filter(|(_, at)| now.saturating_duration_since(*at) < KEYS_TIME);
        let fresh = fresh.map(|(keys, _)| Arc::clone(keys));
        if let Some(keys) = fresh.as_ref().filter(|keys| keys.have(token)) {
            return Look::Found(Arc::clone(keys));
        }
        // One whose sender is gone has ended, perhaps early.
        if let Some(fetching) = self.fetching.as_ref().filter(|fetching| fetching.has_changed().is_ok()) {
            return Look::Wait(fetching.clone(), None);
        }
        self.fetching = None;
        if self.tried.is_none_or(|at| now.saturating_duration_since(at) >= FETCH_INTERVAL) {
            let (sender, receiver) = watch::channel(());
            (self.tried, self.fetching) = (Some(now), Some(receiver.clone()));
            self.failure = Some("the attempt to fetch them was given up".into());
            return Look::Wait(receiver, Some(sender));
        }
        match (&self.failure, fresh) {
            (Some(why), _) => Look::Failed(Arc::clone(why)),
            (None, Some(keys)) => Look::Found(keys),
            (None, None) => Look::Failed("they were fetched just now, and are old".into()),
        }
    }

    /// Stores the result of an attempt.
    fn take(&mut self, result: Result<Keys, String>, now: Instant) {
        match result {
            Ok(keys) => (self.keys, self.failure) = (Some((Arc::new(keys), now)), None),
            Err(why) => self.failure = Some(why.into()),
        }
    }
}

impl OpenId {
    /// Makes a verifier that knows no provider yet. `trust` has the certificate authorities for
    /// connections to providers.
    pub fn new(trust: Trust) -> Self {
        Self { trust, providers: Mutex::default() }
    }

    /// Verifies a token of a known provider: its signature, and then its claims. `now` is in
    /// seconds since 1970.
    pub async fn verify(
        &self,
        token: &Unverified<'_>,
        expected: Expected<'_>,
        now: i64,
    ) -> Result<WebToken, Refusal> {
        let keys = self.keys(token, expected.issuer).await?;
        token.verify(&keys, expected, now)
    }

    async fn keys(&self, token: &Unverified<'_>, issuer: &str) -> Result<Arc<Keys>, Refusal> {
        let provider = self.provider(issuer);
        loop {
            let look = provider.lock().look(token, Instant::now());
            let mut fetching = match look {
                Look::Found(keys) => return Ok(keys),
                Look::Failed(why) => return Err(Refusal::Unreachable(why.to_string())),
                Look::Wait(receiver, sender) => {
                    if let Some(sender) = sender {
                        self.begin(&provider, issuer, sender);
                    }
                    receiver
                }
            };
            // An error, since the sender is dropped at the end.
            let _ = fetching.changed().await;
        }
    }

    /// Begins an attempt in a task of its own, which goes on if the request that waits for it is
    /// cancelled.
    fn begin(&self, provider: &Arc<Provider>, issuer: &str, ended: watch::Sender<()>) {
        let (provider, issuer, trust) = (Arc::clone(provider), issuer.to_owned(), self.trust.clone());
        tokio::spawn(async move {
            let fetched = fetch(&issuer, &trust).await;
            if let Err(why) = &fetched {
                tracing::warn!(
                    issuer,
                    why,
                    "the public keys of an OpenID provider, by which its tokens are verified, could not be fetched"
                );
            }
            provider.lock().take(fetched, Instant::now());
            drop(ended);
        });
    }

    /// Returns the state of a provider. If there is none, one is made; if there are too many, the
    /// provider that was asked longest ago is forgotten.
    fn provider(&self, issuer: &str) -> Arc<Provider> {
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = providers.get(issuer) {
            return Arc::clone(known);
        }
        if providers.len() >= PROVIDERS_KEPT_MAX {
            let oldest = providers.iter().min_by_key(|(_, provider)| provider.lock().tried);
            let oldest = oldest.map(|(issuer, _)| issuer.clone());
            oldest.and_then(|issuer| providers.remove(&issuer));
        }
        Arc::clone(providers.entry(issuer.into()).or_default())
    }
}

impl Provider {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
