//! Accounts, and master keys.

use super::*;

#[tokio::test]
async fn accounts_are_made_disabled_and_deleted() {
    let [one, other] = gateways().await;
    let account = one.registry.create_account("second").await.unwrap();
    let state = other.registry.look().await.unwrap();
    assert_eq!(&*state.account(&account).unwrap().document().name, "second");
    let new = NewKey { owner: KeyOwner::Root, expires: None, policy: None, description: None };
    let change = |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&new, cx);
    let key = other.registry.change(&account, &change).await.unwrap();
    assert_eq!(kind(&one.ask(&key, None).await), "session");

    let error = one.registry.delete_account(&account).await.unwrap_err();
    assert_eq!(error.message, "Cannot delete entity, must disable the account first.");
    one.registry.update_account(&account, None, Some(true)).await.unwrap();
    assert_eq!(kind(&one.ask(&key, None).await), "inactive");
    one.registry.update_account(&account, None, Some(false)).await.unwrap();
    assert_eq!(kind(&one.ask(&key, None).await), "session");
    one.registry.update_account(&account, None, Some(true)).await.unwrap();
    one.registry.delete_account(&account).await.unwrap();
    assert_eq!(one.registry.delete_account(&account).await.unwrap_err().code, IamCode::NoSuchEntity);
    other.clock.step(Duration::from_millis(1_001));
    assert_eq!(kind(&other.ask(&key, None).await), "unknown");

    let first = one.registry.delete_account(&id(ACCOUNT)).await.unwrap_err();
    assert_eq!(first.code, IamCode::DeleteConflict);
    assert_eq!(one.registry.create_account("").await.unwrap_err().code, IamCode::InvalidInput);
}

#[tokio::test]
async fn an_alias_is_one_accounts() {
    let [one, other] = gateways().await;
    let account = one.registry.create_account("second").await.unwrap();
    let lab = Alias::new("lab").unwrap();
    one.registry.set_alias(&account, &lab).await.unwrap();
    one.registry.set_alias(&account, &lab).await.unwrap();
    let error = other.registry.set_alias(&id(ACCOUNT), &lab).await.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (IamCode::EntityAlreadyExists, "The account alias lab already exists.")
    );
}

#[tokio::test]
async fn an_account_is_made_with_the_key_of_its_root() {
    let [one, other] = gateways().await;
    let new = NewKey { owner: KeyOwner::Root, expires: None, policy: None, description: None };
    let change = |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&new, cx);
    let (account, key) = one.registry.create_account_with("second", &change).await.unwrap();
    assert_eq!(kind(&other.ask(&key, None).await), "session");

    let taken = other.registry.create_account("SECOND").await.unwrap_err();
    assert_eq!(
        (taken.code, &*taken.message),
        (IamCode::EntityAlreadyExists, "Account with name SECOND already exists.")
    );
    let third = other.registry.create_account("third").await.unwrap();
    let taken = one.registry.update_account(&third, Some("Second"), None).await.unwrap_err();
    assert_eq!(taken.code, IamCode::EntityAlreadyExists);
    one.registry.update_account(&account, Some("Second"), None).await.unwrap();
    one.registry.update_account(&third, Some("other"), None).await.unwrap();
    let state = other.registry.look().await.unwrap();
    assert_eq!(&*state.account(&third).unwrap().document().name, "other");

    // Without a master key there is no key, and so no account.
    let (documents, clock) = (MemoryDocuments::default(), Arc::default());
    let keyless = gateway_with(&documents, &clock, &[]).await;
    let refused = keyless.registry.create_account_with("lab", &change).await.unwrap_err();
    assert_eq!(refused.code, IamCode::NotImplemented);
    assert!(documents.list().await.unwrap().is_empty());
}

/// Only what is needed is there: a tree without users has no document.
#[tokio::test]
async fn nothing_is_written_before_there_is_something() {
    let (documents, clock) = (MemoryDocuments::default(), Arc::default());
    let gateway = gateway_with(&documents, &clock, &[]).await;
    assert!(documents.list().await.unwrap().is_empty());
    let state = gateway.registry.look().await.unwrap();
    assert_eq!(state.account(&id(ACCOUNT)).unwrap().document().revision, 0);
    // Without a master key there are users, and no keys.
    let change =
        |document: &mut AccountDocument, cx: &Context<'_>| document.create_user(&new_user("alice"), cx);
    gateway.registry.change(&id(ACCOUNT), &change).await.unwrap();
    let new = NewKey { owner: KeyOwner::User(name("alice")), expires: None, policy: None, description: None };
    let change = |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&new, cx);
    let error = gateway.registry.change(&id(ACCOUNT), &change).await.unwrap_err();
    assert_eq!(error.code, IamCode::NotImplemented);
    let claims = Claims::new(SessionKind::User, id(ACCOUNT), Who::Root(id(ACCOUNT)), "root", 0, 1);
    assert_eq!(gateway.registry.issue(&claims).unwrap_err().code, IamCode::NotImplemented);
    let names: Vec<_> = documents.list().await.unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [DocumentName::of_account(&id(ACCOUNT)), DocumentName::of_accounts()]);
}

async fn remove(documents: &MemoryDocuments, name: &DocumentName) -> Bytes {
    let (json, tag) = documents.read(name).await.unwrap().unwrap();
    documents.replace(name, Some(&tag), None).await.unwrap();
    json
}

/// Users are not taken for unknown because somebody removed the document that has them.
#[tokio::test]
async fn a_document_that_was_removed_closes_its_account() {
    let [one, other] = gateways().await;
    let key = one.user("alice").await;
    let lab = one.registry.create_account("lab").await.unwrap();
    let documents = &one.store.inner;
    let name = DocumentName::of_account(&id(ACCOUNT));
    let json = remove(documents, &name).await;
    // A gateway that starts later knows it as well.
    let late = gateway_with(documents, &one.clock, &[FIRST]).await;
    for gateway in [&one, &other, &late] {
        let state = gateway.registry.look().await.unwrap();
        assert!(state.account(&lab).is_some() && state.account(&id(ACCOUNT)).is_none());
        let closed: Vec<_> = state.closed().map(ToString::to_string).collect();
        assert!(closed[0].contains("the document was removed"), "{closed:?}");
        assert_eq!(state.troubles().len(), 1);
        assert_eq!(kind(&gateway.ask(&key, None).await), "unavailable");
        let create =
            |document: &mut AccountDocument, cx: &Context<'_>| document.create_user(&new_user("bob"), cx);
        let refused = gateway.registry.change(&id(ACCOUNT), &create).await.unwrap_err();
        assert_eq!(refused.code, IamCode::ServiceUnavailable);
        // The look after this one has nothing to do.
        let before = gateway.store.counts()[1];
        gateway.registry.look().await.unwrap();
        assert_eq!(gateway.store.counts()[1], before);
    }
    documents.replace(&name, None, Some(json)).await.unwrap();
    for gateway in [&one, &other, &late] {
        gateway.registry.look().await.unwrap();
        assert_eq!(kind(&gateway.ask(&key, None).await), "session");
    }
}

/// An account that is deleted is not missed, nor is a list that an older version did not write.
#[tokio::test]
async fn deleted_accounts_are_not_missed() {
    let [one, other] = gateways().await;
    one.user("alice").await;
    let lab = one.registry.create_account("lab").await.unwrap();
    one.registry.update_account(&lab, None, Some(true)).await.unwrap();
    one.registry.delete_account(&lab).await.unwrap();
    for gateway in [&one, &other] {
        let state = gateway.registry.look().await.unwrap();
        assert_eq!((state.closed().count(), state.troubles().len()), (0, 0));
    }
    let documents = &one.store.inner;
    let list = remove(documents, &DocumentName::of_accounts()).await;
    assert_eq!(one.registry.look().await.unwrap().closed().count(), 0);
    gateway_with(documents, &one.clock, &[FIRST]).await;
    let (again, tag) = documents.read(&DocumentName::of_accounts()).await.unwrap().unwrap();
    assert_eq!(again, list, "a start completes the list");
    // One that cannot be read closes no account.
    documents.replace(&DocumentName::of_accounts(), Some(&tag), Some(Bytes::from("{"))).await.unwrap();
    let state = one.registry.look().await.unwrap();
    assert_eq!((state.closed().count(), state.troubles().len()), (0, 1));
}

/// With another id, the account of the directory is empty, and its users are those of another.
#[tokio::test]
async fn users_of_an_account_with_another_id_are_found() {
    let [one] = gateways().await;
    let documents = &one.store.inner;
    let others = async |of: &str| {
        let principal = Principal::root(Arc::new(Account::new(id(of))), None);
        let root = RootIdentity::new(principal, nobodys());
        let (store, clock) = (Watched::new(documents), Arc::clone(&one.clock));
        let registry = Registry::open(store, master_keys(&[FIRST]), &root, clock).await.unwrap();
        registry.accounts_of_other_directories().await
    };
    // An account that was made is no directory's.
    let lab = one.registry.create_account("lab").await.unwrap();
    assert_eq!(others("999999999999").await, []);
    one.user("alice").await;
    assert_eq!(others(ACCOUNT).await, []);
    assert_eq!(others("999999999999").await, [id(ACCOUNT)]);
    // Also if it has got a name, or its document is gone.
    one.registry.update_account(&id(ACCOUNT), Some("mine"), None).await.unwrap();
    assert_eq!(others("999999999999").await, [id(ACCOUNT)]);
    remove(documents, &DocumentName::of_account(&id(ACCOUNT))).await;
    assert_eq!(others("999999999999").await, [id(ACCOUNT)]);
    assert_eq!(others(lab.as_str()).await, []);
}

#[tokio::test]
async fn master_keys_are_rotated() {
    let [one, other] = gateways().await;
    let key = one.user("alice").await;
    let refused = one.registry.set_master_keys(master_keys(&[SECOND])).await.unwrap_err();
    assert!(matches!(refused, OpenError::OtherMasterKeys { .. }), "{refused}");
    assert!(one.registry.set_master_keys(None).await.is_err());
    assert_eq!(kind(&one.ask(&key, None).await), "session");
    for gateway in [&one, &other] {
        gateway.registry.set_master_keys(master_keys(&[SECOND, FIRST])).await.unwrap();
    }
    let reseal = |document: &mut AccountDocument, cx: &Context<'_>| document.reseal(cx);
    assert_eq!(one.registry.change(&id(ACCOUNT), &reseal).await, Ok(1));
    for gateway in [&one, &other] {
        gateway.registry.set_master_keys(master_keys(&[SECOND])).await.unwrap();
        assert_eq!(kind(&gateway.ask(&key, None).await), "session");
    }
    // A gateway that comes later with the old one alone is told by its secrets.
    let late = gateway_with(&one.store.inner, &one.clock, &[FIRST]).await;
    assert_eq!(kind(&late.ask(&key, None).await), "unavailable");
}

#[tokio::test]
async fn the_key_of_the_server_is_changed() {
    let [gateway] = gateways().await;
    let other = nobodys();
    let principal = Principal::root(Arc::new(Account::new(id(ACCOUNT))), None);
    gateway.registry.set_root(&RootIdentity::new(principal, other.clone()));
    gateway.registry.look().await.unwrap();
    assert_eq!(kind(&gateway.known(&other).unwrap()), "session");
    assert_eq!(kind(&gateway.registry.find(ROOT_KEY, None).await), "unknown");
}

/// Whether it is made or renamed, and however the names are spelled.
#[tokio::test]
async fn two_gateways_do_not_give_one_name_to_two_accounts() {
    let [one, other] = gateways().await;
    for round in 0..20 {
        let (name, same) = (format!("lab-{round}"), format!("LAB-{round}"));
        let made = tokio::join!(one.registry.create_account(&name), other.registry.create_account(&same));
        let refused = match made {
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => error,
            both => panic!("{both:?}"),
        };
        assert_eq!(refused.code, IamCode::EntityAlreadyExists);
        let [first, second] = [one.registry.create_account("first"), other.registry.create_account("second")];
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        let name = format!("new-{round}");
        let renamed = tokio::join!(
            one.registry.update_account(&first, Some(&name), None),
            other.registry.update_account(&second, Some(&name), None)
        );
        assert!(renamed.0.is_ok() != renamed.1.is_ok(), "{renamed:?}");
        for id in [first, second] {
            one.registry.update_account(&id, None, Some(true)).await.unwrap();
            one.registry.delete_account(&id).await.unwrap();
        }
    }
    let state = one.registry.look().await.unwrap();
    let names: std::collections::BTreeSet<_> =
        state.accounts().map(|account| account.document().name.to_ascii_lowercase()).collect();
    assert_eq!(names.len(), state.accounts_count());
}

/// A gateway that ended after it had claimed a name, and before it wrote the account.
#[tokio::test]
async fn a_claim_without_an_account_counts_for_a_minute() {
    let [one, other] = gateways().await;
    let gone = id("999999999999");
    one.registry.claim_name("lab", &gone).await.unwrap();
    let refused = other.registry.create_account("Lab").await.unwrap_err();
    assert_eq!(refused.code, IamCode::EntityAlreadyExists);
    one.clock.step(Duration::from_secs(61));
    let made = other.registry.create_account("Lab").await.unwrap();
    // It comes to itself again, and finds that it has lost the claim.
    assert!(!one.registry.has_claim("lab", &gone).await.unwrap());
    assert!(other.registry.has_claim("lab", &made).await.unwrap());
    one.clock.step(Duration::from_hours(1));
    // That of an account that is there counts for as long as it is there.
    assert_eq!(one.registry.create_account("LAB").await.unwrap_err().code, IamCode::EntityAlreadyExists);
    other.registry.update_account(&made, Some("physics"), None).await.unwrap();
    one.registry.create_account("lab").await.unwrap();
    other.registry.update_account(&made, None, Some(true)).await.unwrap();
    other.registry.delete_account(&made).await.unwrap();
    one.registry.create_account("physics").await.unwrap();
}

#[tokio::test]
async fn names_that_cannot_be_read_are_given_to_nobody() {
    let [one, _] = gateways().await;
    let name = DocumentName::of_names();
    for json in ["", "{}", r#"{"format":2,"names":{}}"#, r#"{"format":1,"names":{"a":1}}"#] {
        let (_, tag) = one.store.read(&name).await.unwrap().unzip();
        one.store.replace(&name, tag.as_ref(), Some(Bytes::from(json))).await.unwrap();
        let refused = one.registry.create_account("lab").await.unwrap_err();
        assert_eq!(refused.code, IamCode::ServiceUnavailable, "{json}");
    }
    let (_, tag) = one.store.read(&name).await.unwrap().unzip();
    one.store.replace(&name, tag.as_ref(), None).await.unwrap();
    one.registry.create_account("lab").await.unwrap();
}
