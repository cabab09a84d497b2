//! Keys of services of another server, as users here take them over.

use std::collections::BTreeSet;

use iam::model::{AccountDocument, Context, Description, Document, Key, KeyOwner, KeyStatus, Name, NewKey};
use iam::{AccessKeyId, Credential, SecretKey};
use s3_types::Timestamp;
use zeroize::Zeroizing;

use super::rows::{Became, Outcome, refused};

/// Says who else has an access key: another account, or root.
pub type Taken<'t> = dyn Fn(&AccessKeyId) -> Option<&'static str> + Send + Sync + 't;

/// A key of a service to be made.
pub struct WantedKey {
    /// The access key.
    pub access_key: String,
    /// Its secret key.
    pub secret: Zeroizing<String>,
    /// The user whose key it is.
    pub user: String,
    /// True if it is not to be accepted.
    pub disabled: bool,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// The policy that limits it to a part of what its user may do.
    pub policy: Document,
    /// The description by which people know it.
    pub description: Option<Description>,
    /// A remark for the report; empty if there is none.
    pub note: String,
}

impl WantedKey {
    /// Returns the access key.
    pub fn id(&self) -> &str {
        &self.access_key
    }

    const fn status(&self) -> KeyStatus {
        if self.disabled { KeyStatus::Inactive } else { KeyStatus::Active }
    }

    fn credential(&self) -> Result<Credential, Became> {
        if self.secret.is_empty() {
            return Err(refused(&"the archive does not have its secret key"));
        }
        Ok(Credential {
            access_key: AccessKeyId::new(&self.access_key).map_err(|why| refused(&why))?,
            secret_key: SecretKey::new(&self.secret).map_err(|why| refused(&why))?,
        })
    }
}

/// Refuses an access key that somebody has.
pub fn check_free(id: &AccessKeyId, taken: &Taken<'_>, document: &AccountDocument) -> Result<(), Became> {
    if document.keys().any(|key| key.id == *id) {
        return Err(refused(&"another user has this access key"));
    }
    match taken(id) {
        Some(whose) => Err(refused(&format!("its access key is one of {whose}"))),
        None => Ok(()),
    }
}

/// Makes a key in `document`, if its user is among those that were taken over.
pub fn take_key(
    wanted: &WantedKey,
    users: &BTreeSet<&str>,
    taken: &Taken<'_>,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Became {
    make_key(wanted, users, taken, document, cx).unwrap_or_else(|became| became)
}

fn make_key(
    wanted: &WantedKey,
    users: &BTreeSet<&str>,
    taken: &Taken<'_>,
    document: &mut AccountDocument,
    cx: &Context<'_>,
) -> Result<Became, Became> {
    let credential = wanted.credential()?;
    let not_taken = || refused(&format!("its user {} was not taken over: see there", wanted.user));
    let name = Name::new(&wanted.user).map_err(|_| not_taken())?;
    let owner = KeyOwner::User(name);
    let id = &credential.access_key;
    if let Some(key) = document.keys_of(&owner).ok().and_then(|keys| keys.iter().find(|key| key.id == *id)) {
        let differences = differences(wanted, key, &credential, &owner, document, cx);
        return Ok(if differences.is_empty() {
            (Outcome::Known, String::new())
        } else {
            let what = differences.join(", ");
            (Outcome::Differs, format!("the key that is there is left as it is: it has {what}"))
        });
    }
    if !users.contains(wanted.user.as_str()) {
        return Err(not_taken());
    }
    check_free(id, taken, document)?;
    let expires = wanted.expires;
    if expires.is_some_and(|end| end <= cx.now) {
        return Err(refused(&"it has ended"));
    }
    let (policy, description) = (Some(wanted.policy.clone()), wanted.description.clone());
    let new = NewKey { owner, expires, policy, description };
    document.import_access_key(&new, &credential, cx).map_err(|error| refused(&error.message))?;
    let switched = document.update_access_key(&new.owner, id, wanted.status(), cx.now);
    switched.map_err(|error| refused(&error.message))?;
    Ok((Outcome::Imported, String::new()))
}

/// Says in what a key that is there differs from one that would be made.
fn differences(
    wanted: &WantedKey,
    key: &Key,
    credential: &Credential,
    owner: &KeyOwner,
    document: &AccountDocument,
    cx: &Context<'_>,
) -> Vec<&'static str> {
    let secret = cx.master_keys.map(|keys| document.secret_of(owner, &key.id, keys));
    let has_secret = matches!(&secret, Some(Ok(Some(secret)))
        if secret.expose() == credential.secret_key.expose());
    let seconds = |end: Option<Timestamp>| end.map(Timestamp::as_second);
    [
        (has_secret, "another secret key"),
        (key.policy.as_ref() == Some(&wanted.policy), "another policy"),
        (seconds(key.expires) == seconds(wanted.expires), "another end"),
        (key.status == wanted.status(), if wanted.disabled { "been enabled" } else { "been disabled" }),
    ]
    .into_iter()
    .filter_map(|(is_same, what)| (!is_same).then_some(what))
    .collect()
}
