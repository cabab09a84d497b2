//! When keys were last used, to the hour: kept in memory, and written now and then to a document
//! that all gateways share. What a gateway had not written when it crashed is lost.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use s3_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::present::{Registry, unavailable};
use super::uses::{LastUse, UsedService};
use crate::credential::AccessKeyId;
use crate::documents::{DocumentName, StoreError, Tag};
use crate::model::IamError;
use crate::session::{KeyKind, Session};

/// The version of the form.
const FORMAT: u32 = 1;
/// How often other gateways may be faster. What was not written is tried again the next time.
const ATTEMPTS: usize = 3;
const HOUR_SECONDS: i64 = 3_600;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsesDocument {
    format: u32,
    #[serde(deserialize_with = "crate::text::unique::deserialize")]
    keys: BTreeMap<Box<str>, LastUse>,
}

/// The later of two uses of a key.
fn later(one: Option<LastUse>, other: Option<LastUse>) -> Option<LastUse> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.hour > one.hour { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn read(json: &[u8]) -> Result<UsesDocument, StoreError> {
    let document: UsesDocument =
        serde_json::from_slice(json).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    if document.format == FORMAT {
        return Ok(document);
    }
    let why = format!("the last uses of keys have the format {}, and {FORMAT} is read", document.format);
    Err(StoreError::Unavailable(why.into()))
}

impl Registry {
    /// Notes that a key was used, if it is a lasting one of a user. Costs nothing more than a
    /// comparison but for the first time in an hour and service.
    pub fn note_use(&self, session: &Session, now: Timestamp, service: UsedService, region: &str) {
        if !matches!(session.key_kind, KeyKind::User | KeyKind::Service) {
            return;
        }
        let hour = now.as_second().div_euclid(HOUR_SECONDS);
        if !session.last_use.is_new(hour, service as u8) {
            return;
        }
        let Ok(hour) = Timestamp::from_second(hour * HOUR_SECONDS) else { return };
        let key = session.credential.access_key.as_str();
        self.uses.lock().insert(key.into(), LastUse { hour, service, region: region.into() });
    }

    #[cfg(test)]
    pub(super) fn uses_for_test(&self, key: &crate::credential::Credential, hour: Timestamp) {
        let last = LastUse { hour, service: UsedService::Sts, region: "nowhere".into() };
        self.uses.lock().insert(key.access_key.as_str().into(), last);
    }

    async fn written_uses(&self) -> Result<(UsesDocument, Option<Tag>), StoreError> {
        match self.documents.read(&DocumentName::of_uses()).await? {
            Some((json, tag)) => Ok((read(&json)?, Some(tag))),
            None => Ok((UsesDocument { format: FORMAT, keys: BTreeMap::new() }, None)),
        }
    }

    /// Returns when a key was last used, as far as it is known here or was written by any gateway;
    /// `None` for never.
    pub async fn last_use(&self, key: &AccessKeyId) -> Result<Option<LastUse>, IamError> {
        let here = self.uses.lock().get(key.as_str()).cloned();
        let written = self.written_uses().await.map_err(|error| unavailable().caused_by(error))?;
        let mut keys = written.0.keys;
        Ok(later(here, keys.remove(key.as_str())))
    }

    /// Writes the uses that were noted, for all gateways. If it fails they are kept for the next
    /// time.
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
            let (mut document, tag) = self.written_uses().await?;
            for (key, one) in uses {
                let there = document.keys.remove(key);
                document.keys.extend(later(there, Some(one.clone())).map(|last| (key.clone(), last)));
            }
            let state = self.last_known();
            // The keys of an account that cannot be read are not among those that are known.
            if state.troubles().is_empty() {
                document.keys.retain(|key, _| state.by_access_key(key).is_some());
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
