//! The times at which keys were last used, to the hour. They are kept in memory, and written now
//! and then to a document that all gateways share. If a gateway crashes, what it had not written is
//! lost.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use s3_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::present::{Registry, unavailable};
use super::uses::{LastUse, UsedService};
use crate::credential::AccessKeyId;
use crate::documents::{DocumentName, StoreError, Tag};
use crate::model::IamError;
use crate::session::{KeyKind, PrincipalKind, Session};
use crate::unique_id::UniqueId;

/// The version of the format.
const FORMAT: u32 = 1;
/// The number of attempts, if other gateways are faster. What was not written is tried again the
/// next time.
const ATTEMPTS: usize = 3;
const HOUR_SECONDS: i64 = 3_600;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsesDocument {
    format: u32,
    #[serde(deserialize_with = "crate::text::unique::deserialize")]
    /// The last uses by access key, or by the unique id of a role.
    keys: BTreeMap<Box<str>, LastUse>,
}

/// Returns the name under which a use is noted: the access key, or the unique id of the role.
/// `None` for root, for sessions of users, whose keys are only temporary, and for access keys of
/// the directory.
fn used(session: &Session) -> Option<&str> {
    match session.key_kind {
        KeyKind::User | KeyKind::Service => Some(session.credential.access_key.as_str()),
        KeyKind::Temporary if session.principal.kind == PrincipalKind::Role => {
            session.principal.unique_id.as_deref()?.split(':').next()
        }
        KeyKind::Temporary | KeyKind::Directory | KeyKind::Root => None,
    }
}

/// Returns the later of two uses of a key.
fn later(one: Option<LastUse>, other: Option<LastUse>) -> Option<LastUse> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.hour > one.hour { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The document that all gateways share, as one gateway has read it.
struct Written {
    /// The last uses; none if the document is not there or cannot be understood.
    keys: BTreeMap<Box<str>, LastUse>,
    /// The reason why the document cannot be understood.
    damage: Option<Box<str>>,
    /// True if a newer version has written the document, which is left as it is.
    is_newer: bool,
}

/// Last uses are of so little weight that a damaged document counts as one without any.
fn read(json: &[u8]) -> Written {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let none =
        |damage: String, is_newer| Written { keys: BTreeMap::new(), damage: Some(damage.into()), is_newer };
    match serde_json::from_slice::<Format>(json) {
        Ok(Format { format }) if format > FORMAT => {
            none(format!("it has the format {format}, and {FORMAT} is read"), true)
        }
        _ => match serde_json::from_slice::<UsesDocument>(json) {
            Ok(UsesDocument { format: FORMAT, keys }) => Written { keys, damage: None, is_newer: false },
            Ok(UsesDocument { format, .. }) => none(format!("there is no format {format}"), false),
            Err(error) => none(error.to_string(), false),
        },
    }
}

/// The last uses of the keys and roles of all accounts, as far as they were noted here or written
/// by any gateway.
#[derive(Debug)]
pub struct LastUses<'r> {
    registry: &'r Registry,
    written: BTreeMap<Box<str>, LastUse>,
    /// The reason why what gateways have written cannot be understood, and counts as nothing;
    /// `None` if it can.
    pub damage: Option<Box<str>>,
}

impl LastUses<'_> {
    /// Returns the last use of a key; `None` if there was none.
    pub fn of_key(&self, key: &AccessKeyId) -> Option<LastUse> {
        self.of(key.as_str())
    }

    /// Returns the last use of a role's session.
    pub fn of_role(&self, role: &UniqueId) -> Option<LastUse> {
        self.of(role.as_str())
    }

    fn of(&self, used: &str) -> Option<LastUse> {
        later(self.registry.uses.lock().get(used).cloned(), self.written.get(used).cloned())
    }
}

impl Registry {
    /// Notes the use of a lasting key of a user, or of a role by one of its sessions. Only the
    /// first use in an hour and service costs more than a comparison.
    pub fn note_use(&self, session: &Session, now: Timestamp, service: UsedService, region: &str) {
        let Some(used) = used(session) else { return };
        let hour = now.as_second().div_euclid(HOUR_SECONDS);
        if !session.last_use.is_new(hour, service as u8) {
            return;
        }
        self.notice_use(session, hour);
        let Ok(hour) = Timestamp::from_second(hour * HOUR_SECONDS) else { return };
        self.uses.lock().insert(used.into(), LastUse { hour, service, region: region.into() });
    }

    #[cfg(test)]
    pub(super) fn uses_for_test(&self, key: &crate::credential::Credential, hour: Timestamp) {
        let last = LastUse { hour, service: UsedService::Sts, region: "nowhere".into() };
        self.uses.lock().insert(key.access_key.as_str().into(), last);
    }

    async fn written_uses(&self) -> Result<(Written, Option<Tag>), StoreError> {
        match self.documents.read(&DocumentName::of_uses()).await? {
            Some((json, tag)) => Ok((read(&json), Some(tag))),
            None => Ok((Written { keys: BTreeMap::new(), damage: None, is_newer: false }, None)),
        }
    }

    /// Reads the last uses of all keys and roles.
    pub async fn last_uses(&self) -> Result<LastUses<'_>, IamError> {
        let (written, _) = self.written_uses().await.map_err(|error| unavailable().caused_by(error))?;
        Ok(LastUses { registry: self, written: written.keys, damage: written.damage })
    }

    /// Writes the noted uses to the document that all gateways share, and replaces a damaged one.
    /// If that fails, they are kept for the next time.
    pub async fn write_uses(&self) -> Result<(), StoreError> {
        let uses = std::mem::take(&mut *self.uses.lock());
        if uses.is_empty() {
            return Ok(());
        }
        match self.merge_uses(&uses).await {
            // Nothing is written here, whatever is noted.
            Err(StoreError::ReadOnly) => Ok(()),
            Err(error) => {
                self.uses.put_back(uses);
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    async fn merge_uses(&self, uses: &HashMap<Box<str>, LastUse>) -> Result<(), StoreError> {
        for _ in 0..ATTEMPTS {
            let (Written { keys, damage, is_newer }, tag) = self.written_uses().await?;
            if let Some(damage) = damage.filter(|_| is_newer) {
                let why = format!("the document of last uses is left as it is: {damage}");
                return Err(StoreError::Unavailable(why.into()));
            }
            let mut document = UsesDocument { format: FORMAT, keys };
            for (key, one) in uses {
                let there = document.keys.remove(key);
                document.keys.extend(later(there, Some(one.clone())).map(|last| (key.clone(), last)));
            }
            let state = self.last_known();
            // The keys of an account that cannot be read are not among those that are known.
            if state.troubles().is_empty() {
                let is_role = |id: &str| UniqueId::new(id).is_ok_and(|id| state.by_unique_id(&id).is_some());
                document.keys.retain(|key, _| state.by_access_key(key).is_some() || is_role(key));
            }
            let json = serde_json::to_vec(&document).map_err(|e| StoreError::Unavailable(Box::new(e)))?;
            match self
                .documents
                .replace(&DocumentName::of_uses(), tag.as_ref(), Some(Bytes::from(json)))
                .await
            {
                Ok(_) => return Ok(()),
                Err(StoreError::Changed) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Changed)
    }
}
