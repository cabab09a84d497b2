//! The checks of a token's claims, also of whether the token is meant for this server.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use crate::limits::{AUDIENCES_MAX, CLAIM_BYTES_MAX, ROLES_MAX, SECONDS_AHEAD_MAX, VALUES_MAX};
use crate::refusal::Refusal;

/// The claim with the tags of the session.
///
/// Source: "Passing session tags using AssumeRoleWithWebIdentity" in the IAM User Guide.
const TAGS: &str = "https://aws.amazon.com/tags";
/// The prefix of the claims that have one tag each: the key of the tag follows.
const ONE_TAG: &str = "https://aws.amazon.com/tags/principal_tags/";
/// The claim with the source identity of the session.
const SOURCE_IDENTITY: &str = "https://aws.amazon.com/source_identity";

/// A JSON object in which each name occurs once.
#[derive(Debug, Default)]
pub struct Object(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut all = Map::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if all.insert(name, value).is_some() {
                        return Err(A::Error::custom("a name comes twice"));
                    }
                }
                Ok(Object(all))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// The provider and the audiences that a token has to name.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The issuer of the provider's tokens, compared byte for byte.
    pub issuer: &'a str,
    /// The audiences that are accepted.
    pub client_ids: &'a [Box<str>],
    /// The claim with the roles that a person may assume, if the provider has one.
    pub role_claim: Option<&'a str>,
    /// The claim with the name on the file system, if the provider has one.
    pub posix_claim: Option<&'a str>,
}

/// The claims of a provider about a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebToken {
    /// The person's id at the provider (`sub`).
    pub subject: Box<str>,
    /// The client that the token was made for: `azp` if there is one, else `aud`.
    pub audience: Box<str>,
    /// The audiences as the token has them (`aud`).
    pub audiences: Vec<Box<str>>,
    /// The client that asked for the token (`azp`).
    pub authorized_party: Option<Box<str>>,
    /// The methods by which the subject proved its identity (`amr`).
    pub methods: Vec<Box<str>>,
    /// The other claims that are a text, a number or a boolean, by name.
    pub others: BTreeMap<Box<str>, Box<str>>,
    /// The tags of the session.
    pub tags: BTreeMap<Box<str>, Box<str>>,
    /// The keys of the tags that the session passes on if it assumes another role.
    pub transitive: Vec<Box<str>>,
    /// The source identity of the session.
    pub source_identity: Option<Box<str>>,
    /// The roles that the person may assume, by name or ARN; `None` if no claim names roles.
    pub roles: Option<Vec<Box<str>>>,
    /// The name on the file system.
    pub posix_name: Option<Box<str>>,
}

impl WebToken {
    /// Checks the claims of a token whose signature was verified. `now` is in seconds since 1970.
    pub(crate) fn read(claims: &Object, expected: Expected<'_>, now: i64) -> Result<Self, Refusal> {
        let claims = &claims.0;
        let wrong = Refusal::Invalid;
        if claims.get("iss").and_then(Value::as_str) != Some(expected.issuer) {
            return Err(wrong("The token has another issuer than its provider."));
        }
        check_times(claims, now)?;
        let subject = text(claims, "sub")?.ok_or(wrong("The token has no subject."))?;
        let audiences = texts(claims, "aud", AUDIENCES_MAX)?;
        let authorized_party = text(claims, "azp")?;
        let audience = audience(&audiences, authorized_party.as_deref(), expected.client_ids)?;
        let (tags, transitive) = tags(claims)?;
        Ok(Self {
            subject,
            audience,
            audiences,
            authorized_party,
            methods: texts(claims, "amr", VALUES_MAX)?,
            others: others(claims),
            tags,
            transitive,
            source_identity: text(claims, SOURCE_IDENTITY)?,
            roles: expected.role_claim.map(|name| texts(claims, name, ROLES_MAX)).transpose()?,
            posix_name: expected.posix_claim.map(|name| text(claims, name)).transpose()?.flatten(),
        })
    }
}

/// Returns the client that a token was made for. An audience of the token must be in `client_ids`.
/// If the token names an authorized party (`azp`), that is the client, and must be in `client_ids`,
/// too; a token with several audiences must name one. So a token that was made for another service
/// is refused, even if our client asked for it.
fn audience(
    audiences: &[Box<str>],
    authorized_party: Option<&str>,
    client_ids: &[Box<str>],
) -> Result<Box<str>, Refusal> {
    let is_ours = |id: &str| client_ids.iter().any(|known| **known == *id);
    let ours = audiences.iter().find(|id| is_ours(id));
    let found = match (ours, authorized_party) {
        (Some(_), Some(party)) if is_ours(party) => Some(party.into()),
        (Some(id), None) if audiences.len() == 1 => Some(id.clone()),
        _ => None,
    };
    // AWS's sentence.
    found.ok_or(Refusal::Invalid("Incorrect token audience"))
}

fn check_times(claims: &Map<String, Value>, now: i64) -> Result<(), Refusal> {
    let ended = second(claims, "exp")?.ok_or(Refusal::Invalid("The token does not say when it ends."))?;
    if ended <= now {
        return Err(Refusal::Expired { ended, now });
    }
    let soon = now.saturating_add(SECONDS_AHEAD_MAX);
    if second(claims, "iat")?.is_some_and(|second| second > soon) {
        return Err(Refusal::Invalid("The token was issued in the future."));
    }
    if second(claims, "nbf")?.is_some_and(|second| second > soon) {
        return Err(Refusal::Invalid("The token is not valid yet."));
    }
    Ok(())
}

/// Returns a claim that is a time, in whole seconds since 1970; `None` if the token has no such
/// claim. A value that is not a time is refused, even if it does not matter.
fn second(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, Refusal> {
    let of = |number: &Number| {
        // A fraction of a second is left out, so that a token ends sooner rather than later. The
        // cast takes the nearest number that there is.
        #[expect(clippy::cast_possible_truncation, reason = "as the comment says")]
        let whole = || number.as_f64().filter(|value| value.is_finite()).map(|value| value.floor() as i64);
        number.as_i64().or_else(whole)
    };
    match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => {
            of(number).map(Some).ok_or(Refusal::Invalid("A time of the token is no number."))
        }
        Some(_) => Err(Refusal::Invalid("A time of the token is no number.")),
    }
}

fn short(text: &str) -> Result<Box<str>, Refusal> {
    if text.len() > CLAIM_BYTES_MAX || text.is_empty() {
        return Err(Refusal::Invalid("A claim of the token is empty, or too long."));
    }
    Ok(text.into())
}

/// Returns a claim that is a text; `None` if the token has no such claim.
fn text(claims: &Map<String, Value>, name: &str) -> Result<Option<Box<str>>, Refusal> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => short(text).map(Some),
        Some(_) => Err(Refusal::Invalid("A claim of the token is no text.")),
    }
}

/// Returns the texts of a claim, which may be one text or an array of at most `most` texts.
fn texts(claims: &Map<String, Value>, name: &str, most: usize) -> Result<Vec<Box<str>>, Refusal> {
    claims.get(name).map_or_else(|| Ok(Vec::new()), |value| texts_of(value, most))
}

fn texts_of(value: &Value, most: usize) -> Result<Vec<Box<str>>, Refusal> {
    let wrong = Refusal::Invalid("A claim of the token is no text, and no list of texts.");
    match value {
        Value::String(text) => Ok(vec![short(text)?]),
        Value::Array(all) if all.len() <= most => {
            let one = |value: &Value| value.as_str().ok_or(wrong.clone()).and_then(short);
            all.iter().map(one).collect()
        }
        _ => Err(wrong),
    }
}

/// Returns the claims that have no meaning of their own here; conditions may ask for them. Claims
/// that are neither texts nor numbers nor booleans are left out.
fn others(claims: &Map<String, Value>) -> BTreeMap<Box<str>, Box<str>> {
    let own = ["aud", "azp", "amr", "sub", TAGS, SOURCE_IDENTITY];
    let value = |value: &Value| match value {
        Value::String(text) if text.len() <= CLAIM_BYTES_MAX => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(is) => Some(is.to_string().into()),
        _ => None,
    };
    let claims = claims.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    claims.filter_map(|(name, claim)| Some((name.as_str().into(), value(claim)?))).collect()
}

type Tags = BTreeMap<Box<str>, Box<str>>;

/// Returns the tags of the session, and the keys of the tags that the session passes on if it
/// assumes another role. The value of a tag is a text, or a list with one text. Two keys must
/// differ in more than the case of ASCII letters, in either form of the claim, as those of
/// AssumeRole.
fn tags(claims: &Map<String, Value>) -> Result<(Tags, Vec<Box<str>>), Refusal> {
    let wrong = Refusal::Invalid("The tags of the token are not of their form.");
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.as_str().into()),
        Value::Array(all) => match all.as_slice() {
            [Value::String(text)] => Some(text.as_str().into()),
            _ => None,
        },
        _ => None,
    };
    let mut tags = Tags::new();
    let mut add = |key: &str, value: &Value| {
        let value = one(value).ok_or(wrong.clone())?;
        // Conditions find a tag without regard to case: of two, each reader could take another one.
        if tags.keys().any(|other| str::eq_ignore_ascii_case(other, key)) {
            let sentence = "Two tags of the token have the same key. Keys are compared without case.";
            return Err(Refusal::Invalid(sentence));
        }
        tags.insert(key.into(), value);
        if tags.len() <= VALUES_MAX { Ok(()) } else { Err(wrong.clone()) }
    };
    for (name, value) in claims {
        if let Some(key) = name.strip_prefix(ONE_TAG) {
            add(key, value)?;
        }
    }
    let mut transitive = match claims.get("https://aws.amazon.com/tags/transitive_tag_keys") {
        None => Vec::new(),
        Some(value) => texts_of(value, VALUES_MAX)?,
    };
    match claims.get(TAGS) {
        None => {}
        Some(Value::Object(all)) => {
            for (name, value) in all {
                match (name.as_str(), value) {
                    ("principal_tags", Value::Object(all)) => {
                        all.iter().try_for_each(|(key, value)| add(key, value))?;
                    }
                    ("transitive_tag_keys", value) => transitive.extend(texts_of(value, VALUES_MAX)?),
                    _ => return Err(wrong),
                }
            }
        }
        Some(_) => return Err(wrong),
    }
    let is_sent = |key: &str| tags.keys().any(|sent| sent.eq_ignore_ascii_case(key));
    if !transitive.iter().all(|key| is_sent(key)) {
        return Err(Refusal::Invalid("A transitive tag key of the token is not among its tags."));
    }
    Ok((tags, transitive))
}
