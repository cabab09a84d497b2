//! Keys, policies and documents that cannot be read.

use super::*;

#[test]
fn a_users_key_has_what_the_user_has() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let state = state(&[&document]);
    let session = session(&state, &key);
    assert_eq!(session.credential.secret_key.expose(), key.secret_key.expose());
    assert_eq!((session.key_kind, session.expires), (KeyKind::User, None));
    let principal = &session.principal;
    assert_eq!((&*principal.name, &*principal.arn), ("alice", "arn:aws:iam::123456789012:user/staff/alice"));
    assert_eq!(principal.unique_id.as_deref(), Some(document.users[&name("alice")].id.as_str()));
    assert_eq!(uid_of(principal.unix.as_ref()), Some(1_000));
    // Its own, the group's own, the group's attached one.
    let permissions = &session.permissions;
    assert_eq!(permissions.identity.len(), 3);
    let managed = "arn:aws:iam::123456789012:policy/p";
    let names: Vec<_> = permissions.names.identity.iter().map(|name| &**name).collect();
    assert_eq!(names, ["inline:user/alice/own", "inline:group/dev/of-dev", managed]);
    assert_eq!(permissions.names.boundary.as_deref(), Some(managed));
    assert!(permissions.boundary.is_some() && permissions.session.is_none());
    assert_eq!(*session.tags, [("Site".into(), "x".into()), ("Team".into(), "a".into())]);
    assert!(state.troubles().is_empty(), "{:?}", state.troubles());
    assert!(state.by_access_key("AKIAIOSFODNN7EXAMPLE").is_none());
    assert!(matches!(state.unknown_key(), Unidentified::UnknownKey));
    let (account, identity) = state.by_unique_id(&document.users[&name("alice")].id).unwrap();
    assert_eq!((account.account().id().as_str(), identity.name.as_str()), (ACCOUNT, "alice"));
    let (_, role) = state.by_unique_id(&document.roles[&name("reader")].id).unwrap();
    assert!(role.trust.is_some() && !role.disabled);
}

#[test]
fn policies_and_keys_share() {
    let (mut one, mut other) = (full(ACCOUNT), full(OTHER));
    let keys = [user_key(&mut one, "alice"), user_key(&mut one, "alice"), user_key(&mut other, "alice")];
    let state = state(&[&one, &other]);
    let [first, second, third] = keys.map(|key| session(&state, &key));
    let permissions = |session: &Session| session.permissions.clone();
    assert!(Arc::ptr_eq(&permissions(&first).identity, &permissions(&second).identity));
    // Equal texts are one policy, in all accounts, and whatever they are used for.
    for (mine, theirs) in permissions(&first).identity.iter().zip(&*permissions(&third).identity) {
        assert!(Arc::ptr_eq(mine, theirs));
    }
    let boundary = permissions(&first).boundary.unwrap();
    assert!(Arc::ptr_eq(&boundary, &permissions(&first).identity[2]));
}

#[test]
fn keys_that_are_switched_off() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let owner = KeyOwner::User(name("alice"));
    let inactive = |change: &dyn Fn(&mut AccountDocument) -> Result<(), IamError>| {
        let mut changed = document.clone();
        with(&mut changed, |document, _| change(document));
        let state = state(&[&changed]);
        let found = state.by_access_key(key.access_key.as_str());
        assert!(matches!(found, Some(Err(Unidentified::Inactive))), "{found:?}");
    };
    inactive(&|document| {
        document.update_access_key(&owner, &key.access_key, KeyStatus::Inactive, Timestamp::UNIX_EPOCH)
    });
    inactive(&|document| document.set_user_disabled(&name("alice"), true));
    inactive(&|document| {
        document.set_disabled(true);
        Ok(())
    });
    inactive(&|document| {
        document.users.get_mut(&name("alice")).unwrap().keys[0].secret = None;
        Ok(())
    });
    let mut gone = document.clone();
    with(&mut gone, |document, _| document.delete_access_key(&owner, &key.access_key));
    assert!(state(&[&gone]).by_access_key(key.access_key.as_str()).is_none());
}

#[test]
fn keys_of_services_and_of_root() {
    let mut document = full(OTHER);
    let service = key_of(&mut document, KeyOwner::User(name("alice")), Some(allows("s3:GetObject")));
    let of_root = key_of(&mut document, KeyOwner::Root, None);
    let state = state(&[&document]);
    let service = session(&state, &service);
    assert_eq!(service.key_kind, KeyKind::Service);
    assert_eq!(service.permissions.session.as_ref().map(|policies| policies.len()), Some(1));
    let of_root = session(&state, &of_root);
    // Not of the kind of the server's own key, to which everything is allowed.
    assert_eq!(of_root.key_kind, KeyKind::User);
    assert_eq!(&*of_root.principal.arn, "arn:aws:iam::210987654321:root");
    // The first account is there also without a document.
    assert!(state.account(&id(ACCOUNT)).unwrap().tag().is_none());
    assert_eq!(state.accounts().count(), 2);
}

#[test]
fn secrets_without_their_master_key() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    for keys in [keys(&[SECOND]), keys(&[])] {
        let state = state_with(&[&document], &keys, &mut Compiler::new());
        let found = state.by_access_key(key.access_key.as_str());
        assert!(matches!(found, Some(Err(Unidentified::Unavailable(_)))), "{found:?}");
        let trouble = state.troubles()[0].to_string();
        let place =
            format!("account-123456789012: users.alice.keys.{}: the key cannot be used", key.access_key);
        assert!(trouble.starts_with(&place), "{trouble}");
    }
    // A secret that was copied to another user does not open.
    with(&mut document, |document, cx| document.create_user(&new_user("eve"), cx));
    let mut stolen = document.users.get_mut(&name("alice")).unwrap().keys.remove(0);
    stolen.id = AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").unwrap();
    document.users.get_mut(&name("eve")).unwrap().keys.push(stolen);
    let found = state(&[&document]).by_access_key("AKIAIOSFODNN7EXAMPLE");
    assert!(matches!(found, Some(Err(Unidentified::Unavailable(_)))), "{found:?}");
}

#[test]
fn a_key_of_two_accounts_is_refused_for_both() {
    let (mut one, mut other) = (full(ACCOUNT), full(OTHER));
    let key = user_key(&mut one, "alice");
    let kept = user_key(&mut other, "alice");
    let copied = one.users[&name("alice")].keys[0].clone();
    other.users.get_mut(&name("alice")).unwrap().keys.push(copied);
    for documents in [[&one, &other], [&other, &one]] {
        let state = state(&documents);
        let found = state.by_access_key(key.access_key.as_str());
        assert!(matches!(found, Some(Err(Unidentified::UnknownKey))), "{found:?}");
        session(&state, &kept);
        assert!(state.troubles().iter().any(|trouble| trouble.why.contains("both are refused")));
    }
}

#[test]
fn a_document_that_cannot_be_read_closes_its_account() {
    let (mut one, mut other) = (full(ACCOUNT), full(OTHER));
    let keys_of = [user_key(&mut one, "alice"), user_key(&mut other, "alice")];
    let (keys, mut compiler) = (keys(&[FIRST]), Compiler::new());
    let json = |document: &AccountDocument| String::from_utf8(document.to_json().unwrap()).unwrap();
    for (broken, why) in [
        (json(&other).replace("\"format\":1", "\"format\":7"), "the format 7"),
        (json(&other).replace("\"groups\":[\"dev\"]", "\"groups\":[\"ops\"]"), "a group does not exist"),
        (json(&other)[..100].to_owned(), "line 1"),
        (json(&one), "the document is that of another account"),
    ] {
        let entries = [(id(ACCOUNT), json(&one)), (id(OTHER), broken)].map(|(account, json)| {
            let tag = Tag::of_bytes(json.as_bytes());
            let entry = Entry::read(&account, json.as_bytes(), tag.clone(), &keys, &mut compiler);
            assert!(entry.is_of(&tag, &keys) && !entry.is_of(&Tag::new("other"), &keys));
            (account, entry)
        });
        let state = Snapshot::new(1, &root(), entries, &keys, &mut compiler);
        session(&state, &keys_of[0]);
        assert!(state.by_access_key(keys_of[1].access_key.as_str()).is_none());
        assert!(state.account(&id(OTHER)).is_none());
        let unknown = state.unknown_key().to_string();
        assert!(unknown.contains("the account 210987654321 is closed") && unknown.contains(why), "{unknown}");
        assert!(state.troubles()[0].to_string().starts_with("account-210987654321: "));
    }
}

#[test]
fn a_policy_that_cannot_be_read_denies_everything() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let broken = Document::new("{}").unwrap();
    document.groups.get_mut(&name("dev")).unwrap().inline.insert(name("of-dev"), broken.clone());
    document.roles.get_mut(&name("reader")).unwrap().trust = broken;
    let state = state(&[&document]);
    let session = session(&state, &key);
    let denies = |policy: &policy::Policy| policy.statements[0].effect == policy::Effect::Deny;
    assert!(session.permissions.identity.iter().any(|policy| denies(policy)));
    let (_, role) = state.by_unique_id(&document.roles[&name("reader")].id).unwrap();
    assert!(role.trust.is_none());
    let troubles: Vec<_> = state.troubles().iter().map(|trouble| trouble.place.as_str()).collect();
    assert_eq!(troubles, ["groups.dev.inline.of-dev", "roles.reader.trust"]);
}

#[test]
fn nothing_secret_is_printed() {
    let mut document = full(ACCOUNT);
    let key = user_key(&mut document, "alice");
    let printed = format!("{:?}", state(&[&document]));
    assert!(!printed.contains(key.secret_key.expose()) && !printed.contains("a-secret-of-mine"));
}
