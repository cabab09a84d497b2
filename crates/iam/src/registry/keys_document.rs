//! `keys.json`: the ids of the master keys that secrets and tokens are sealed with. By it a gateway
//! that has other master keys is kept from starting.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::documents::{DocumentName, Documents, StoreError, Tag};
use crate::sealing::{KeyId, MasterKeys};

/// The version of the format.
const FORMAT: u32 = 1;
/// The number of attempts, if other gateways are faster.
const ATTEMPTS: usize = 10;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeysDocument {
    format: u32,
    /// The master keys in use, in the order in which gateways brought them.
    master_keys: Vec<KeyId>,
}

/// The reason why a registry is not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The store cannot be reached.
    Store(StoreError),
    /// The document about the master keys cannot be read.
    Keys(String),
    /// This gateway has no master key, but the store uses the keys with these ids.
    NoMasterKey(Vec<KeyId>),
    /// None of this gateway's master keys is in use in the store.
    OtherMasterKeys {
        /// The keys in use.
        used: Vec<KeyId>,
        /// The keys of this gateway.
        given: Vec<KeyId>,
    },
}

fn list(ids: &[KeyId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GIVE: &str = "by --master-key-file, SLIPWAY_MASTER_KEY or --master-key-command";
        match self {
            Self::Store(cause) => write!(f, "identities cannot be read: {cause}"),
            Self::Keys(why) => write!(f, "the document {} cannot be read: {why}", DocumentName::of_keys()),
            Self::NoMasterKey(used) => write!(
                f,
                "the secrets of users are sealed with a master key ({}), and none was given: give it {GIVE}",
                list(used)
            ),
            Self::OtherMasterKeys { used, given } => write!(
                f,
                "the secrets of users are sealed with another master key ({}) than the one that was given ({}): give \
                 the former {GIVE}, alone or on a line of its own before or after the latter",
                list(used),
                list(given)
            ),
        }
    }
}

impl std::error::Error for OpenError {
    // The sentence has the cause, so that the next error of the chain is that of the cause.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(cause) => cause.source(),
            Self::Keys(_) | Self::NoMasterKey(_) | Self::OtherMasterKeys { .. } => None,
        }
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn read(json: &[u8]) -> Result<KeysDocument, OpenError> {
    let document: KeysDocument =
        serde_json::from_slice(json).map_err(|error| OpenError::Keys(error.to_string()))?;
    if document.format == FORMAT {
        return Ok(document);
    }
    let found = document.format;
    Err(OpenError::Keys(format!("it has the format {found}, and this version of slipway reads {FORMAT}")))
}

/// Fails if there are master keys in use, and none of them was given.
fn check(used: &[KeyId], given: &[KeyId]) -> Result<(), OpenError> {
    if used.is_empty() || given.iter().any(|id| used.contains(id)) {
        return Ok(());
    }
    let (used, given) = (used.to_vec(), given.to_vec());
    Err(if given.is_empty() {
        OpenError::NoMasterKey(used)
    } else {
        OpenError::OtherMasterKeys { used, given }
    })
}

/// Returns the ids of the master keys in use. Fails if none of them is among `keys`.
pub async fn used(documents: &dyn Documents, keys: &MasterKeys) -> Result<Vec<KeyId>, OpenError> {
    let document = documents.read(&DocumentName::of_keys()).await?;
    let used =
        document.map(|(json, _)| read(&json)).transpose()?.map_or_else(Vec::new, |read| read.master_keys);
    check(&used, &keys.ids().collect::<Vec<_>>())?;
    Ok(used)
}

/// Checks that one of the master keys in use is among `keys`, and adds the key that this gateway
/// seals with to the document. If there is no document yet, the first gateway with a master key
/// makes it.
pub async fn agree(documents: &dyn Documents, keys: Option<&MasterKeys>) -> Result<(), OpenError> {
    let name = DocumentName::of_keys();
    let given: Vec<KeyId> = keys.into_iter().flat_map(MasterKeys::ids).collect();
    for _ in 0..ATTEMPTS {
        let (used, tag) = match documents.read(&name).await? {
            Some((json, tag)) => (read(&json)?.master_keys, Some(tag)),
            None => (Vec::new(), None),
        };
        check(&used, &given)?;
        // The first one seals. The others are there to open what others have sealed.
        let Some(first) = given.first().filter(|id| !used.contains(id)) else { return Ok(()) };
        let document = KeysDocument { format: FORMAT, master_keys: [used, vec![*first]].concat() };
        match write(documents, tag.as_ref(), &document).await {
            // With the second, nothing is sealed here either.
            Ok(()) | Err(OpenError::Store(StoreError::ReadOnly)) => return Ok(()),
            Err(OpenError::Store(StoreError::Changed)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(OpenError::Store(StoreError::Changed))
}

async fn write(
    documents: &dyn Documents,
    expected: Option<&Tag>,
    document: &KeysDocument,
) -> Result<(), OpenError> {
    let json = serde_json::to_vec(document).map_err(|error| OpenError::Keys(error.to_string()))?;
    documents.replace(&DocumentName::of_keys(), expected, Some(Bytes::from(json))).await?;
    Ok(())
}

/// Replaces the list of the keys in use by `keys`.
pub async fn keep(documents: &dyn Documents, keys: &BTreeSet<KeyId>) -> Result<(), OpenError> {
    for _ in 0..ATTEMPTS {
        let read = documents.read(&DocumentName::of_keys()).await?;
        let there = read.as_ref().map(|(json, _)| self::read(json)).transpose()?;
        let there = there.map_or_else(Vec::new, |document| document.master_keys);
        let mut master_keys: Vec<_> = there.iter().filter(|id| keys.contains(id)).copied().collect();
        master_keys.extend(keys.iter().filter(|id| !there.contains(id)));
        if master_keys == there {
            return Ok(());
        }
        let document = KeysDocument { format: FORMAT, master_keys };
        match write(documents, read.as_ref().map(|(_, tag)| tag), &document).await {
            Err(OpenError::Store(StoreError::Changed)) => {}
            written => return written,
        }
    }
    Err(OpenError::Store(StoreError::Changed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryDocuments;

    const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

    fn keys(lines: &[&str]) -> MasterKeys {
        MasterKeys::read(&lines.join("\n")).unwrap()
    }

    async fn kept(documents: &MemoryDocuments) -> String {
        let (json, _) = documents.read(&DocumentName::of_keys()).await.unwrap().unwrap();
        String::from_utf8(json.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn each_state_of_the_master_keys() {
        let documents = MemoryDocuments::default();
        let (first, second) = (keys(&[FIRST]), keys(&[SECOND]));
        let [one, two] = [&first, &second].map(|keys| keys.ids().next().unwrap().to_string());
        // None was ever given.
        agree(&documents, None).await.unwrap();
        assert_eq!(documents.read(&DocumentName::of_keys()).await.unwrap(), None);
        agree(&documents, Some(&first)).await.unwrap();
        assert_eq!(kept(&documents).await, format!("{{\"format\":1,\"master_keys\":[\"{one}\"]}}"));
        agree(&documents, Some(&first)).await.unwrap();
        let sentence = |result: Result<(), OpenError>| result.unwrap_err().to_string();
        let none = sentence(agree(&documents, None).await);
        assert!(
            none.contains(&format!("({one}), and none was given: give it by --master-key-file")),
            "{none}"
        );
        let other = sentence(agree(&documents, Some(&second)).await);
        assert!(other.contains(&format!("({one}) than the one that was given ({two})")), "{other}");
        // Halfway through a rotation.
        agree(&documents, Some(&keys(&[SECOND, FIRST]))).await.unwrap();
        assert!(kept(&documents).await.contains(&format!("[\"{one}\",\"{two}\"]")));
        agree(&documents, Some(&second)).await.unwrap();
        agree(&documents, Some(&first)).await.unwrap();
    }

    #[tokio::test]
    async fn a_list_that_cannot_be_read() {
        for (json, why) in [
            ("", "EOF"),
            (r#"{"format":2,"master_keys":[]}"#, "the format 2"),
            (r#"{"format":1,"master_keys":["x"]}"#, "8 hexadecimal digits"),
            (r#"{"format":1,"master_keys":[],"more":1}"#, "unknown field"),
        ] {
            let documents = MemoryDocuments::default();
            documents.replace(&DocumentName::of_keys(), None, Some(Bytes::from(json))).await.unwrap();
            let error = agree(&documents, None).await.unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
