use std::error::Error;
use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;

use crate::credential::Credential;
use crate::session::{KeyKind, Principal, Session};

/// The reason why a key has no session.
#[derive(Debug)]
pub enum Unidentified {
    /// The key does not exist.
    UnknownKey,
    /// The key is disabled, or its user, its role, its provider or its account is.
    Inactive,
    /// The key, or the token with it, has expired.
    Expired,
    /// The token does not belong to this key, or the key needs a token and none was sent.
    InvalidToken,
    /// The store cannot be reached or read, so that nothing is known about the key.
    Unavailable(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for Unidentified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKey => f.write_str("there is no such access key"),
            Self::Inactive => f.write_str("the access key was switched off"),
            Self::Expired => f.write_str("the access key or its token has expired"),
            Self::InvalidToken => f.write_str("the token is not one of the access key"),
            Self::Unavailable(cause) => write!(f, "the access key cannot be checked: {cause}"),
        }
    }
}

impl Error for Unidentified {
    // The sentence has the cause, so that the next error of the chain is that of the cause.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable(cause) => cause.source(),
            Self::UnknownKey | Self::Inactive | Self::Expired | Self::InvalidToken => None,
        }
    }
}

/// A session, or the reason why a key has none.
pub type SessionResult = Result<Arc<Session>, Unidentified>;

/// Finds the session of an access key: the principal that signs with it, the secret that signatures
/// are checked with, and when it ends.
///
/// Neither call checks a signature or whether the session has ended: the caller does.
#[async_trait]
pub trait Identities: Debug + Send + Sync {
    /// Returns what memory has about a key, without waiting or allocating: it is called for each
    /// request. `None` if the key has to be looked up ([`Identities::find`]). `token` is the
    /// security token that came with the key.
    fn known(&self, access_key: &str, token: Option<&str>) -> Option<SessionResult>;

    /// Looks a key up in the store.
    async fn find(&self, access_key: &str, token: Option<&str>) -> SessionResult;
}

/// A store that knows only root's key, which is never used with a token.
#[derive(Debug)]
pub struct RootIdentity(Arc<Session>);

impl RootIdentity {
    /// Makes the store. `root` is the root of the account that owns the storage.
    pub fn new(root: Principal, credential: Credential) -> Self {
        Self(Arc::new(Session::new(root, credential, KeyKind::Root)))
    }

    /// Returns root's session.
    pub const fn session(&self) -> &Arc<Session> {
        &self.0
    }

    fn look(&self, access_key: &str, token: Option<&str>) -> SessionResult {
        if token.is_some() {
            return Err(Unidentified::InvalidToken);
        }
        let is_root = self.0.credential.access_key.as_str() == access_key;
        if is_root { Ok(Arc::clone(&self.0)) } else { Err(Unidentified::UnknownKey) }
    }
}

#[async_trait]
impl Identities for RootIdentity {
    fn known(&self, access_key: &str, token: Option<&str>) -> Option<SessionResult> {
        Some(self.look(access_key, token))
    }

    async fn find(&self, access_key: &str, token: Option<&str>) -> SessionResult {
        self.look(access_key, token)
    }
}
