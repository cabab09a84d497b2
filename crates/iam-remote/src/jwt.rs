//! Tokens of OpenID providers: JWTs, whose signatures the crate `jsonwebtoken` verifies with
//! aws-lc-rs (docs/decisions/0072-openid-tokens.md).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;

use crate::claims::{Expected, Object, WebToken};
use crate::limits::{KEYS_MAX, TOKEN_CHARS_MAX};
use crate::refusal::Refusal;

const RSA: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// A key of a provider, with the algorithms that it may be used for: those of its type, or the one
/// that the provider names. HMAC is not among them, so that a public key is never used as a secret.
struct Key {
    id: Option<Box<str>>,
    algorithms: Vec<Algorithm>,
    public: DecodingKey,
}

/// The keys of a provider.
pub struct Keys(Vec<Key>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

/// A set of keys as a provider sends it. Keys that are not understood are ignored, as RFC 7517 (5)
/// requires.
#[derive(Deserialize)]
struct Sent {
    keys: Vec<Value>,
}

impl Keys {
    /// Reads a provider's document with its keys (JWKS).
    pub fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let sent: Sent = serde_json::from_slice(bytes).map_err(|_| "it is no set of keys")?;
        let keys: Vec<_> = sent.keys.into_iter().take(KEYS_MAX).filter_map(key).collect();
        if keys.is_empty() { Err("no key in it can be used") } else { Ok(Self(keys)) }
    }

    /// True if one of the keys can verify the token.
    pub fn have(&self, token: &Unverified<'_>) -> bool {
        self.of(token).is_some()
    }

    /// Finds the key that has signed a token. If the token does not name its key, there must be
    /// only one for its algorithm.
    fn of(&self, token: &Unverified<'_>) -> Option<&Key> {
        let header = &token.header;
        let mut fitting = self.0.iter().filter(|key| key.algorithms.contains(&header.alg));
        match header.kid.as_deref() {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

fn key(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let is_for_signatures = matches!(jwk.common.public_key_use, None | Some(PublicKeyUse::Signature));
    let of_type: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => RSA,
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => {
            &[Algorithm::EdDSA]
        }
        _ => return None,
    };
    let algorithms = match jwk.common.key_algorithm {
        None => of_type.to_vec(),
        Some(named) => {
            let named = of_type.iter().find(|algorithm| KeyAlgorithm::from(**algorithm) == named);
            vec![*named?]
        }
    };
    if !is_for_signatures {
        return None;
    }
    let public = DecodingKey::from_jwk(&jwk).ok()?;
    Some(Key { id: jwk.common.key_id.map(Into::into), algorithms, public })
}

/// A token as it came, before its signature was verified.
pub struct Unverified<'a> {
    text: &'a str,
    header: Header,
    issuer: Box<str>,
}

impl<'a> Unverified<'a> {
    /// Splits a token into its parts, and decodes them.
    pub fn read(text: &'a str) -> Result<Self, Refusal> {
        let no_token = Refusal::Invalid("The ID Token provided is not a valid JWT.");
        if text.len() > TOKEN_CHARS_MAX {
            return Err(no_token);
        }
        let parts: Vec<_> = text.splitn(4, '.').collect();
        let [_, payload, _] = *parts.as_slice() else { return Err(no_token) };
        let header = decode_header(text).map_err(|_| no_token.clone())?;
        // Other tokens of the same provider, such as those by which it ends sessions, vouch for
        // nobody. What must be understood (RFC 7515, 4.1.11) is not.
        let kind = header.typ.as_deref().unwrap_or("JWT");
        let is_for_us = kind.eq_ignore_ascii_case("JWT") || kind.eq_ignore_ascii_case("at+jwt");
        if !is_for_us || header.crit.is_some() || header.extras.inner().contains_key("b64") {
            return Err(Refusal::Invalid("The token is of a kind that is not accepted."));
        }
        let payload = URL_SAFE_NO_PAD.decode(payload).map_err(|_| no_token.clone())?;
        let claims: Object = serde_json::from_slice(&payload).map_err(|_| no_token.clone())?;
        let issuer = claims.0.get("iss").and_then(Value::as_str).ok_or(no_token)?.into();
        Ok(Self { text, header, issuer })
    }

    /// Returns the issuer that the token names.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Verifies the signature, and then checks the claims. `now` is in seconds since 1970.
    pub fn verify(&self, keys: &Keys, expected: Expected<'_>, now: i64) -> Result<WebToken, Refusal> {
        let key = keys.of(self).ok_or(Refusal::Invalid("The token is signed by no key of its provider."))?;
        let mut validation = Validation::new(self.header.alg);
        validation.algorithms.clone_from(&key.algorithms);
        // What the token says is checked below, by the gateway's clock.
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let decoded = decode::<Object>(self.text, &key.public, &validation)
            .map_err(|_| Refusal::Invalid("The signature of the token is not its provider's."))?;
        WebToken::read(&decoded.claims, expected, now)
    }
}

#[cfg(test)]
mod tests;
