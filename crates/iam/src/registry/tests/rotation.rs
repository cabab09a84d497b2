//! One master key is changed for another.

use super::*;

async fn list(documents: &MemoryDocuments) -> String {
    let (json, _) = documents.read(&DocumentName::of_keys()).await.unwrap().unwrap();
    String::from_utf8(json.to_vec()).unwrap()
}

#[tokio::test]
async fn all_secrets_are_sealed_anew() {
    let (documents, clock) = (MemoryDocuments::default(), Arc::default());
    let old = gateway_with(&documents, &clock, &[FIRST]).await;
    let account = old.registry.create_account("lab").await.unwrap();
    let alice = old.user("alice").await;
    let of_root = NewKey { owner: KeyOwner::Root, expires: None, policy: None, description: None };
    let make = |document: &mut AccountDocument, cx: &Context<'_>| document.create_access_key(&of_root, cx);
    let root = old.registry.change(&account, &make).await.unwrap();
    // None has the second key yet.
    let store = Arc::new(documents.clone());
    let beside = Registry::unread(store, master_keys(&[SECOND, FIRST]), &super::root(), clock.clone());
    let would = beside.rotation().await.unwrap();
    assert_eq!((would.secrets, would.is_in_use), (2, false));
    let both = gateway_with(&documents, &clock, &[SECOND, FIRST]).await;
    assert!(beside.rotation().await.unwrap().is_in_use);
    assert_eq!(both.registry.reseal().await.unwrap(), 2);
    assert_eq!(beside.rotation().await.unwrap().secrets, 0);
    assert_eq!(both.registry.reseal().await.unwrap(), 0);
    let ids = master_keys(&[FIRST, SECOND]).unwrap();
    let [first, second] = ids.ids().map(|id| id.to_string()).collect::<Vec<_>>().try_into().unwrap();
    let listed = list(&documents).await;
    assert!(listed.contains(&second) && !listed.contains(&first), "{listed}");
    // The new one alone is enough, and the old one is not.
    let new = gateway_with(&documents, &clock, &[SECOND]).await;
    for key in [&alice, &root] {
        assert_eq!(kind(&new.ask(key, None).await), "session");
        assert_eq!(kind(&both.ask(key, None).await), "session");
    }
    let store = Arc::new(documents.clone());
    let refused = Registry::open(store, master_keys(&[FIRST]), &super::root(), clock.clone()).await;
    assert!(matches!(refused.unwrap_err(), OpenError::OtherMasterKeys { .. }));
}

#[tokio::test]
async fn secrets_of_a_lost_key_are_forgotten() {
    let (documents, clock) = (MemoryDocuments::default(), Arc::<Hand>::default());
    let old = gateway_with(&documents, &clock, &[FIRST]).await;
    let alice = old.user("alice").await;
    let store = Arc::new(documents.clone());
    let new = Registry::unread(store, master_keys(&[SECOND]), &root(), clock.clone());
    assert_eq!(new.forget_secrets().await.unwrap(), 1);
    assert_eq!(new.forget_secrets().await.unwrap(), 0);
    let after = gateway_with(&documents, &clock, &[SECOND]).await;
    assert_eq!(kind(&after.ask(&alice, None).await), "inactive");
    let bob = after.user("bob").await;
    assert_eq!(kind(&after.ask(&bob, None).await), "session");
}

/// An account that cannot be read may have secrets of any key.
#[tokio::test]
async fn nothing_is_changed_while_an_account_is_closed() {
    let (documents, clock) = (MemoryDocuments::default(), Arc::default());
    let both = gateway_with(&documents, &clock, &[SECOND, FIRST]).await;
    let closed = DocumentName::of_account(&id("999999999999"));
    documents.replace(&closed, None, Some(Bytes::from_static(b"{}"))).await.unwrap();
    assert_eq!(both.registry.reseal().await.unwrap_err().code, IamCode::ServiceUnavailable);
    let none = gateway_with(&MemoryDocuments::default(), &clock, &[]).await;
    assert_eq!(none.registry.reseal().await.unwrap_err().code, IamCode::NotImplemented);
}
