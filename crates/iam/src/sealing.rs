//! Master keys, and the sealing of secrets that are kept in documents
//! (docs/decisions/0065-master-keys.md).

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::account::AccountId;
use crate::credential::{AccessKeyId, SecretKey};
use crate::text::as_text;
use crate::unique_id::{Fill, NoRandomNumbers, system_random};

/// The length of a master key in bytes, and of the keys that are derived from it.
const KEY_BYTES: usize = 32;
/// The length in bytes of the authentication tag at the end of sealed bytes.
pub(crate) const TAG_BYTES: usize = 16;
/// The largest number of master keys at once. Two are enough to replace one by another.
const MASTER_KEYS_MAX: usize = 16;
/// The longest text of master keys that is read, in bytes: lines of 44 characters, and comments.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The texts that go into ids, derived keys and associated data, a different one for each use. They
/// may never change: what was sealed before could not be opened any more.
const ID_TEXT: &[u8] = b"slipway master key id v1";
const SECRET_TEXT: &[u8] = b"slipway iam secret v1";
/// The version of the format of a sealed secret.
const VERSION: &str = "v1";

/// The id of a master key: the beginning of a hash of the key, which does not reveal the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId([u8; 4]);

impl KeyId {
    /// Reads 8 hexadecimal digits in lower case.
    pub fn new(text: &str) -> Result<Self, InvalidSealed> {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 8 || !text.bytes().all(is_digit) {
            return Err(InvalidSealed);
        }
        let number = u32::from_str_radix(text, 16).map_err(|_| InvalidSealed)?;
        Ok(Self(number.to_be_bytes()))
    }

    pub(crate) const fn from_bytes(bytes: [u8; 4]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 4] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// The error for a text that is not a sealed secret, or not the id of a master key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidSealed;

impl fmt::Display for InvalidSealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a sealed secret is v1, 8 hexadecimal digits of the master key's id, and base64, with dots",
        )
    }
}

impl std::error::Error for InvalidSealed {}

/// A sealed secret key: `v1.KEYID.BASE64`, encrypted for one access key of one owner.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    key: KeyId,
    /// The nonce, the encrypted bytes and the authentication tag.
    bytes: Box<[u8]>,
}

impl Sealed {
    /// Reads the text. Only the form that [`fmt::Display`] writes is accepted.
    pub fn new(text: &str) -> Result<Self, InvalidSealed> {
        let mut parts = text.split('.');
        let (Some(VERSION), Some(key), Some(bytes), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidSealed);
        };
        // 8 to 128 bytes of secret, nonce and tag.
        let bytes = Some(bytes).filter(|bytes| bytes.len() <= 256).ok_or(InvalidSealed)?;
        let bytes = STANDARD.decode(bytes).map_err(|_| InvalidSealed)?;
        if bytes.len() <= NONCE_LEN + TAG_BYTES {
            return Err(InvalidSealed);
        }
        Ok(Self { key: KeyId::new(key)?, bytes: bytes.into() })
    }

    /// Returns the id of the master key that the secret was sealed with.
    pub const fn key_id(&self) -> KeyId {
        self.key
    }
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}.{}.{}", self.key, STANDARD.encode(&self.bytes))
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({VERSION}.{}.…)", self.key)
    }
}

as_text!(KeyId, Sealed);

/// The owner for whom a secret is sealed: a copy of it in the place of another secret cannot be
/// opened.
#[derive(Debug, Clone, Copy)]
pub struct SealedFor<'a> {
    /// The account.
    pub account: &'a AccountId,
    /// The unique id of the user, or `root`.
    pub owner: &'a str,
    /// The access key that the secret belongs to.
    pub access_key: &'a AccessKeyId,
}

impl SealedFor<'_> {
    /// Returns the associated data. The texts are separated by zero bytes, which none of them can
    /// contain, so that two owners never have the same.
    fn associated(&self) -> Aad<Vec<u8>> {
        let parts = [
            SECRET_TEXT,
            self.account.as_str().as_bytes(),
            self.owner.as_bytes(),
            self.access_key.as_str().as_bytes(),
        ];
        Aad::from(parts.join(&0))
    }
}

/// The reason why a text of master keys cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MasterKeyError {
    /// No line has a key.
    None,
    /// The line with this number is not the base64 of 32 bytes.
    Line(usize),
    /// All bytes of the key in the line with this number are equal, so that it is not random.
    Weak(usize),
    /// The key in the line with this number, or its id, is that of an earlier line.
    Twice(usize),
    /// There are too many keys.
    TooMany,
    /// The text is longer than 64 KiB, which is far more than the keys need.
    TooLong,
}

impl fmt::Display for MasterKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => {
                f.write_str("there is no master key in it: each line has one, as base64 of 32 bytes")
            }
            // The line is not shown: it may be a key with a letter too much.
            Self::Line(line) => write!(f, "line {line} is not a master key, which is base64 of 32 bytes"),
            Self::Weak(line) => write!(f, "line {line} is not a random key: all of its bytes are equal"),
            Self::Twice(line) => write!(f, "line {line} repeats a master key of an earlier line"),
            Self::TooMany => write!(f, "there are more than {MASTER_KEYS_MAX} master keys"),
            Self::TooLong => write!(f, "the text with the master keys is longer than {TEXT_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for MasterKeyError {}

/// The reason why a sealed secret cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedShut {
    /// The secret was sealed with a master key that this server does not have.
    OtherKey(KeyId),
    /// The secret was changed, or was sealed for another access key.
    Broken,
}

impl fmt::Display for SealedShut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherKey(id) => {
                write!(f, "the secret was sealed with the master key {id}, which is not here")
            }
            Self::Broken => f.write_str("the secret was changed, or is that of another access key"),
        }
    }
}

impl std::error::Error for SealedShut {}

struct MasterKey {
    id: KeyId,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    secrets: LessSafeKey,
}

/// The master keys: the first one seals, and each opens what it has sealed. They are never printed.
pub struct MasterKeys(Vec<MasterKey>);

impl fmt::Debug for MasterKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKeys")?;
        f.debug_list().entries(self.0.iter().map(|key| format_args!("{}", key.id).to_string())).finish()
    }
}

impl MasterKeys {
    /// Reads a text with one key on each line. Empty lines and lines that begin with `#` are
    /// skipped.
    pub fn read(text: &str) -> Result<Self, MasterKeyError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(MasterKeyError::TooLong);
        }
        let mut keys: Vec<MasterKey> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (number, line) = (index + 1, line.trim());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = MasterKey::read(line, number)?;
            if keys.iter().any(|other| other.id == key.id) {
                return Err(MasterKeyError::Twice(number));
            }
            keys.push(key);
        }
        match keys.len() {
            0 => Err(MasterKeyError::None),
            1..=MASTER_KEYS_MAX => Ok(Self(keys)),
            _ => Err(MasterKeyError::TooMany),
        }
    }

    /// Makes a new random key, as a line of the text that [`MasterKeys::read`] reads.
    pub fn new_line() -> Result<Zeroizing<String>, NoRandomNumbers> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        system_random(bytes.as_mut())?;
        Ok(Zeroizing::new(STANDARD.encode(bytes.as_ref())))
    }

    /// Returns the ids of the keys, beginning with that of the key that seals.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(|key| key.id)
    }

    /// True if the secret was sealed with the key that seals now.
    pub fn is_newest(&self, sealed: &Sealed) -> bool {
        self.ids().next() == Some(sealed.key)
    }

    /// Seals a secret.
    pub fn seal(
        &self,
        secret: &SecretKey,
        of: SealedFor<'_>,
        fill: &Fill<'_>,
    ) -> Result<Sealed, NoRandomNumbers> {
        // There is always one: `read` has seen to that.
        let key = self.0.first().ok_or(NoRandomNumbers)?;
        let bytes = seal_with(&key.secrets, of.associated(), secret.expose().as_bytes(), &[], fill)?;
        Ok(Sealed { key: key.id, bytes: bytes.into() })
    }

    /// Opens a sealed secret.
    pub fn open(&self, sealed: &Sealed, of: SealedFor<'_>) -> Result<SecretKey, SealedShut> {
        let key = self.0.iter().find(|key| key.id == sealed.key).ok_or(SealedShut::OtherKey(sealed.key))?;
        let opened = open_with(&key.secrets, of.associated(), &sealed.bytes).ok_or(SealedShut::Broken)?;
        let text = std::str::from_utf8(&opened).map_err(|_| SealedShut::Broken)?;
        SecretKey::new(text).map_err(|_| SealedShut::Broken)
    }

    /// Derives, from each master key, a key for another use, which `text` names. Returns them with
    /// the ids of the master keys.
    pub(crate) fn derived<'a>(
        &'a self,
        text: &'a [u8],
    ) -> impl Iterator<Item = (KeyId, Zeroizing<[u8; KEY_BYTES]>)> + 'a {
        self.0.iter().filter_map(move |key| Some((key.id, derive(&key.bytes, text)?)))
    }
}

impl MasterKey {
    fn read(line: &str, number: usize) -> Result<Self, MasterKeyError> {
        let wrong = MasterKeyError::Line(number);
        let decoded = Zeroizing::new(STANDARD.decode(line).map_err(|_| wrong)?);
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        if decoded.len() != KEY_BYTES {
            return Err(wrong);
        }
        bytes.copy_from_slice(&decoded);
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return Err(MasterKeyError::Weak(number));
        }
        let hashed = Zeroizing::new([ID_TEXT, bytes.as_ref()].concat());
        let hash = digest(&SHA256, &hashed);
        let [a, b, c, d, ..] = *hash.as_ref() else { return Err(wrong) };
        let secrets = derive(&bytes, SECRET_TEXT).and_then(|key| aead(&key)).ok_or(wrong)?;
        Ok(Self { id: KeyId([a, b, c, d]), bytes, secrets })
    }
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

/// Derives a key. It is never `None`, since the lengths are fixed.
fn derive(master: &[u8; KEY_BYTES], text: &[u8]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    let material = Salt::new(HKDF_SHA256, &[]).extract(master);
    material.expand(&[text], Length).ok()?.fill(key.as_mut()).ok()?;
    Some(key)
}

/// Makes a key for AES-256-GCM-SIV. If a nonce happens to be drawn twice, this cipher reveals only
/// that two texts are equal.
pub(crate) fn aead(key: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key).ok()?))
}

/// Encrypts a text. Returns the bytes that stay readable at the front, the nonce, the encrypted
/// bytes and the authentication tag.
pub(crate) fn seal_with(
    key: &LessSafeKey,
    associated: Aad<Vec<u8>>,
    text: &[u8],
    front: &[u8],
    fill: &Fill<'_>,
) -> Result<Vec<u8>, NoRandomNumbers> {
    let mut nonce = [0; NONCE_LEN];
    fill(&mut nonce)?;
    let mut encrypted = Vec::with_capacity(text.len() + TAG_BYTES);
    encrypted.extend_from_slice(text);
    // It fails only for texts of gigabytes.
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), associated, &mut encrypted)
        .map_err(|_| NoRandomNumbers)?;
    Ok([front, &nonce, &encrypted].concat())
}

/// Decrypts what consists of a nonce, encrypted bytes and an authentication tag.
pub(crate) fn open_with(
    key: &LessSafeKey,
    associated: Aad<Vec<u8>>,
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, encrypted) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let mut text = Zeroizing::new(encrypted.to_vec());
    let opened = key.open_in_place(Nonce::assume_unique_for_key(*nonce), associated, &mut text).ok()?.len();
    text.truncate(opened);
    Some(text)
}

#[cfg(test)]
mod tests;
