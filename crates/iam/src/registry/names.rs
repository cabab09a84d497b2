//! `names.json`: the account of each account name, so that two gateways do not give one name to two
//! accounts in the same moment.
//!
//! Each account has a document of its own, and compare-and-swap concerns one document only. So a
//! gateway that makes or renames an account first claims the name here, where other gateways see
//! the claim, and then writes the account. A claim counts while its account has the name, and
//! otherwise for a minute after it was made, since a gateway may have stopped in between.

use std::collections::BTreeMap;

use bytes::Bytes;
use s3_types::Timestamp;
use serde::{Deserialize, Serialize};

use super::changes::{check_name_is_free, name_is_taken, overtaken, refused_by_store};
use super::present::{Registry, unavailable};
use crate::account::AccountId;
use crate::documents::{DocumentName, StoreError, Tag};
use crate::model::IamError;
use crate::state::Snapshot;
use crate::text::{time, unique};

/// The version of the format.
const FORMAT: u32 = 1;
/// The number of attempts, if other gateways are faster.
const ATTEMPTS: usize = 10;
/// The number of seconds that a gateway has to write the account whose name it has claimed: many
/// times as long as a store takes.
const CLAIM_SECONDS: i64 = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    account: AccountId,
    #[serde(with = "time")]
    since: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamesDocument {
    format: u32,
    /// The claims by the name in lower case, since names are unique without case.
    #[serde(deserialize_with = "unique::deserialize")]
    names: BTreeMap<Box<str>, Claim>,
}

impl Claim {
    fn counts(&self, name: &str, state: &Snapshot, now: Timestamp) -> bool {
        let has_it = state.account(&self.account).is_some_and(|there| key_of(&there.document().name) == name);
        // Of an account that cannot be read it is not known which name it has.
        let is_closed = state.closed().any(|closed| closed.account == self.account);
        has_it || is_closed || (now.as_second() - self.since.as_second()).abs() < CLAIM_SECONDS
    }
}

fn key_of(name: &str) -> String {
    name.to_ascii_lowercase()
}

fn unread(why: String) -> IamError {
    unavailable().caused_by(StoreError::Unavailable(why.into()))
}

impl Registry {
    async fn names(&self) -> Result<(NamesDocument, Option<Tag>), IamError> {
        let name = DocumentName::of_names();
        let Some((json, tag)) = self.documents.read(&name).await.map_err(refused_by_store)? else {
            return Ok((NamesDocument { format: FORMAT, names: BTreeMap::new() }, None));
        };
        let read: NamesDocument = serde_json::from_slice(&json)
            .map_err(|why| unread(format!("the document {name} cannot be read: {why}")))?;
        if read.format != FORMAT {
            return Err(unread(format!("the document {name} has the format {}", read.format)));
        }
        Ok((read, Some(tag)))
    }

    /// Writes the document. Returns false if another gateway was faster.
    async fn write_names(&self, document: &NamesDocument, tag: Option<&Tag>) -> Result<bool, IamError> {
        let json = serde_json::to_vec(document).map_err(|why| unread(why.to_string()))?;
        match self.documents.replace(&DocumentName::of_names(), tag, Some(Bytes::from(json))).await {
            Ok(_) => Ok(true),
            Err(StoreError::Changed) => Ok(false),
            Err(error) => Err(refused_by_store(error)),
        }
    }

    /// Claims a name for an account. Fails if another account has the name, or has claimed it.
    pub(super) async fn claim_name(&self, name: &str, account: &AccountId) -> Result<(), IamError> {
        let (key, now) = (key_of(name), self.clock.now());
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        for _ in 0..ATTEMPTS {
            let (mut document, tag) = self.names().await?;
            // After the claims, so that what a claim was made for is seen.
            let state = self.look().await?;
            check_name_is_free(&state, name, Some(account))?;
            let other = document.names.get(&*key).filter(|claim| claim.account != *account);
            if other.is_some_and(|claim| claim.counts(&key, &state, now)) {
                return Err(name_is_taken(name));
            }
            document.names.retain(|name, claim| claim.counts(name, &state, now));
            document.names.insert(key.clone().into(), Claim { account: account.clone(), since: now });
            if self.write_names(&document, tag.as_ref()).await? {
                return Ok(());
            }
        }
        Err(overtaken())
    }

    /// True if an account still has the claim to a name, after the account was written.
    pub(super) async fn has_claim(&self, name: &str, account: &AccountId) -> Result<bool, IamError> {
        let (document, _) = self.names().await?;
        Ok(document.names.get(&*key_of(name)).is_some_and(|claim| claim.account == *account))
    }

    /// Gives up the claim to a name. If that fails, no other account can get the name for a minute.
    pub(super) async fn release_name(&self, name: &str, account: &AccountId) {
        let key = key_of(name);
        for _ in 0..ATTEMPTS {
            let Ok((mut document, tag)) = self.names().await else { return };
            if document.names.get(&*key).is_none_or(|claim| claim.account != *account) {
                return;
            }
            document.names.remove(&*key);
            if !matches!(self.write_names(&document, tag.as_ref()).await, Ok(false)) {
                return;
            }
        }
    }
}
