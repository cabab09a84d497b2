use super::*;

/// Bytes that count up, in base64, and others.
const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

fn account() -> AccountId {
    AccountId::new("123456789012").unwrap()
}

fn access_key() -> AccessKeyId {
    AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").unwrap()
}

fn secret() -> SecretKey {
    SecretKey::new("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY").unwrap()
}

fn keys(lines: &[&str]) -> MasterKeys {
    MasterKeys::read(&lines.join("\n")).unwrap()
}

#[test]
fn a_secret_opens_for_whom_it_was_sealed() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "AIDAAAAAAAAAAAAAAAAAA", access_key: &access_key };
    let keys = keys(&[FIRST]);
    let sealed = keys.seal(&secret(), of, &system_random).unwrap();
    assert_eq!(keys.open(&sealed, of).unwrap().expose(), secret().expose());
    let again = Sealed::new(&sealed.to_string()).unwrap();
    assert_eq!(again, sealed);
    assert_ne!(keys.seal(&secret(), of, &system_random).unwrap(), sealed, "the nonce is random");

    let (other_account, other_key) =
        (AccountId::new("123456789013").unwrap(), AccessKeyId::new("AKIAIOSFODNN7EXAMPLF").unwrap());
    for other in [
        SealedFor { account: &other_account, ..of },
        SealedFor { owner: "AIDAAAAAAAAAAAAAAAAAB", ..of },
        SealedFor { owner: "root", ..of },
        SealedFor { access_key: &other_key, ..of },
    ] {
        assert_eq!(keys.open(&sealed, other).unwrap_err(), SealedShut::Broken);
    }
}

/// A secret that was sealed once has to open always: names of keys, derivation and form may not
/// change. The text is what another implementation (Python's cryptography) makes of the same.
#[test]
fn the_form_stays() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "AIDAAAAAAAAAAAAAAAAAA", access_key: &access_key };
    let zeros = |bytes: &mut [u8]| {
        bytes.fill(0);
        Ok(())
    };
    let sealed = keys(&[FIRST]).seal(&secret(), of, &zeros).unwrap().to_string();
    assert_eq!(
        sealed,
        "v1.7eb62963.AAAAAAAAAAAAAAAAoPKIlMoxCXqG5Wa/IV7EF9pPCdG9B7d9RLT3T9h+ZwEyGMYjRZHqdeKbc6J381z7Zf4BEyARFiQ="
    );
}

#[test]
fn a_change_of_any_bit_is_noticed() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "root", access_key: &access_key };
    let keys = keys(&[FIRST]);
    let sealed = keys.seal(&secret(), of, &system_random).unwrap();
    for bit in 0..sealed.bytes.len() * 8 {
        let mut changed = sealed.clone();
        changed.bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(keys.open(&changed, of).unwrap_err(), SealedShut::Broken, "bit {bit}");
    }
    let cut = Sealed { bytes: sealed.bytes[..sealed.bytes.len() - 1].into(), ..sealed.clone() };
    assert_eq!(keys.open(&cut, of).unwrap_err(), SealedShut::Broken);
}

#[test]
fn the_first_key_seals_and_all_open() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "root", access_key: &access_key };
    let (old, both, new) = (keys(&[FIRST]), keys(&[SECOND, FIRST]), keys(&[SECOND]));
    let sealed = old.seal(&secret(), of, &system_random).unwrap();
    assert!(old.is_newest(&sealed) && !both.is_newest(&sealed));
    assert_eq!(both.open(&sealed, of).unwrap().expose(), secret().expose());
    let Err(SealedShut::OtherKey(id)) = new.open(&sealed, of) else { panic!("the key is not there") };
    assert_eq!(Some(id), old.ids().next());
    let again = both.seal(&secret(), of, &system_random).unwrap();
    assert_eq!(new.open(&again, of).unwrap().expose(), secret().expose());
    assert_eq!(both.ids().collect::<Vec<_>>(), [new.ids().next().unwrap(), old.ids().next().unwrap()]);
}

#[test]
fn each_wrong_state_of_a_master_key_has_its_sentence() {
    let of_31_bytes = STANDARD.encode([7; 31]);
    let weak = STANDARD.encode([7; 32]);
    let many = (0..=MASTER_KEYS_MAX).map(|_| MasterKeys::new_line().unwrap().to_string());
    let long = "#".repeat(TEXT_BYTES_MAX + 1);
    for (text, error, sentence) in [
        (String::new(), MasterKeyError::None, "there is no master key in it"),
        ("\n# none\n \n".to_owned(), MasterKeyError::None, "there is no master key in it"),
        (of_31_bytes, MasterKeyError::Line(1), "line 1 is not a master key"),
        (format!("# one\n{FIRST}\n{FIRST}="), MasterKeyError::Line(3), "line 3 is not a master key"),
        // Another base64 of the same bytes: unused bits that are set.
        (FIRST.replace("h8=", "h9="), MasterKeyError::Line(1), "line 1 is not a master key"),
        (FIRST.replace('=', ""), MasterKeyError::Line(1), "line 1 is not a master key"),
        (weak, MasterKeyError::Weak(1), "not a random key"),
        (format!("{FIRST}\r\n\n{FIRST}"), MasterKeyError::Twice(3), "line 3 repeats"),
        (many.collect::<Vec<_>>().join("\n"), MasterKeyError::TooMany, "more than 16"),
        (long, MasterKeyError::TooLong, "longer than 65536 bytes"),
    ] {
        let found = MasterKeys::read(&text).unwrap_err();
        assert_eq!(found, error, "{text}");
        assert!(found.to_string().contains(sentence), "{found}");
    }
    assert_eq!(MasterKeys::read(&MasterKeys::new_line().unwrap()).unwrap().ids().count(), 1);
}

#[test]
fn other_texts_are_not_sealed_secrets() {
    let bytes = STANDARD.encode([1; 68]);
    assert!(Sealed::new(&format!("v1.0123abcd.{bytes}")).is_ok());
    for bad in [
        String::new(),
        bytes.clone(),
        format!("v2.0123abcd.{bytes}"),
        format!("v1.0123ABCD.{bytes}"),
        format!("v1.+123abcd.{bytes}"),
        format!("v1.0123abc.{bytes}"),
        format!("v1.0123abcd.{bytes}."),
        format!("v1.0123abcd.{bytes} "),
        format!("v1.0123abcd.{}", bytes.replace('=', "")),
        format!("v1.0123abcd.{}", STANDARD.encode([1; NONCE_LEN + TAG_BYTES])),
        format!("v1.0123abcd.{}", STANDARD.encode([1; 300])),
    ] {
        assert_eq!(Sealed::new(&bad), Err(InvalidSealed), "{bad}");
    }
}

#[test]
fn nothing_secret_is_printed() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "root", access_key: &access_key };
    let keys = keys(&[FIRST, SECOND]);
    let sealed = keys.seal(&secret(), of, &system_random).unwrap();
    let printed = format!("{keys:?} {sealed:?}");
    let ids: Vec<_> = keys.ids().map(|id| id.to_string()).collect();
    assert_eq!(printed, format!("MasterKeys[{:?}, {:?}] Sealed(v1.{}.…)", ids[0], ids[1], ids[0]));
    let error = MasterKeys::read(&format!("{FIRST}x")).unwrap_err();
    assert!(!format!("{error:?} {error}").contains(&FIRST[..8]));
}

#[test]
fn without_random_numbers_nothing_is_sealed() {
    let (account, access_key) = (account(), access_key());
    let of = SealedFor { account: &account, owner: "root", access_key: &access_key };
    let none = |_: &mut [u8]| Err(NoRandomNumbers);
    assert_eq!(keys(&[FIRST]).seal(&secret(), of, &none), Err(NoRandomNumbers));
}
