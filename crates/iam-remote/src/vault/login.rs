//! Tokens of Vault: logging in to get them, and renewing them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use iam::StoreError;
use s3_client::{Request, target};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

use super::wire::{Auth, Data, Errors, LoggedIn, OwnToken};
use crate::exchange::{Answer, Channel, shown, unavailable};
use crate::limits::{LOGIN_PAUSE_MAX, SECRETS_INTERVAL, STORE_ANSWER_BYTES_MAX};
use crate::secrets::{SecretsOf, read};

const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");
/// The header without which agents and proxies of Vault refuse requests.
const REQUEST: HeaderName = HeaderName::from_static("x-vault-request");

/// The credentials with which a gateway logs in to Vault.
#[derive(Clone)]
pub enum VaultLogin {
    /// A token that the operator provides.
    Token(Zeroizing<String>),
    /// The name and the password of a program (the method `approle`).
    AppRole {
        /// The path below `auth/` where the method is mounted.
        mount: String,
        /// The id of the role.
        role_id: String,
        /// The secret, unless the role needs none.
        secret_id: Option<Zeroizing<String>>,
    },
    /// A service account of Kubernetes.
    Kubernetes {
        /// The path below `auth/` where the method is mounted.
        mount: String,
        /// The role of the method.
        role: String,
        /// The token of the service account.
        jwt: Zeroizing<String>,
    },
}

impl fmt::Debug for VaultLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token",
            Self::AppRole { .. } => "AppRole",
            Self::Kubernetes { .. } => "Kubernetes",
        })
    }
}

/// A token, with the time for which it is valid.
struct Token {
    value: HeaderValue,
    /// The time for which the token is valid, from its receipt; `None` for always.
    lease: Option<Duration>,
    got: Instant,
    may_renew: bool,
    /// The time at which the next attempt to renew the token is due.
    due: Option<Instant>,
}

impl Token {
    fn new(value: &str, lease_seconds: u64, may_renew: bool) -> Result<Self, StoreError> {
        let mut value = HeaderValue::from_str(value).map_err(|_| unavailable("the token is none"))?;
        value.set_sensitive(true);
        let (lease, got) = ((lease_seconds > 0).then(|| Duration::from_secs(lease_seconds)), Instant::now());
        Ok(Self { value, lease, got, may_renew, due: lease.map(|lease| got + lease * 2 / 3) })
    }

    fn is_good(&self) -> bool {
        self.lease.is_none_or(|lease| self.got.elapsed() < lease)
    }
}

#[derive(Default)]
struct State {
    token: Option<Arc<Token>>,
    /// The last login that was refused: the reason, the number of refusals in a row, and the time
    /// of the next login.
    refused: Option<(String, u32, Instant)>,
}

/// A Vault server, to which requests are sent with a valid token.
pub struct LoggedInChannel {
    channel: Channel,
    namespace: Option<HeaderValue>,
    secrets: SecretsOf<VaultLogin>,
    state: Mutex<State>,
}

/// A request to Vault.
#[derive(Debug, Clone)]
pub struct Call<'c> {
    pub method: Method,
    /// The path below `/v1/`.
    pub path: String,
    pub query: &'c [(&'c str, &'c str)],
    pub body: Option<Bytes>,
}

impl Call<'_> {
    pub fn get(path: String) -> Self {
        Self { method: Method::GET, path, query: &[], body: None }
    }

    pub fn post(path: String, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, path, query: &[], body: Some(body.into()) }
    }
}

impl LoggedInChannel {
    pub fn new(
        channel: Channel,
        namespace: Option<&str>,
        secrets: SecretsOf<VaultLogin>,
    ) -> Result<Self, String> {
        let namespace = namespace.map(HeaderValue::from_str).transpose().map_err(|e| e.to_string())?;
        Ok(Self { channel, namespace, secrets, state: Mutex::default() })
    }

    /// Sends a request with a token. If the token is refused, gets another one and sends the
    /// request once more. The answer may have at most `bytes_max` bytes.
    pub async fn call(&self, call: &Call<'_>, bytes_max: usize) -> Result<Answer, StoreError> {
        let token = self.token().await?;
        let answer = self.send(call, Some(&token), bytes_max).await?;
        let is_new = token.got.elapsed() < SECRETS_INTERVAL;
        if answer.status != StatusCode::FORBIDDEN || is_new || self.knows(&token).await? {
            return Ok(answer);
        }
        {
            let mut state = self.state.lock().await;
            if state.token.as_ref().is_some_and(|now| Arc::ptr_eq(now, &token)) {
                state.token = None;
            }
        }
        let token = self.token().await?;
        self.send(call, Some(&token), bytes_max).await
    }

    /// True if the token is valid: then a refusal means that the token's policies do not allow a
    /// request.
    async fn knows(&self, token: &Token) -> Result<bool, StoreError> {
        let call = Call::get("auth/token/lookup-self".to_owned());
        Ok(self.send(&call, Some(token), STORE_ANSWER_BYTES_MAX).await?.status == StatusCode::OK)
    }

    async fn send(
        &self,
        call: &Call<'_>,
        token: Option<&Token>,
        bytes_max: usize,
    ) -> Result<Answer, StoreError> {
        let target = target(&format!("/v1/{}", call.path), call.query);
        let target = target.ok_or_else(|| unavailable("the path of the store is too long"))?;
        let mut request = Request::new(call.method.clone(), target);
        let headers = &mut request.headers;
        headers.insert(REQUEST, HeaderValue::from_static("true"));
        headers.extend(token.map(|token| (TOKEN, token.value.clone())));
        headers.extend(self.namespace.clone().map(|namespace| (NAMESPACE, namespace)));
        if call.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        self.channel.send(&request, call.body.clone().unwrap_or_default(), bytes_max).await
    }

    /// Returns a valid token: the present one, which is renewed after two thirds of its time, or a
    /// new one.
    async fn token(&self) -> Result<Arc<Token>, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(token) = state.token.clone().filter(|token| token.is_good()) {
            if token.due.is_none_or(|due| Instant::now() < due) {
                return Ok(token);
            }
            let next = self.renewed(&token).await.unwrap_or_else(|why| {
                tracing::warn!(%why, "the token with which the server logs in to Vault, where users and keys are stored, was not \
                    renewed");
                // Tried again in the time that is left.
                let left = token.lease.unwrap_or_default().saturating_sub(token.got.elapsed());
                let due = Some(Instant::now() + (left / 3).max(SECRETS_INTERVAL));
                let (value, got) = (token.value.clone(), token.got);
                Token { value, lease: token.lease, got, may_renew: token.may_renew, due }
            });
            let next = Arc::new(next);
            state.token = Some(Arc::clone(&next));
            return Ok(next);
        }
        state.token = None;
        let token = Arc::new(self.log_in_with_pauses(&mut state).await?);
        state.token = Some(Arc::clone(&token));
        Ok(token)
    }

    /// Renews a token. Gets a new one instead if the token cannot be renewed, or was renewed for at
    /// most half of its time: tokens have a maximum lifetime.
    async fn renewed(&self, token: &Token) -> Result<Token, StoreError> {
        let full = token.lease.unwrap_or_default().as_secs();
        if token.may_renew {
            let call = Call::post("auth/token/renew-self".to_owned(), "{}");
            let answer = self.send(&call, Some(token), STORE_ANSWER_BYTES_MAX).await?;
            let renewed: LoggedIn = expect(&answer)?;
            if renewed.auth.lease_duration == 0 || renewed.auth.lease_duration * 2 > full {
                return of_auth(&renewed.auth);
            }
        }
        self.log_in().await.map_err(|(error, _)| error)
    }

    /// Logs in, with growing pauses after refusals: Vault locks out names that are tried with wrong
    /// passwords too often.
    async fn log_in_with_pauses(&self, state: &mut State) -> Result<Token, StoreError> {
        let (mut times, now) = (0, Instant::now());
        if let Some((why, refused, next)) = &state.refused {
            if now < *next {
                let seconds = next.saturating_duration_since(now).as_secs() + 1;
                return Err(unavailable(format!("{why} (the next login is in {seconds} s)")));
            }
            times = *refused;
        }
        match self.log_in().await {
            Ok(token) => {
                state.refused = None;
                Ok(token)
            }
            Err((error, is_refusal)) => {
                if is_refusal {
                    let pause = SECRETS_INTERVAL * 2_u32.saturating_pow(times.min(10));
                    let next = Instant::now() + pause.min(LOGIN_PAUSE_MAX);
                    state.refused = Some((error.to_string(), times + 1, next));
                }
                Err(error)
            }
        }
    }

    /// Reads the credentials and logs in. The flag of an error is true if the credentials cannot be
    /// read or were refused.
    async fn log_in(&self) -> Result<Token, (StoreError, bool)> {
        let login = read(&self.secrets).await.map_err(|error| (error, true))?;
        let (mount, body) = match &login {
            VaultLogin::Token(value) => return self.given(value).await,
            VaultLogin::AppRole { mount, role_id, secret_id: None } => (mount, json!({ "role_id": role_id })),
            VaultLogin::AppRole { mount, role_id, secret_id: Some(secret_id) } => {
                (mount, json!({ "role_id": role_id, "secret_id": **secret_id }))
            }
            VaultLogin::Kubernetes { mount, role, jwt } => (mount, json!({ "role": role, "jwt": **jwt })),
        };
        let call = Call::post(format!("auth/{mount}/login"), body.to_string());
        let answer = self.send(&call, None, STORE_ANSWER_BYTES_MAX).await.map_err(|error| (error, false))?;
        let is_refusal = answer.status.is_client_error();
        let logged_in: LoggedIn = expect(&answer).map_err(|error| (error, is_refusal))?;
        of_auth(&logged_in.auth).map_err(|error| (error, true))
    }

    /// Makes a token of one that the operator provides, and asks Vault how long it is valid.
    async fn given(&self, value: &str) -> Result<Token, (StoreError, bool)> {
        let token = Token::new(value, 0, false).map_err(|error| (error, true))?;
        let call = Call::get("auth/token/lookup-self".to_owned());
        let answer = self.send(&call, Some(&token), STORE_ANSWER_BYTES_MAX).await;
        let answer = answer.map_err(|error| (error, false))?;
        let is_refusal = answer.status.is_client_error();
        let own: Data<OwnToken> = expect(&answer).map_err(|error| (error, is_refusal))?;
        Token::new(value, own.data.ttl, own.data.renewable).map_err(|error| (error, true))
    }
}

fn of_auth(auth: &Auth) -> Result<Token, StoreError> {
    Token::new(&auth.client_token, auth.lease_duration, auth.renewable)
}

/// Reads the content of an answer, which has to be a success.
pub fn expect<T: DeserializeOwned>(answer: &Answer) -> Result<T, StoreError> {
    if answer.status != StatusCode::OK {
        return Err(refused(answer));
    }
    serde_json::from_slice(&answer.body).map_err(|error| unavailable(format!("Vault's answer: {error}")))
}

/// Makes the error for an answer that is not understood.
pub fn refused(answer: &Answer) -> StoreError {
    let why = errors(answer).join("; ");
    let why = if why.is_empty() { why } else { format!(": {}", shown(&why)) };
    unavailable(format!("Vault answered {}{why}", answer.status))
}

/// Returns the error messages in an answer.
pub fn errors(answer: &Answer) -> Vec<String> {
    serde_json::from_slice::<Errors>(&answer.body).map(|errors| errors.errors).unwrap_or_default()
}
