//! The tokens of sessions (docs/decisions/0042-session-tokens.md). They are sealed, so that any
//! gateway with the master key can open them, and no gateway has to keep them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Write};

use aws_lc_rs::aead::{Aad, LessSafeKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use s3_types::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::account::AccountId;
use crate::credential::{AccessKeyId, SecretKey};
use crate::identities::Unidentified;
use crate::model::{Document, PolicyArn, TagKey, TagValue, Tags};
use crate::sealing::{KeyId, MasterKeys, aead, open_with, seal_with};
use crate::session::EndingKey;
use crate::text::unique;
use crate::unique_id::{Fill, NoRandomNumbers, UniqueId};

/// The largest length of a token, in characters. It leaves room for the rest of a request in the 8
/// KiB of headers that S3 allows.
pub const TOKEN_CHARS_MAX: usize = 4_096;
/// The largest size of the claims in bytes, after decompression.
const CLAIMS_BYTES_MAX: usize = 16 << 10;
/// The largest size of the policies and tags of a session in bytes, compressed: 100 % of
/// `PackedPolicySize`.
const PACKED_BYTES_MAX: usize = 2_400;
/// The seconds by which the clock of the gateway that issued a token may be ahead.
const SECONDS_AHEAD_MAX: i64 = 15 * 60;
/// The first byte of a token: the version of its format.
const VERSION: u8 = 1;
/// The bytes before the nonce: the version, and the id of the master key.
const FRONT_BYTES: usize = 5;
const NONCE_BYTES: usize = 12;
/// The number of bytes of the HMAC that are the secret. They give 40 characters of base64.
const SECRET_BYTES: usize = 30;
/// The label with which the key of tokens is derived from a master key, so that it differs from the
/// keys of other uses. It may never change: all tokens that were issued would become invalid.
const TOKEN_TEXT: &[u8] = b"slipway session token v1";
const SECRET_TEXT: &[u8] = b"slipway session secret v1";

/// The kind of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionKind {
    /// AssumeRole.
    #[serde(rename = "r")]
    Role,
    /// AssumeRoleWithWebIdentity.
    #[serde(rename = "w")]
    WebIdentity,
    /// GetSessionToken.
    #[serde(rename = "u")]
    User,
    /// GetFederationToken.
    #[serde(rename = "f")]
    FederatedUser,
    /// AssumeRoleWithLDAPIdentity.
    #[serde(rename = "l")]
    Ldap,
}

/// The owner of a session's rights, or the principal that asked for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// A user or role, by its unique id.
    #[serde(rename = "i")]
    Id(UniqueId),
    /// The root of an account.
    #[serde(rename = "r")]
    Root(AccountId),
    /// A person, by the id of its entry in the directory.
    #[serde(rename = "d")]
    Entry(Box<str>),
}

/// The POSIX identity of a session. It is a reference, since ids and groups in a token would not
/// follow later changes of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PosixOf {
    /// The identity of a user.
    #[serde(rename = "i")]
    Id(UniqueId),
    /// A name that the system knows, from a claim of an OpenID provider.
    #[serde(rename = "n")]
    Claim(PosixClaim),
}

/// A name of the system that an OpenID provider says, and by which of its claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PosixClaim {
    /// The claim.
    #[serde(rename = "c")]
    pub claim: Box<str>,
    /// The name in it.
    #[serde(rename = "n")]
    pub name: Box<str>,
}

/// The OpenID provider that vouched for a person, and the person's id there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebIdentity {
    /// The ARN of the provider.
    #[serde(rename = "q")]
    pub provider: Box<str>,
    /// The unique id of the provider: another one may be made at its URL.
    #[serde(rename = "i")]
    pub provider_id: UniqueId,
    /// The person's id at the provider (`sub`).
    #[serde(rename = "u")]
    pub subject: Box<str>,
    /// The audience.
    #[serde(rename = "d")]
    pub audience: Box<str>,
}

/// The claims in a token. Their names in JSON are single letters; a token with an unknown name is
/// refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The version of the claims: 1.
    #[serde(rename = "v")]
    pub(crate) version: u8,
    /// The kind of the session.
    #[serde(rename = "k")]
    pub kind: SessionKind,
    /// The account.
    #[serde(rename = "a")]
    pub account: AccountId,
    /// The user or role whose rights the session has.
    #[serde(rename = "p")]
    pub principal: Who,
    /// The name of the session.
    #[serde(rename = "n")]
    pub name: Box<str>,
    /// The time at which the session was issued, in seconds since 1970.
    #[serde(rename = "i")]
    pub issued: i64,
    /// The time from which the session has ended, in seconds since 1970.
    #[serde(rename = "e")]
    pub ends: i64,
    /// The principal that asked for the session.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Who>,
    /// The access key that signed the request for the session.
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    pub by_key: Option<AccessKeyId>,
    /// The key that it ends with, which signed for it, or for one that it comes from.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub ends_with: Option<EndingKey>,
    /// The session policy.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Document>,
    /// The managed session policies.
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    pub managed: Vec<PolicyArn>,
    /// The tags.
    #[serde(
        rename = "t",
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "unique::deserialize"
    )]
    pub tags: Tags,
    /// The keys of the tags that the session passes on if it assumes another role.
    #[serde(rename = "x", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub transitive: BTreeSet<TagKey>,
    /// The source identity.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Box<str>>,
    /// The OpenID provider that vouched for the person, and the person's id there.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebIdentity>,
    /// The POSIX identity.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub posix: Option<PosixOf>,
    /// True if the session was issued to another session, not to a lasting key.
    #[serde(rename = "c", default, skip_serializing_if = "std::ops::Not::not")]
    pub chained: bool,
}

/// The part of the claims whose size the client chose.
#[derive(Serialize)]
struct Packed<'a> {
    s: &'a Option<Document>,
    m: &'a [PolicyArn],
    t: &'a BTreeMap<TagKey, TagValue>,
    x: &'a BTreeSet<TagKey>,
}

impl Claims {
    /// Makes the claims of a session that has no policies, tags or other optional claims.
    pub fn new(
        kind: SessionKind,
        account: AccountId,
        principal: Who,
        name: &str,
        issued: i64,
        ends: i64,
    ) -> Self {
        Self {
            version: 1,
            kind,
            account,
            principal,
            name: name.into(),
            issued,
            ends,
            by: None,
            by_key: None,
            ends_with: None,
            policy: None,
            managed: Vec::new(),
            tags: Tags::new(),
            transitive: BTreeSet::new(),
            source: None,
            web: None,
            posix: None,
            chained: false,
        }
    }

    /// Checks the times. A session that has ended is `Expired`; one that was issued more than 15
    /// minutes in the future is refused.
    pub fn check_time(&self, now: Timestamp) -> Result<(), Unidentified> {
        if self.issued > now.as_second().saturating_add(SECONDS_AHEAD_MAX) || self.issued > self.ends {
            return Err(Unidentified::InvalidToken);
        }
        if self.ends <= now.as_second() { Err(Unidentified::Expired) } else { Ok(()) }
    }

    /// Returns `PackedPolicySize`: policies and tags, compressed, in percent of their limit; `None`
    /// if there are none.
    pub fn packed_percent(&self) -> Result<Option<u32>, SealError> {
        if self.policy.is_none() && self.managed.is_empty() && self.tags.is_empty() {
            return Ok(None);
        }
        let packed = Packed { s: &self.policy, m: &self.managed, t: &self.tags, x: &self.transitive };
        let json = serde_json::to_vec(&packed).map_err(|_| SealError::TooLarge)?;
        let percent = (deflate(&json)?.len() * 100).div_ceil(PACKED_BYTES_MAX);
        if percent > 100 {
            Err(SealError::PackedPolicyTooLarge(percent))
        } else {
            Ok(u32::try_from(percent).ok())
        }
    }
}

/// The reason why the claims of a session cannot be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealError {
    /// Policies and tags are larger than allowed: this many percent of the limit.
    PackedPolicyTooLarge(usize),
    /// The token would be larger than [`TOKEN_CHARS_MAX`], or the claims larger than they may be
    /// after decompression.
    TooLarge,
    /// The system gives no random numbers.
    NoRandomNumbers,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PackedPolicyTooLarge(percent) => {
                write!(f, "policies and tags of the session take {percent} % of the space that they may take")
            }
            Self::TooLarge => {
                write!(f, "the token of the session would be longer than {TOKEN_CHARS_MAX} characters")
            }
            Self::NoRandomNumbers => NoRandomNumbers.fmt(f),
        }
    }
}

impl std::error::Error for SealError {}

impl From<NoRandomNumbers> for SealError {
    fn from(_: NoRandomNumbers) -> Self {
        Self::NoRandomNumbers
    }
}

/// A token. With its secret key it is as good as a password, so that it is never printed.
#[derive(Clone)]
pub struct SessionToken(Zeroizing<String>);

impl SessionToken {
    /// Wraps the text of a token that came with a request and was opened already.
    pub(crate) fn received(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// Returns the token, to be sent in an answer.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares the token with another text, in a time that does not reveal where they differ.
    pub fn matches(&self, other: &str) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), other.as_bytes()).is_ok()
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

/// The credentials that the requester of a session gets.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The access key.
    pub access_key: AccessKeyId,
    /// The secret key.
    pub secret_key: SecretKey,
    /// The token, without which the access key and the secret key are worth nothing.
    pub token: SessionToken,
    /// The `PackedPolicySize` in percent; `None` if the session has no policies and tags.
    pub packed_percent: Option<u32>,
}

struct TokenKey {
    id: KeyId,
    tokens: LessSafeKey,
    secrets: hmac::Key,
}

/// The keys of tokens, one for each master key: the first one seals, and each opens what it has
/// sealed. They are never printed.
pub struct TokenKeys(Vec<TokenKey>);

impl fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenKeys({})", self.0.len())
    }
}

impl TokenKeys {
    /// Derives the keys from the master keys.
    pub fn new(master_keys: &MasterKeys) -> Self {
        let secrets = master_keys.derived(SECRET_TEXT);
        let both = master_keys.derived(TOKEN_TEXT).zip(secrets);
        let keys = both.filter_map(|((id, token), (_, secret))| {
            let secrets = hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref());
            Some(TokenKey { id, tokens: aead(&token)?, secrets })
        });
        Self(keys.collect())
    }

    /// Issues a session: draws an access key, and seals the claims for it.
    pub fn seal(&self, claims: &Claims, fill: &Fill<'_>) -> Result<Issued, SealError> {
        let packed_percent = claims.packed_percent()?;
        let json = serde_json::to_vec(claims).map_err(|_| SealError::TooLarge)?;
        if json.len() > CLAIMS_BYTES_MAX {
            return Err(SealError::TooLarge);
        }
        let key = self.0.first().ok_or(SealError::NoRandomNumbers)?;
        let access_key = AccessKeyId::random_of_session(fill)?;
        let [a, b, c, d] = *key.id.as_bytes();
        let front = [VERSION, a, b, c, d];
        let sealed = seal_with(&key.tokens, associated(access_key.as_str()), &deflate(&json)?, &front, fill)?;
        let nonce = sealed.get(FRONT_BYTES..FRONT_BYTES + NONCE_BYTES).ok_or(SealError::TooLarge)?;
        let secret_key = key.secret(nonce, access_key.as_str()).ok_or(SealError::TooLarge)?;
        let token = Zeroizing::new(URL_SAFE_NO_PAD.encode(&sealed));
        if token.len() > TOKEN_CHARS_MAX {
            return Err(SealError::TooLarge);
        }
        Ok(Issued { access_key, secret_key, token: SessionToken(token), packed_percent })
    }

    /// Opens a token that came with an access key, and returns its claims and the secret key. Every
    /// failure is `InvalidToken`, and takes the same path as far as there is one, so that neither
    /// the answer nor its time tells failures apart. Times are not checked ([`Claims::check_time`]
    /// does that).
    pub fn open(&self, access_key: &str, token: &str) -> Result<(Claims, SecretKey), Unidentified> {
        self.look(access_key, token).ok_or(Unidentified::InvalidToken)
    }

    fn look(&self, access_key: &str, token: &str) -> Option<(Claims, SecretKey)> {
        if token.len() > TOKEN_CHARS_MAX {
            return None;
        }
        // Padding and unused bits that are set are refused: there is one token for the same bytes.
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (front, sealed) = bytes.split_first_chunk::<FRONT_BYTES>()?;
        let (nonce, _) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let [version, a, b, c, d] = *front;
        let id = KeyId::from_bytes([a, b, c, d]);
        let known = self.0.iter().find(|key| key.id == id);
        // One sealed with an unknown key is tried with another, in which it takes as long to fail.
        let key = known.or(self.0.first())?;
        let opened = open_with(&key.tokens, associated(access_key), sealed)?;
        if version != VERSION || known.is_none() {
            return None;
        }
        let json = inflate(&opened)?;
        let claims: Claims = serde_json::from_slice(&json).ok()?;
        let secret = key.secret(nonce, access_key)?;
        (claims.version == 1).then_some((claims, secret))
    }
}

impl TokenKey {
    /// Computes the secret of an access key.
    fn secret(&self, nonce: &[u8], access_key: &str) -> Option<SecretKey> {
        let tag = hmac::sign(&self.secrets, &[nonce, access_key.as_bytes()].concat());
        let text = Zeroizing::new(STANDARD.encode(tag.as_ref().get(..SECRET_BYTES)?));
        SecretKey::new(&text).ok()
    }
}

fn associated(access_key: &str) -> Aad<Vec<u8>> {
    Aad::from([TOKEN_TEXT, access_key.as_bytes()].join(&0))
}

fn deflate(bytes: &[u8]) -> Result<Vec<u8>, SealError> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|_| SealError::TooLarge)
}

/// Decompresses the claims; `None` if they are larger than claims may be, or if further bytes
/// follow.
fn inflate(bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::with_capacity(CLAIMS_BYTES_MAX + 1));
    let mut decoder = DeflateDecoder::new(bytes);
    decoder.by_ref().take(CLAIMS_BYTES_MAX as u64 + 1).read_to_end(&mut text).ok()?;
    let is_whole = usize::try_from(decoder.total_in()).is_ok_and(|read| read == bytes.len());
    (text.len() <= CLAIMS_BYTES_MAX && is_whole).then_some(text)
}

#[cfg(test)]
mod tests;
