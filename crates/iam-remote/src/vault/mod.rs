//! Documents of identities in a KV engine (version 2) of Vault or OpenBao: each is a secret, whose
//! version is compared at each write (docs/decisions/0066-identities-in-vault-and-buckets.md).

mod login;
mod wire;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use iam::{DocumentName, Documents, Mark, StoreError, Tag};
use s3_client::Trust;
use serde_json::json;

use crate::exchange::{Answer, Channel, mark_of, unavailable};
use crate::limits::{
    STORE_ANSWER_BYTES_MAX, STORE_CONNECTIONS_MAX, VAULT_DOCUMENT_BYTES_MAX, VAULT_DOCUMENTS_MAX,
    VAULT_SECRET_BYTES_MAX,
};
use crate::place::VaultPlace;
use crate::secrets::SecretsOf;

pub use login::VaultLogin;
use login::{Call, LoggedInChannel, errors, expect, refused};
use wire::{Content, Data, Listing, Metadata, Options, Secret, Version, Write};

/// A store of documents in a KV engine.
pub struct Vault {
    place: VaultPlace,
    channel: LoggedInChannel,
    /// True if the server cannot list metadata, as OpenBao can, so that each secret has to be
    /// requested.
    lists_names_only: AtomicBool,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Returns the tag of a version. The tag includes the time, since version numbers begin again once
/// a secret was removed with all of its metadata.
fn tag(number: u64, version: &Version) -> Tag {
    Tag::new(&format!("{number} {}", version.created_time))
}

/// Returns the version number in a tag. For a tag that is not one of ours, it is a number that no
/// secret has. It is never 0, which Vault understands as "only if there is no secret".
fn number(tag: &Tag) -> u64 {
    const NONE: u64 = 0xffff_ffff;
    let number = tag.as_str().split_once(' ').and_then(|(number, _)| number.parse().ok());
    number.filter(|number| *number > 0).unwrap_or(NONE)
}

/// The state of a secret before it is written to.
enum There {
    /// The secret has no document; the number is that of its present version, which a write is
    /// compared with.
    Nothing(u64),
    Document,
}

impl Vault {
    /// Makes the store from its place and the file of trusted certificates, and sends no request
    /// yet.
    pub fn new(place: VaultPlace, trust: &Trust, secrets: SecretsOf<VaultLogin>) -> Result<Self, String> {
        let channel = Channel::new(&place.server, trust)?;
        let channel = LoggedInChannel::new(channel, place.namespace.as_deref(), secrets)?;
        Ok(Self { place, channel, lists_names_only: AtomicBool::new(false) })
    }

    /// Checks that the engine can be used: its answer about the folder must show that it is a KV
    /// engine of version 2.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.all().await.map(drop)
    }

    fn path(&self, kind: &str, name: &str) -> String {
        let VaultPlace { mount, path, .. } = &self.place;
        format!("{mount}/{kind}/{path}/{name}")
    }

    async fn call(&self, call: &Call<'_>) -> Result<Answer, StoreError> {
        self.channel.call(call, STORE_ANSWER_BYTES_MAX).await
    }

    /// Requests the names in the folder: with the kind `metadata` only these, with
    /// `detailed-metadata` also the metadata of each.
    async fn listing(&self, kind: &str) -> Result<Answer, StoreError> {
        let call = Call { query: &[("list", "true")], ..Call::get(self.path(kind, "")) };
        self.call(&call).await
    }

    /// Returns the names and tags of all documents.
    async fn all(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        if !self.lists_names_only.load(Relaxed) {
            let answer = self.listing("detailed-metadata").await?;
            // A folder that is empty is answered like one that is not there, without an error.
            match answer.status {
                StatusCode::OK => {
                    let listing: Data<Listing> = expect(&answer)?;
                    if let Some(info) = listing.data.key_info {
                        return Ok(documents(info));
                    }
                }
                StatusCode::NOT_FOUND if errors(&answer).is_empty() => return Ok(Vec::new()),
                StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED => {}
                _ => return Err(refused(&answer)),
            }
        }
        let answer = self.listing("metadata").await?;
        let names = match answer.status {
            StatusCode::NOT_FOUND if errors(&answer).is_empty() => Vec::new(),
            _ => expect::<Data<Listing>>(&answer)?.data.keys,
        };
        self.lists_names_only.store(true, Relaxed);
        if names.len() > VAULT_DOCUMENTS_MAX {
            return Err(unavailable(format!(
                "there are {} secrets in the folder, and each is asked for: at most {VAULT_DOCUMENTS_MAX} may be there",
                names.len()
            )));
        }
        let asked = names.into_iter().map(|name| async move {
            let answer = self.call(&Call::get(self.path("metadata", &name))).await?;
            if answer.status == StatusCode::NOT_FOUND {
                // It was removed meanwhile, or is a folder.
                return Ok((name, Metadata::default()));
            }
            expect::<Data<Metadata>>(&answer).map(|metadata| (name, metadata.data))
        });
        let all: Vec<_> = stream::iter(asked).buffered(STORE_CONNECTIONS_MAX).try_collect().await?;
        Ok(documents(all))
    }

    /// Reads the secret of a document; `None` if it does not exist.
    async fn secret(&self, name: &DocumentName) -> Result<Option<Secret>, StoreError> {
        let call = Call::get(self.path("data", name.as_str()));
        let answer = self.channel.call(&call, VAULT_SECRET_BYTES_MAX * 2).await?;
        match answer.status {
            StatusCode::OK => expect::<Data<Secret>>(&answer).map(|secret| Some(secret.data)),
            // With what is known of it, if it was deleted.
            StatusCode::NOT_FOUND if errors(&answer).is_empty() => {
                Ok(serde_json::from_slice::<Data<Secret>>(&answer.body).ok().map(|secret| secret.data))
            }
            _ => Err(refused(&answer)),
        }
    }

    async fn there(&self, name: &DocumentName) -> Result<There, StoreError> {
        let Some(secret) = self.secret(name).await? else { return Ok(There::Nothing(0)) };
        let is_there = secret.metadata.is_there() && bytes(secret.data)?.is_some();
        Ok(if is_there { There::Document } else { There::Nothing(secret.metadata.number) })
    }

    /// Writes a version, if the present version has the number `cas`.
    async fn write(&self, name: &DocumentName, cas: u64, content: &Content) -> Result<Version, StoreError> {
        let body = serde_json::to_vec(&Write { options: Options { cas }, data: content });
        let body = body.map_err(|error| unavailable(error.to_string()))?;
        if body.len() > VAULT_SECRET_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        let answer = self.call(&Call::post(self.path("data", name.as_str()), body)).await?;
        let says = |text: &str| errors(&answer).iter().any(|error| error.contains(text));
        if answer.status == StatusCode::BAD_REQUEST && says("check-and-set parameter did not match") {
            return Err(StoreError::Changed);
        }
        if says("value being too large") || answer.status == StatusCode::PAYLOAD_TOO_LARGE {
            return Err(StoreError::TooLarge);
        }
        expect::<Data<Version>>(&answer).map(|written| written.data)
    }

    /// Removes a document: writes a version without a document, so that other writers, which expect
    /// the old number, fail. Then it deletes that version, which is certain to be the one without a
    /// document.
    async fn remove(&self, name: &DocumentName, cas: u64) -> Result<(), StoreError> {
        let removed = self.write(name, cas, &Content::default()).await?;
        let body = json!({ "versions": [removed.number] }).to_string();
        let answer = self.call(&Call::post(self.path("delete", name.as_str()), body)).await;
        // A version without a document is none either, but is listed.
        if let Err(error) = answer {
            tracing::debug!(%error, %name, "a secret without a document was not deleted");
        }
        Ok(())
    }
}

fn bytes(content: Option<Content>) -> Result<Option<Bytes>, StoreError> {
    let bytes = content.map(Content::bytes).transpose();
    Ok(bytes.map_err(|error| unavailable(format!("a secret is no document: {error}")))?.flatten())
}

/// Returns the names and tags of the secrets that are documents and were not deleted.
fn documents(all: impl IntoIterator<Item = (String, Metadata)>) -> Vec<(DocumentName, Tag)> {
    let there = all.into_iter().filter_map(|(name, metadata)| {
        let tag = tag(metadata.current_version, metadata.present()?);
        Some((DocumentName::new(&name).ok()?, tag))
    });
    let mut there: Vec<_> = there.collect();
    there.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    there
}

#[async_trait]
impl Documents for Vault {
    async fn look(&self) -> Result<Mark, StoreError> {
        self.all().await.map(|all| mark_of(&all))
    }

    async fn list(&self) -> Result<Vec<(DocumentName, Tag)>, StoreError> {
        self.all().await
    }

    async fn read(&self, name: &DocumentName) -> Result<Option<(Bytes, Tag)>, StoreError> {
        let Some(secret) = self.secret(name).await? else { return Ok(None) };
        if !secret.metadata.is_there() {
            return Ok(None);
        }
        let tag = tag(secret.metadata.number, &secret.metadata);
        Ok(bytes(secret.data)?.map(|bytes| (bytes, tag)))
    }

    async fn replace(
        &self,
        name: &DocumentName,
        expected: Option<&Tag>,
        with: Option<Bytes>,
    ) -> Result<Option<Tag>, StoreError> {
        if with.as_ref().is_some_and(|bytes| bytes.len() > VAULT_DOCUMENT_BYTES_MAX) {
            return Err(StoreError::TooLarge);
        }
        let cas = match expected {
            Some(tag) => number(tag),
            None => match self.there(name).await? {
                There::Nothing(cas) => cas,
                There::Document => return Err(StoreError::Changed),
            },
        };
        let Some(document) = with else {
            // What is not there cannot be removed.
            if expected.is_some() {
                self.remove(name, cas).await?;
            }
            return Ok(None);
        };
        let written = self.write(name, cas, &Content::of(&document)).await?;
        Ok(Some(tag(written.number, &written)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_never_means_that_there_is_nothing() {
        let version = Version { created_time: "2026-11-27T09:00:00Z".to_owned(), ..Version::default() };
        assert_eq!(number(&tag(7, &version)), 7);
        for strange in ["", "0", "0000000000000000", "0 x", "7", "x y", "-1 x"] {
            assert_eq!(number(&Tag::new(strange)), u64::from(u32::MAX), "{strange}");
        }
    }
}
