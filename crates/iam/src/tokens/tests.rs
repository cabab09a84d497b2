use super::*;
use crate::unique_id::system_random;

mod long;

const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

fn keys(lines: &[&str]) -> TokenKeys {
    TokenKeys::new(&MasterKeys::read(&lines.join("\n")).unwrap())
}

fn small() -> Claims {
    let account = AccountId::new("123456789012").unwrap();
    let role = UniqueId::new("AROAQ3EGRWOAT7LCK5XUM").unwrap();
    Claims::new(SessionKind::Role, account, Who::Id(role), "session-1", 1_800_000_000, 1_800_003_600)
}

fn full() -> Claims {
    let user = UniqueId::new("AIDAQ3EGRWOAT7LCK5XUM").unwrap();
    let key = |text| TagKey::new(text).unwrap();
    Claims {
        by: Some(Who::Id(user.clone())),
        by_key: Some(AccessKeyId::new("AKIA5OXHV2LQJ7MBNE3T").unwrap()),
        ends_with: Some(EndingKey {
            user: user.clone(),
            key: AccessKeyId::new("AKIA5OXHV2LQJ7MBNE3T").unwrap(),
        }),
        policy: Some(Document::new("{\"Version\":\"2012-10-17\"}").unwrap()),
        managed: vec![PolicyArn::new("arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess").unwrap()],
        tags: BTreeMap::from([
            (key("team"), TagValue::new("a").unwrap()),
            (key("部門"), TagValue::new("").unwrap()),
        ]),
        transitive: BTreeSet::from([key("team")]),
        source: Some("alice".into()),
        web: Some(WebIdentity {
            provider: "arn".into(),
            provider_id: UniqueId::new("OIDCQ3EGRWOAT7LCK5XUM").unwrap(),
            subject: "s".into(),
            audience: "a".into(),
        }),
        posix: Some(PosixOf::Id(user)),
        chained: true,
        ..small()
    }
}

#[track_caller]
fn invalid(result: Result<(Claims, SecretKey), Unidentified>) {
    match result {
        Err(Unidentified::InvalidToken) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_opens_with_its_access_key() {
    for claims in [small(), full()] {
        let keys = keys(&[FIRST]);
        let issued = keys.seal(&claims, &system_random).unwrap();
        let (opened, secret) = keys.open(issued.access_key.as_str(), issued.token.expose()).unwrap();
        assert_eq!((&opened, secret.expose()), (&claims, issued.secret_key.expose()));
        assert_eq!((secret.expose().len(), issued.access_key.as_str().len()), (40, 20));
        assert!(issued.access_key.as_str().starts_with("ASIA"));
        assert!(issued.token.matches(issued.token.expose()) && !issued.token.matches("x"));
        assert_eq!(issued.packed_percent.is_some(), claims.policy.is_some());
    }
}

/// Tokens that were given out have to open: derivation and form may not change. The token was made
/// with Python's cryptography.
#[test]
fn the_form_stays() {
    let token = include_str!("known-token.txt").trim();
    let (claims, secret) = keys(&[FIRST]).open("ASIAIOSFODNN7EXAMPLE", token).unwrap();
    assert_eq!((claims, secret.expose()), (small(), include_str!("known-secret.txt").trim()));
}

#[test]
fn tokens_and_secrets_differ_from_session_to_session() {
    let keys = keys(&[FIRST]);
    let [one, two] = [0, 1].map(|_| keys.seal(&small(), &system_random).unwrap());
    assert!(one.access_key != two.access_key && one.secret_key.expose() != two.secret_key.expose());
    assert!(!one.token.matches(two.token.expose()));
    invalid(keys.open(two.access_key.as_str(), one.token.expose()));
}

#[test]
fn a_bit_flipped_cut_or_added() {
    let keys = keys(&[FIRST, SECOND]);
    let issued = keys.seal(&full(), &system_random).unwrap();
    let (access_key, token) = (issued.access_key.as_str(), issued.token.expose());
    let bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        invalid(keys.open(access_key, &URL_SAFE_NO_PAD.encode(changed)));
    }
    for length in 0..token.len() {
        invalid(keys.open(access_key, &token[..length]));
    }
    for longer in [format!("{token}A"), format!("{token}AAAA"), format!("A{token}"), format!("{token} ")] {
        invalid(keys.open(access_key, &longer));
    }
}

#[test]
fn another_text_of_the_same_bytes() {
    let keys = keys(&[FIRST]);
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut tried = [false; 4];
    // Names of all lengths, so that tokens end in the middle of a group of letters.
    for length in 1..40 {
        let claims = Claims { name: "n".repeat(length).into(), ..small() };
        let issued = keys.seal(&claims, &system_random).unwrap();
        let (access_key, token) = (issued.access_key.as_str(), issued.token.expose());
        tried[token.len() % 4] = true;
        for padding in ["=", "==", "\n", "%3D"] {
            invalid(keys.open(access_key, &format!("{token}{padding}")));
        }
        let (rest, last) = token.split_at(token.len() - 1);
        for other in alphabet.iter().map(|b| char::from(*b)).filter(|c| !last.contains(*c)) {
            invalid(keys.open(access_key, &format!("{rest}{other}")));
        }
        let standard = token.replace('-', "+").replace('_', "/");
        assert!(standard == token || keys.open(access_key, &standard).is_err());
    }
    // One letter more than a group of four is no base64.
    assert_eq!(tried, [true, false, true, true]);
}

#[test]
fn another_access_key_or_a_lasting_one() {
    let keys = keys(&[FIRST]);
    let issued = keys.seal(&small(), &system_random).unwrap();
    let token = issued.token.expose();
    let lower = issued.access_key.as_str().to_lowercase();
    for access_key in ["", "AKIA5OXHV2LQJ7MBNE3T", "ASIAAAAAAAAAAAAAAAAA", &lower] {
        invalid(keys.open(access_key, token));
    }
    invalid(keys.open(&format!("{}\0", issued.access_key), token));
    invalid(keys.open(issued.access_key.as_str(), ""));
    invalid(keys.open("AKIA5OXHV2LQJ7MBNE3T", "AKIA5OXHV2LQJ7MBNE3T"));
}

#[test]
fn a_key_of_another_tree_or_one_that_was_removed() {
    let (old, both, new) = (keys(&[FIRST]), keys(&[SECOND, FIRST]), keys(&[SECOND]));
    let issued = old.seal(&small(), &system_random).unwrap();
    let (access_key, token) = (issued.access_key.as_str(), issued.token.expose());
    let (_, secret) = both.open(access_key, token).unwrap();
    assert_eq!(secret.expose(), issued.secret_key.expose());
    invalid(new.open(access_key, token));
    // The id of a key is not taken at its word.
    let mut bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
    bytes[1..5].copy_from_slice(new.0[0].id.as_bytes());
    invalid(both.open(access_key, &URL_SAFE_NO_PAD.encode(&bytes)));
    invalid(new.open(access_key, &URL_SAFE_NO_PAD.encode(bytes)));
    let again = both.seal(&small(), &system_random).unwrap();
    assert!(new.open(again.access_key.as_str(), again.token.expose()).is_ok());
    invalid(old.open(again.access_key.as_str(), again.token.expose()));
}

#[test]
fn after_its_end_and_before_its_beginning() {
    let claims = small();
    let second = |second| Timestamp::from_second(second).unwrap();
    assert!(claims.check_time(second(claims.ends - 1)).is_ok());
    assert!(matches!(claims.check_time(second(claims.ends)), Err(Unidentified::Expired)));
    assert!(matches!(claims.check_time(Timestamp::MAX), Err(Unidentified::Expired)));
    assert!(claims.check_time(second(claims.issued - 900)).is_ok());
    let early = claims.check_time(second(claims.issued - 901));
    assert!(matches!(early, Err(Unidentified::InvalidToken)), "{early:?}");
    let backwards = Claims { ends: claims.issued - 1, ..claims.clone() };
    assert!(backwards.check_time(second(claims.issued)).is_err());
    let odd = Claims { issued: i64::MIN, ends: i64::MAX, ..claims.clone() };
    assert!(odd.check_time(Timestamp::MAX).is_ok() && odd.check_time(Timestamp::MIN).is_ok());
}

/// Seals any bytes as a token, as only someone with the key can.
fn sealed(keys: &TokenKeys, access_key: &str, version: u8, inner: &[u8]) -> String {
    let [a, b, c, d] = *keys.0[0].id.as_bytes();
    let front = [version, a, b, c, d];
    let bytes = seal_with(&keys.0[0].tokens, associated(access_key), inner, &front, &system_random).unwrap();
    URL_SAFE_NO_PAD.encode(bytes)
}

#[test]
fn claims_of_another_form() {
    let keys = keys(&[FIRST]);
    let access_key = "ASIAIOSFODNN7EXAMPLE";
    let open = |version, inner: &[u8]| keys.open(access_key, &sealed(&keys, access_key, version, inner));
    let json = serde_json::to_string(&full()).unwrap();
    let of = |json: &str| deflate(json.as_bytes()).unwrap();
    assert_eq!(open(1, &of(&json)).unwrap().0, full());
    invalid(open(0, &of(&json)));
    invalid(open(2, &of(&json)));
    for (from, to) in [
        ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":1,\"v\":1"),
        ("\"v\":1", "\"v\":1,\"z\":1"),
        ("\"k\":\"r\"", "\"k\":\"x\""),
        ("AROAQ3EGRWOAT7LCK5XUM", "AKIAQ3EGRWOAT7LCK5XUM"),
        ("\"team\":\"a\"", "\"team\":\"a\",\"team\":\"b\""),
        ("\"i\":1800000000", "\"i\":\"1800000000\""),
        ("\"i\":1800000000", "\"i\":1800000000.5"),
        ("\"q\":", "\"z\":"),
    ] {
        assert!(json.contains(from), "{from} is not in {json}");
        invalid(open(1, &of(&json.replacen(from, to, 1))));
    }
    invalid(open(1, json.as_bytes()));
    invalid(open(1, &[]));
    invalid(open(1, &of(&format!("{json}x"))));
    // Something behind what was compressed, or not all of it.
    invalid(open(1, &[of(&json), vec![0]].concat()));
    invalid(open(1, &of(&json)[..of(&json).len() - 1]));
}

#[test]
fn a_text_that_inflates_to_more_than_claims_have() {
    let keys = keys(&[FIRST]);
    let access_key = "ASIAIOSFODNN7EXAMPLE";
    let json = serde_json::to_string(&small()).unwrap();
    let spaces =
        |length: usize| deflate(format!("{json}{}", " ".repeat(length - json.len())).as_bytes()).unwrap();
    let open = |length| keys.open(access_key, &sealed(&keys, access_key, 1, &spaces(length)));
    assert!(open(CLAIMS_BYTES_MAX).is_ok());
    invalid(open(CLAIMS_BYTES_MAX + 1));
    // 1.5 MiB in a token of the permitted length.
    invalid(open(3 << 19));
}

#[test]
fn policies_and_tags_have_a_limit() {
    let keys = keys(&[FIRST]);
    let mut noise = vec![0; 3_000];
    system_random(&mut noise).unwrap();
    let noise = STANDARD.encode(noise);
    let with = |length: usize| Claims { policy: Some(Document::new(&noise[..length]).unwrap()), ..small() };
    let issued = keys.seal(&with(2_048), &system_random).unwrap();
    assert!((50..=100).contains(&issued.packed_percent.unwrap()), "{:?}", issued.packed_percent);
    let large = keys.seal(&with(4_000), &system_random).unwrap_err();
    assert!(matches!(large, SealError::PackedPolicyTooLarge(101..)), "{large}");
    // Whatever is not counted there may be large, too.
    let name = Claims { name: noise[..4_000].into(), ..small() };
    assert_eq!(keys.seal(&name, &system_random).unwrap_err(), SealError::TooLarge);
    let spaces = Claims { name: " ".repeat(20_000).into(), ..small() };
    assert_eq!(keys.seal(&spaces, &system_random).unwrap_err(), SealError::TooLarge);
    let none = |_: &mut [u8]| Err(NoRandomNumbers);
    assert_eq!(keys.seal(&small(), &none).unwrap_err(), SealError::NoRandomNumbers);
}

#[test]
fn nothing_secret_is_printed() {
    let keys = keys(&[FIRST]);
    let issued = keys.seal(&full(), &system_random).unwrap();
    let printed = format!("{keys:?} {issued:?}");
    let token = issued.token.expose();
    assert!(!printed.contains(issued.secret_key.expose()) && !printed.contains(&token[..8]), "{printed}");
}
