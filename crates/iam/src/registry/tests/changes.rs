//! Changes, and others that are faster.

use super::*;

/// Counts up in the name of the account.
async fn count_up(registry: &Registry) -> Result<(), IamError> {
    let change = |document: &mut AccountDocument, _: &Context<'_>| {
        let count: u32 = document.name.parse().unwrap_or(0);
        document.set_name(&(count + 1).to_string())
    };
    registry.change(&id(ACCOUNT), &change).await
}

#[tokio::test]
async fn no_change_is_lost() {
    let [one, other, third] = gateways().await;
    let mut tasks = Vec::new();
    for registry in [&one, &other, &third].iter().flat_map(|gateway| vec![&gateway.registry; 4]) {
        let registry = Arc::clone(registry);
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                while let Err(error) = count_up(&registry).await {
                    assert_eq!(error.code, IamCode::ConcurrentModification);
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for gateway in [one, other, third] {
        let state = gateway.registry.look().await.unwrap();
        let document = state.account(&id(ACCOUNT)).unwrap().document();
        assert_eq!((&*document.name, document.revision), ("120", 120));
    }
}

#[tokio::test]
async fn a_preview_changes_nothing() {
    let [one, other] = gateways().await;
    one.user("alice").await;
    // Of the present document.
    let again =
        |document: &mut AccountDocument, cx: &Context<'_>| document.create_user(&new_user("alice"), cx);
    let error = other.registry.preview(&id(ACCOUNT), &again).await.unwrap_err();
    assert_eq!(error.message, "User with name alice already exists.");
    let bob = |document: &mut AccountDocument, cx: &Context<'_>| document.create_user(&new_user("bob"), cx);
    other.registry.preview(&id(ACCOUNT), &bob).await.unwrap();
    for gateway in [one, other] {
        let state = gateway.registry.look().await.unwrap();
        assert_eq!(state.account(&id(ACCOUNT)).unwrap().document().users.len(), 1);
    }
}

#[tokio::test]
async fn a_change_is_made_ten_times() {
    let [gateway] = gateways().await;
    gateway.store.overtaken.store(9, Ordering::Relaxed);
    count_up(&gateway.registry).await.unwrap();
    gateway.store.overtaken.store(10, Ordering::Relaxed);
    let error = count_up(&gateway.registry).await.unwrap_err();
    assert_eq!(error.code, IamCode::ConcurrentModification);
    assert_eq!(gateway.store.overtaken.load(Ordering::Relaxed), 0);
    let state = gateway.registry.look().await.unwrap();
    assert_eq!(state.account(&id(ACCOUNT)).unwrap().document().revision, 1);
}

/// A document that is another one than the state has is read again, whatever the mark says: it may
/// have been changed in place.
#[tokio::test]
async fn the_next_attempt_lists_the_documents() {
    let [gateway] = gateways().await;
    gateway.registry.look().await.unwrap();
    let [_, before, _] = gateway.store.counts();
    gateway.store.overtaken.store(1, Ordering::Relaxed);
    count_up(&gateway.registry).await.unwrap();
    let [_, lists, _] = gateway.store.counts();
    // Of the second attempt, and of the look after it.
    assert_eq!(lists - before, 2);
}

#[tokio::test]
async fn a_change_begins_with_the_present_document() {
    let [one, other] = gateways().await;
    one.user("alice").await;
    // Not seen yet by the other one, and there all the same.
    let again =
        |document: &mut AccountDocument, cx: &Context<'_>| document.create_user(&new_user("alice"), cx);
    let error = other.registry.change(&id(ACCOUNT), &again).await.unwrap_err();
    assert_eq!(error.message, "User with name alice already exists.");
    let missing = AccountId::new("210987654321").unwrap();
    let error = other.registry.change(&missing, &|document, _| document.set_name("x")).await.unwrap_err();
    assert_eq!(
        (error.code, &*error.message),
        (IamCode::NoSuchEntity, "The account 210987654321 cannot be found.")
    );
}

#[tokio::test]
async fn what_changes_nothing_is_not_written() {
    let [gateway] = gateways().await;
    gateway.user("alice").await;
    let mark = gateway.store.inner.look().await.unwrap();
    let change =
        |document: &mut AccountDocument, _: &Context<'_>| document.set_user_disabled(&name("alice"), false);
    gateway.registry.change(&id(ACCOUNT), &change).await.unwrap();
    assert_eq!(gateway.store.inner.look().await.unwrap(), mark);
}

#[tokio::test]
async fn what_could_not_be_read_again_is_not_written() {
    let [gateway] = gateways().await;
    let mark = gateway.store.inner.look().await.unwrap();
    let change = |document: &mut AccountDocument, _: &Context<'_>| {
        document.name = "a\nb".into();
        Ok(())
    };
    let error = gateway.registry.change(&id(ACCOUNT), &change).await.unwrap_err();
    assert_eq!(error.code, IamCode::ServiceFailure);
    assert!(std::error::Error::source(&error).unwrap().to_string().starts_with("name: "));
    assert_eq!(gateway.store.inner.look().await.unwrap(), mark);
}

#[tokio::test]
async fn a_store_that_fails_is_the_servers_fault() {
    let [gateway] = gateways().await;
    gateway.store.fails.store(true, Ordering::Relaxed);
    let error = count_up(&gateway.registry).await.unwrap_err();
    assert_eq!(error.code, IamCode::ServiceUnavailable);
    assert!(!error.message.contains("no answer"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("no answer"), "{cause}");
}

/// The policies of changes are those of the language.
#[tokio::test]
async fn policies_are_checked() {
    let [gateway] = gateways().await;
    gateway.user("alice").await;
    let put = |text: &'static str| {
        let registry = &gateway.registry;
        async move {
            let document = Document::new(text).unwrap();
            let holder = Holder::User(name("alice"));
            let change = |account: &mut AccountDocument, cx: &Context<'_>| {
                account.put_inline_policy(&holder, &name("own"), &document, cx)
            };
            registry.change(&id(ACCOUNT), &change).await
        }
    };
    put(r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}"#)
        .await
        .unwrap();
    let error =
        put(r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:No","Resource":"*"}}"#);
    assert_eq!(error.await.unwrap_err().code, IamCode::MalformedPolicyDocument);
}
