//! Access keys.

use s3_types::Timestamp;
use zeroize::Zeroizing;

use super::change::{Context, DRAWS_MAX, PolicyUse};
use super::document::AccountDocument;
use super::error::{IamCode, IamError};
use super::limits::{ACCESS_KEYS_MAX, SERVICE_KEYS_MAX};
use super::names::{Description, Document, Name};
use super::parts::{Key, KeyStatus};
use crate::credential::{AccessKeyId, Credential, SecretKey};
use crate::sealing::SealedFor;
use crate::unique_id::NoRandomNumbers;

/// The owner's name in the associated data with which secrets of root are sealed.
const ROOT_OWNER: &str = "root";
/// The number of random bytes of a secret. They give 40 characters of base64, the length of AWS's.
const SECRET_BYTES: usize = 30;

/// The owner of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOwner {
    /// The root of the account.
    Root,
    /// A user.
    User(Name),
}

/// The arguments of CreateAccessKey.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// The owner of the key.
    pub owner: KeyOwner,
    /// The time from which the key is not accepted any more (not in AWS).
    pub expires: Option<Timestamp>,
    /// The policy that limits the key; a key with one is a service key (not in AWS).
    pub policy: Option<Document>,
    /// A text by which people recognize it (not in AWS).
    pub description: Option<Description>,
}

impl NewKey {
    /// Makes a key that may all that its owner may, and does not end.
    pub const fn plain(owner: KeyOwner) -> Self {
        Self { owner, expires: None, policy: None, description: None }
    }
}

fn no_key(id: &AccessKeyId) -> IamError {
    IamError::new(IamCode::NoSuchEntity, format!("The Access Key with id {id} cannot be found."))
}

fn not_enabled(id: &AccessKeyId, why: &str) -> IamError {
    IamError::new(IamCode::InvalidInput, format!("The Access Key with id {id} cannot be made active: {why}."))
}

/// Makes the error of a server that has no master key.
pub(crate) fn no_master_key() -> IamError {
    let why = "Access keys and sessions cannot be made: the server has no master key to keep their secrets with. \
               `slipway master-key new FILE` makes one, and `slipway serve --master-key-file FILE` takes it.";
    IamError::new(IamCode::NotImplemented, why)
}

impl AccountDocument {
    /// Returns the keys of an owner.
    pub fn keys_of(&self, owner: &KeyOwner) -> Result<&[Key], IamError> {
        match owner {
            KeyOwner::Root => Ok(&self.root_keys),
            KeyOwner::User(name) => Ok(&self.user(name)?.keys),
        }
    }

    fn keys_of_mut(&mut self, owner: &KeyOwner) -> Result<&mut Vec<Key>, IamError> {
        match owner {
            KeyOwner::Root => Ok(&mut self.root_keys),
            KeyOwner::User(name) => Ok(&mut self.user_mut(name)?.keys),
        }
    }

    /// CreateAccessKey. Returns the key with its secret, which no later call returns.
    pub fn create_access_key(&mut self, new: &NewKey, cx: &Context<'_>) -> Result<Credential, IamError> {
        self.check_new_key(new, cx)?;
        let credential = Credential { access_key: self.new_access_key(cx)?, secret_key: new_secret(cx)? };
        self.add_key(new, &credential, cx)?;
        Ok(credential)
    }

    /// Takes over an access key with its secret from another server (not in AWS). The caller checks
    /// that no other account has the key.
    pub fn import_access_key(
        &mut self,
        new: &NewKey,
        credential: &Credential,
        cx: &Context<'_>,
    ) -> Result<(), IamError> {
        self.check_new_key(new, cx)?;
        let id = &credential.access_key;
        // Keys of sessions begin so, and are looked for in their tokens alone.
        if id.as_str().starts_with("ASIA") || self.keys().any(|key| key.id == *id) {
            let message = format!("The Access Key with id {id} cannot be taken over, or is there already.");
            return Err(IamError::new(IamCode::EntityAlreadyExists, message));
        }
        self.add_key(new, credential, cx)
    }

    fn add_key(&mut self, new: &NewKey, credential: &Credential, cx: &Context<'_>) -> Result<(), IamError> {
        let master_keys = cx.master_keys.ok_or_else(no_master_key)?;
        let owner = match &new.owner {
            KeyOwner::Root => ROOT_OWNER,
            KeyOwner::User(name) => self.user(name)?.id.as_str(),
        };
        let of = SealedFor { account: &self.account, owner, access_key: &credential.access_key };
        let key = Key {
            id: credential.access_key.clone(),
            secret: Some(master_keys.seal(&credential.secret_key, of, cx.fill)?),
            status: KeyStatus::Active,
            created: cx.second(),
            expires: new.expires.map(|end| Timestamp::from_second(end.as_second()).unwrap_or(end)),
            policy: new.policy.clone(),
            description: new.description.clone(),
        };
        self.keys_of_mut(&new.owner)?.push(key);
        Ok(())
    }

    fn check_new_key(&self, new: &NewKey, cx: &Context<'_>) -> Result<(), IamError> {
        let keys = self.keys_of(&new.owner)?;
        let of_services = keys.iter().filter(|key| key.is_of_service()).count();
        if new.expires.is_some_and(|end| end <= cx.now) {
            return Err(IamError::new(IamCode::InvalidInput, "The access key would have ended already."));
        }
        let Some(policy) = &new.policy else {
            let is_full = keys.len() - of_services >= ACCESS_KEYS_MAX;
            let quota = || IamError::quota("AccessKeysPerUser", ACCESS_KEYS_MAX);
            return if is_full { Err(quota()) } else { Ok(()) };
        };
        if new.owner == KeyOwner::Root {
            return Err(IamError::new(IamCode::InvalidInput, "A service key is a key of a user."));
        }
        if of_services >= SERVICE_KEYS_MAX {
            return Err(IamError::quota("ServiceKeysPerUser", SERVICE_KEYS_MAX));
        }
        let max = PolicyUse::Session.chars_max();
        cx.check_policy(PolicyUse::Session, policy, || IamError::quota("SessionPolicySize", max)).map(|_| ())
    }

    fn new_access_key(&self, cx: &Context<'_>) -> Result<AccessKeyId, IamError> {
        for _ in 0..DRAWS_MAX {
            let id = AccessKeyId::random(cx.fill)?;
            if !self.keys().any(|key| key.id == id) {
                return Ok(id);
            }
        }
        Err(NoRandomNumbers.into())
    }

    /// UpdateAccessKey: switches a key off or on. A key that would be refused all the same is not
    /// switched on.
    pub fn update_access_key(
        &mut self,
        owner: &KeyOwner,
        id: &AccessKeyId,
        status: KeyStatus,
        now: Timestamp,
    ) -> Result<(), IamError> {
        let keys = self.keys_of_mut(owner)?;
        let key = keys.iter_mut().find(|key| key.id == *id).ok_or_else(|| no_key(id))?;
        if status == KeyStatus::Active {
            if key.secret.is_none() {
                return Err(not_enabled(id, "its secret is lost: make another key"));
            }
            if key.has_ended(now) {
                return Err(not_enabled(id, "it has expired: make another key"));
            }
        }
        key.status = status;
        Ok(())
    }

    /// DeleteAccessKey.
    pub fn delete_access_key(&mut self, owner: &KeyOwner, id: &AccessKeyId) -> Result<(), IamError> {
        let keys = self.keys_of_mut(owner)?;
        let at = keys.iter().position(|key| key.id == *id).ok_or_else(|| no_key(id))?;
        keys.remove(at);
        Ok(())
    }

    /// Seals every secret anew, with the newest master key (not in AWS). Secrets that cannot be
    /// opened stay as they are. Returns how many were sealed anew.
    pub fn reseal(&mut self, cx: &Context<'_>) -> Result<usize, IamError> {
        let keys = cx.master_keys.ok_or_else(no_master_key)?;
        let account = self.account.clone();
        self.each_key_mut(|owner, key| {
            let of = SealedFor { account: &account, owner, access_key: &key.id };
            let Some(sealed) = key.secret.as_ref().filter(|sealed| !keys.is_newest(sealed)) else {
                return Ok(false);
            };
            let Ok(secret) = keys.open(sealed, of) else { return Ok(false) };
            key.secret = Some(keys.seal(&secret, of, cx.fill)?);
            Ok(true)
        })
    }

    /// Gives up the secrets whose master key this server does not have (not in AWS): their keys
    /// become inactive. Returns how many.
    pub fn forget_secrets(&mut self, cx: &Context<'_>) -> Result<usize, IamError> {
        let keys = cx.master_keys.ok_or_else(no_master_key)?;
        self.each_key_mut(|_, key| {
            let is_lost =
                key.secret.as_ref().is_some_and(|sealed| keys.ids().all(|id| id != sealed.key_id()));
            if is_lost {
                key.secret = None;
                key.status = KeyStatus::Inactive;
            }
            Ok(is_lost)
        })
    }

    /// Calls `change` with each key, and with the name of the key's owner that its secret is sealed
    /// for. Returns the number of calls that returned true.
    fn each_key_mut(
        &mut self,
        mut change: impl FnMut(&str, &mut Key) -> Result<bool, IamError>,
    ) -> Result<usize, IamError> {
        let mut count = 0;
        for key in &mut self.root_keys {
            count += usize::from(change(ROOT_OWNER, key)?);
        }
        for user in self.users.values_mut() {
            for key in &mut user.keys {
                count += usize::from(change(user.id.as_str(), key)?);
            }
        }
        Ok(count)
    }

    /// Opens the secret of a key of this account; `None` if the secret was given up.
    pub fn secret_of(
        &self,
        owner: &KeyOwner,
        id: &AccessKeyId,
        keys: &crate::sealing::MasterKeys,
    ) -> Result<Option<SecretKey>, SecretError> {
        let key = self.keys_of(owner).map_err(SecretError::NoKey)?.iter().find(|key| key.id == *id);
        let Some(sealed) = key.ok_or_else(|| SecretError::NoKey(no_key(id)))?.secret.as_ref() else {
            return Ok(None);
        };
        let owner = match owner {
            KeyOwner::Root => ROOT_OWNER,
            KeyOwner::User(name) => self.user(name).map_err(SecretError::NoKey)?.id.as_str(),
        };
        let of = SealedFor { account: &self.account, owner, access_key: id };
        keys.open(sealed, of).map(Some).map_err(SecretError::Shut)
    }
}

/// The reason why the secret of a key cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretError {
    /// The key does not exist.
    NoKey(IamError),
    /// The secret cannot be opened.
    Shut(crate::sealing::SealedShut),
}

/// Makes a secret of 40 characters.
fn new_secret(cx: &Context<'_>) -> Result<SecretKey, IamError> {
    use base64::Engine as _;
    let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
    (cx.fill)(bytes.as_mut())?;
    let text = Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(bytes.as_ref()));
    SecretKey::new(&text).map_err(|e| IamError::new(IamCode::ServiceFailure, e.to_string()))
}
