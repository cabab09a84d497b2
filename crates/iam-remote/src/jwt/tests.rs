use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};
use jsonwebtoken::{EncodingKey, encode};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://idp.lab/realms/a";

/// A key of a provider, and its public half as the provider shows it.
struct Pair {
    key: EncodingKey,
    shown: Value,
}

fn shown(key: &EncodingKey, algorithm: Algorithm, id: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(key, algorithm).unwrap();
    jwk.common.key_id = Some(id.to_owned());
    jwk.common.key_algorithm = None;
    serde_json::to_value(&jwk).unwrap()
}

fn pair(key: EncodingKey, algorithm: Algorithm, id: &str) -> Pair {
    let shown = shown(&key, algorithm, id);
    Pair { key, shown }
}

fn rsa(id: &str) -> Pair {
    let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der<'_> = key.as_der().unwrap();
    // What PKCS #1 has begins there.
    pair(EncodingKey::from_rsa_der(&pkcs8.as_ref()[26..]), Algorithm::RS256, id)
}

fn p256(id: &str) -> Pair {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    pair(EncodingKey::from_ec_der(key.as_ref()), Algorithm::ES256, id)
}

fn p384(id: &str) -> Pair {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    pair(EncodingKey::from_ec_der(key.as_ref()), Algorithm::ES384, id)
}

fn ed25519(id: &str) -> Pair {
    let key = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).unwrap();
    pair(EncodingKey::from_ed_der(key.as_ref()), Algorithm::EdDSA, id)
}

static ONE: LazyLock<Pair> = LazyLock::new(|| p256("one"));
static LARGE: LazyLock<Pair> = LazyLock::new(|| rsa("rsa"));

fn keys(pairs: &[&Pair]) -> Keys {
    let all: Vec<_> = pairs.iter().map(|pair| pair.shown.clone()).collect();
    Keys::read(json!({ "keys": all }).to_string().as_bytes()).unwrap()
}

fn header(algorithm: Algorithm, id: Option<&str>) -> Header {
    Header { kid: id.map(str::to_owned), ..Header::new(algorithm) }
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "sub": "ann", "aud": "client", "exp": NOW + 60, "iat": NOW })
}

/// The claims with others in their place; null takes one away.
fn with(others: &Value) -> Value {
    let mut claims = claims();
    for (name, value) in others.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn signed(claims: &Value) -> String {
    encode(&header(Algorithm::ES256, Some("one")), claims, &ONE.key).unwrap()
}

fn verified(token: &str, keys: &Keys) -> Result<WebToken, Refusal> {
    let client_ids = ["client".into(), "other".into()];
    Unverified::read(token)?.verify(
        keys,
        Expected {
            issuer: ISSUER,
            client_ids: &client_ids,
            role_claim: Some("groups"),
            posix_claim: Some("email"),
        },
        NOW,
    )
}

fn why(token: &str, keys: &Keys) -> String {
    verified(token, keys).unwrap_err().to_string()
}

/// A token of these two parts as they are, signed as it has to be.
fn signed_raw(header: &str, payload: &str) -> String {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
    let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &ONE.key, Algorithm::ES256).unwrap();
    format!("{message}.{signature}")
}

#[test]
fn tokens_of_all_algorithms_are_verified() {
    let (two, three) = (p384("384"), ed25519("ed"));
    let all = keys(&[&ONE, &two, &three, &LARGE]);
    for (algorithm, pair, id) in [
        (Algorithm::ES256, &*ONE, "one"),
        (Algorithm::ES384, &two, "384"),
        (Algorithm::EdDSA, &three, "ed"),
        (Algorithm::RS256, &*LARGE, "rsa"),
        (Algorithm::RS384, &*LARGE, "rsa"),
        (Algorithm::RS512, &*LARGE, "rsa"),
        (Algorithm::PS256, &*LARGE, "rsa"),
        (Algorithm::PS384, &*LARGE, "rsa"),
        (Algorithm::PS512, &*LARGE, "rsa"),
    ] {
        let token = encode(&header(algorithm, Some(id)), &claims(), &pair.key).unwrap();
        assert_eq!(&*verified(&token, &all).unwrap().subject, "ann", "{algorithm:?}");
        // The only key of its algorithm need not be named; another one may not be.
        let token = encode(&header(algorithm, None), &claims(), &pair.key).unwrap();
        assert!(verified(&token, &all).is_ok(), "{algorithm:?}");
        let token = encode(&header(algorithm, Some("none")), &claims(), &pair.key).unwrap();
        assert_eq!(why(&token, &all), "The token is signed by no key of its provider.");
    }
}

#[test]
fn a_key_is_used_for_what_it_is_made_for() {
    let no_key = "The token is signed by no key of its provider.";
    let (first, second) = (p256("a"), p256("b"));
    let token = encode(&header(Algorithm::ES256, None), &claims(), &first.key).unwrap();
    assert_eq!(why(&token, &keys(&[&first, &second])), no_key, "which one?");
    let token = encode(&header(Algorithm::ES256, Some("b")), &claims(), &first.key).unwrap();
    let refused = why(&token, &keys(&[&first, &second]));
    assert_eq!(refused, "The signature of the token is not its provider's.");
    // A path is a name like others.
    for id in ["../a", "a\0", "/dev/null", "http://127.0.0.1/a", "' OR 1=1"] {
        let token = encode(&header(Algorithm::ES256, Some(id)), &claims(), &first.key).unwrap();
        assert_eq!(why(&token, &keys(&[&first])), no_key, "{id}");
    }
    // The provider's word on the algorithm, and on what the key is for.
    let token = encode(&header(Algorithm::RS384, Some("rsa")), &claims(), &LARGE.key).unwrap();
    for (member, value, is_taken) in [
        ("alg", "RS384", true),
        ("alg", "RS256", false),
        ("alg", "HS256", false),
        ("alg", "RSA-OAEP", false),
        ("use", "sig", true),
        ("use", "enc", false),
    ] {
        let mut shown = LARGE.shown.clone();
        shown[member] = value.into();
        let other = ONE.shown.clone();
        let all = Keys::read(json!({ "keys": [other, shown] }).to_string().as_bytes()).unwrap();
        assert_eq!(verified(&token, &all).is_ok(), is_taken, "{member} {value}");
    }
}

#[test]
fn no_key_is_a_secret() {
    // The public key as the secret of an HMAC, in the forms that others have taken it in.
    let all = keys(&[&LARGE]);
    let modulus = LARGE.shown["n"].as_str().unwrap();
    let raw = URL_SAFE_NO_PAD.decode(modulus).unwrap();
    let document = LARGE.shown.to_string();
    for secret in [modulus.as_bytes(), &raw, document.as_bytes(), b""] {
        for id in [Some("rsa"), None] {
            let key = EncodingKey::from_secret(secret);
            let token = encode(&header(Algorithm::HS256, id), &claims(), &key).unwrap();
            assert_eq!(why(&token, &all), "The token is signed by no key of its provider.");
        }
    }
    // A set of secrets has no key that can be used.
    let secrets = json!({ "keys": [{ "kty": "oct", "kid": "rsa", "k": "c2VjcmV0", "alg": "HS256" }] });
    assert_eq!(Keys::read(secrets.to_string().as_bytes()).unwrap_err(), "no key in it can be used");
}

#[test]
fn headers_that_are_refused() {
    let all = keys(&[&ONE]);
    let payload = claims().to_string();
    let good = r#"{"alg":"ES256","kid":"one","typ":"JWT"}"#;
    assert!(verified(&signed_raw(good, &payload), &all).is_ok());
    let no_token = "The ID Token provided is not a valid JWT.";
    let kind = "The token is of a kind that is not accepted.";
    for (header, expected) in [
        (r#"{"alg":"none","kid":"one"}"#, no_token),
        (r#"{"alg":"None","kid":"one"}"#, no_token),
        (r#"{"alg":"","kid":"one"}"#, no_token),
        (r#"{"alg":"ES256","alg":"ES256","kid":"one"}"#, no_token),
        (r#"{"alg":"ES256","kid":["one"]}"#, no_token),
        (r#"{"kid":"one"}"#, no_token),
        ("[]", no_token),
        (r#"{"alg":"ES256","kid":"one","typ":"logout+jwt"}"#, kind),
        (r#"{"alg":"ES256","kid":"one","crit":["exp"]}"#, kind),
        (r#"{"alg":"ES256","kid":"one","crit":[]}"#, kind),
        (r#"{"alg":"ES256","kid":"one","b64":false}"#, kind),
    ] {
        assert_eq!(why(&signed_raw(header, &payload), &all), expected, "{header}");
    }
    // Keys that a token brings along count for nothing.
    let other = p256("one");
    let mut brought =
        Header { jku: Some("http://127.0.0.1/".into()), ..header(Algorithm::ES256, Some("one")) };
    brought.jwk = Some(serde_json::from_value(other.shown.clone()).unwrap());
    let token = encode(&brought, &claims(), &other.key).unwrap();
    assert_eq!(why(&token, &all), "The signature of the token is not its provider's.");
}

#[test]
fn texts_that_are_no_tokens() {
    let all = keys(&[&ONE]);
    let token = signed(&claims());
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { unreachable!() };
    let other = signed(&with(&json!({ "sub": "bob" })));
    let other_payload = other.split('.').nth(1).unwrap();
    let long = "a".repeat(TOKEN_CHARS_MAX + 1);
    for bad in [
        "",
        "a.b",
        "...",
        &format!("{header}.{payload}"),
        &format!("{header}.{payload}."),
        &format!("{token}."),
        &format!("{token}.{signature}"),
        &format!("{header}.{payload}=.{signature}"),
        &format!("{header}.{payload}.{signature}="),
        &format!("{header}.{other_payload}.{signature}"),
        &format!(" {token}"),
        &format!("{token}\n"),
        &long,
        &format!("{header}.{}.{signature}", URL_SAFE_NO_PAD.encode("[".repeat(10_000))),
    ] {
        assert!(matches!(verified(bad, &all), Err(Refusal::Invalid(_))), "{}", &bad[..bad.len().min(80)]);
    }
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        assert!(verified(&String::from_utf8(bytes).unwrap(), &all).is_err(), "{at}");
    }
}

#[test]
fn claims_that_are_refused() {
    let all = keys(&[&ONE]);
    for others in [
        json!({ "iss": "https://idp.lab/realms/a/" }),
        json!({ "iss": "https://idp.lab/realms/A" }),
        json!({ "iss": "http://idp.lab/realms/a" }),
        json!({ "iss": null }),
        json!({ "iss": [ISSUER] }),
        json!({ "sub": null }),
        json!({ "sub": "" }),
        json!({ "sub": 5 }),
        json!({ "sub": "a".repeat(3000) }),
        json!({ "aud": null }),
        json!({ "aud": [] }),
        json!({ "aud": "stranger" }),
        json!({ "aud": "Client" }),
        json!({ "aud": ["client", "stranger"] }),
        json!({ "aud": ["client", "other"] }),
        json!({ "aud": { "client": 1 } }),
        json!({ "aud": ["client", 1] }),
        json!({ "aud": ["client", "stranger"], "azp": "stranger" }),
        json!({ "aud": "stranger", "azp": "client" }),
        json!({ "aud": "client", "azp": "stranger" }),
        json!({ "azp": 1 }),
        json!({ "exp": null }),
        json!({ "exp": (NOW + 60).to_string() }),
        json!({ "exp": NOW }),
        json!({ "exp": -1 }),
        json!({ "exp": true }),
        json!({ "nbf": NOW + 61 }),
        json!({ "nbf": "0" }),
        json!({ "iat": NOW + 61 }),
        json!({ "iat": 1e300 }),
        json!({ "amr": 1 }),
        json!({ "https://aws.amazon.com/tags": "a" }),
        json!({ "https://aws.amazon.com/tags": { "principal_tags": { "a": ["1", "2"] } } }),
        json!({ "https://aws.amazon.com/tags": { "other": 1 } }),
        json!({ "https://aws.amazon.com/tags": { "principal_tags": { "team": "a", "TEAM": "b" } } }),
        json!({
            "https://aws.amazon.com/tags": { "principal_tags": { "team": "a" } },
            "https://aws.amazon.com/tags/principal_tags/Team": "a",
        }),
        json!({
            "https://aws.amazon.com/tags/principal_tags/x": "a",
            "https://aws.amazon.com/tags/principal_tags/X": "b",
        }),
        json!({ "https://aws.amazon.com/source_identity": 1 }),
    ] {
        assert!(verified(&signed(&with(&others)), &all).is_err(), "{others}");
    }
    let ended = verified(&signed(&with(&json!({ "exp": NOW - 1 }))), &all).unwrap_err();
    assert_eq!(ended, Refusal::Expired { ended: NOW - 1, now: NOW });
    // A name that comes twice, of which each reader takes another one.
    let twice = claims().to_string().replace(r#""sub":"ann""#, r#""sub":"ann","sub":"bob""#);
    let token = signed_raw(r#"{"alg":"ES256","kid":"one"}"#, &twice);
    assert_eq!(why(&token, &all), "The ID Token provided is not a valid JWT.");
}

#[test]
fn claims_that_are_taken() {
    let all = keys(&[&ONE]);
    for others in [
        json!({}),
        json!({ "iat": null }),
        json!({ "iat": NOW + 60, "nbf": NOW + 60 }),
        json!({ "exp": 1_800_000_060.5 }),
        json!({ "exp": 9e18 }),
        json!({ "azp": "other" }),
        json!({ "aud": ["client"] }),
        json!({ "aud": ["client", "stranger"], "azp": "client" }),
        // The Kelvin sign, which no condition takes for a `k`.
        json!({ "https://aws.amazon.com/tags": { "principal_tags": { "k": "a", "\u{212a}": "b" } } }),
    ] {
        assert!(verified(&signed(&with(&others)), &all).is_ok(), "{others}");
    }
    let token = verified(
        &signed(&with(&json!({
            "azp": "other", "aud": ["client", "more"], "amr": ["pwd", "mfa"], "email": "ann@idp.lab", "verified": true,
            "level": 3, "groups": ["a"], "https://aws.amazon.com/source_identity": "ann",
            "https://aws.amazon.com/tags": { "principal_tags": { "team": ["a"], "x": "1" }, "transitive_tag_keys": ["x"] },
            "https://aws.amazon.com/tags/principal_tags/y": "2",
        }))),
        &all,
    );
    let token = token.unwrap();
    assert_eq!((&*token.audience, token.authorized_party.as_deref()), ("other", Some("other")));
    assert_eq!(token.audiences, ["client".into(), "more".into()]);
    assert_eq!(token.methods, ["pwd".into(), "mfa".into()]);
    let other = |name: &str| token.others.get(name).map(|value| &**value);
    assert_eq!(
        [other("email"), other("verified"), other("level")],
        [Some("ann@idp.lab"), Some("true"), Some("3")]
    );
    assert_eq!([other("groups"), other("sub"), other("aud")], [None; 3]);
    let tag = |key: &str| token.tags.get(key).map(|value| &**value);
    assert_eq!([tag("team"), tag("x"), tag("y")], [Some("a"), Some("1"), Some("2")]);
    assert_eq!(token.transitive, ["x".into()]);
    assert_eq!(token.source_identity.as_deref(), Some("ann"));
    assert_eq!(token.roles, Some(vec!["a".into()]));
    assert_eq!(token.posix_name.as_deref(), Some("ann@idp.lab"));
}

#[test]
fn sets_of_keys() {
    let shown = &ONE.shown;
    for (document, count) in [
        (json!({ "keys": [shown] }), Some(1)),
        (
            json!({ "keys": [shown, { "kty": "unknown" }, { "kty": "oct", "k": "YQ" }, 5, null, shown] }),
            Some(2),
        ),
        (
            json!({ "keys": [{ "kty": "EC", "crv": "secp256k1", "x": "YQ", "y": "YQ" }, shown], "more": 1 }),
            Some(1),
        ),
        (json!({ "keys": vec![shown; 150] }), Some(100)),
        (json!({ "keys": [] }), None),
        (json!({ "keys": shown }), None),
        (json!([shown]), None),
    ] {
        let read = Keys::read(document.to_string().as_bytes());
        assert_eq!(read.as_ref().map(|keys| keys.0.len()).ok(), count, "{document}");
    }
    assert!(Keys::read(b"<html>").is_err() && Keys::read(b"").is_err());
}
