//! The documents of Vault's API, with the members that matter here.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The errors in an answer; empty if the thing that was asked for does not exist.
#[derive(Debug, Deserialize)]
pub struct Errors {
    #[serde(default)]
    pub errors: Vec<String>,
}

/// An answer with data.
#[derive(Debug, Deserialize)]
pub struct Data<T> {
    pub data: T,
}

/// The answer to a login or a renewal.
#[derive(Deserialize)]
pub struct LoggedIn {
    pub auth: Auth,
}

#[derive(Deserialize)]
pub struct Auth {
    pub client_token: Zeroizing<String>,
    /// The time for which the token is valid, in seconds; 0 for always.
    pub lease_duration: u64,
    pub renewable: bool,
}

/// The facts that Vault tells about the token of the request.
#[derive(Debug, Deserialize)]
pub struct OwnToken {
    /// The time for which the token is still valid, in seconds; 0 for always.
    pub ttl: u64,
    #[serde(default)]
    pub renewable: bool,
}

/// The names in a folder, and from OpenBao on request the metadata of each.
#[derive(Debug, Deserialize)]
pub struct Listing {
    pub keys: Vec<String>,
    #[serde(default)]
    pub key_info: Option<BTreeMap<String, Metadata>>,
}

/// The metadata of the versions of a secret.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    pub current_version: u64,
    pub versions: BTreeMap<String, Version>,
}

/// A version of a secret.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Version {
    #[serde(rename = "version")]
    pub number: u64,
    pub created_time: String,
    /// The time at which the version was deleted; empty if it was not.
    pub deletion_time: String,
    pub destroyed: bool,
}

impl Metadata {
    /// Returns the current version, if it was not deleted.
    pub fn present(&self) -> Option<&Version> {
        self.versions.get(&self.current_version.to_string()).filter(|version| version.is_there())
    }
}

impl Version {
    pub fn is_there(&self) -> bool {
        !self.destroyed && self.deletion_time.is_empty()
    }
}

/// A version of a secret, with its content.
#[derive(Debug, Deserialize)]
pub struct Secret {
    pub data: Option<Content>,
    pub metadata: Version,
}

/// The content of a secret: a document, or nothing after a document was removed.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The document, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The document in base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

impl Content {
    /// Makes the content of a document.
    pub fn of(document: &[u8]) -> Self {
        use base64::Engine as _;
        if let Ok(text) = std::str::from_utf8(document) {
            return Self { document: Some(text.to_owned()), base64: None };
        }
        let text = base64::engine::general_purpose::STANDARD.encode(document);
        Self { document: None, base64: Some(text) }
    }

    /// Returns the document; `None` if it was removed.
    pub fn bytes(self) -> Result<Option<Bytes>, base64::DecodeError> {
        use base64::Engine as _;
        match (self.document, self.base64) {
            (Some(text), _) => Ok(Some(Bytes::from(text))),
            (None, Some(text)) => {
                base64::engine::general_purpose::STANDARD.decode(text).map(|bytes| Some(Bytes::from(bytes)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// A write that succeeds only if the secret has this version; 0 if it must not exist.
#[derive(Serialize)]
pub struct Write<'w> {
    pub options: Options,
    pub data: &'w Content,
}

#[derive(Serialize)]
pub struct Options {
    pub cas: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_content() {
        for document in [&b"{\"a\":\"\xc3\xbc\"}"[..], b"", b"\xff\x00", b"\0"] {
            let json = serde_json::to_string(&Content::of(document)).unwrap();
            let read: Content = serde_json::from_str(&json).unwrap();
            assert_eq!(read.bytes().unwrap().unwrap(), document);
        }
        let removed: Content = serde_json::from_str("{}").unwrap();
        assert_eq!(removed.bytes().unwrap(), None);
        assert_eq!(serde_json::to_string(&Content::default()).unwrap(), "{}");
    }

    #[test]
    fn metadata_says_what_is_there() {
        let read = |text: &str| serde_json::from_str::<Metadata>(text).unwrap();
        let text = r#"{"current_version":2,"versions":{"1":{"created_time":"a","deletion_time":"","destroyed":false},
            "2":{"created_time":"b","deletion_time":"","destroyed":false}},"cas_required":false,"more":null}"#;
        assert_eq!(read(text).present().unwrap().created_time, "b");
        assert!(
            read(&text.replace(r#""b","deletion_time":"""#, r#""b","deletion_time":"c""#))
                .present()
                .is_none()
        );
        assert!(read("{}").present().is_none());
    }
}
