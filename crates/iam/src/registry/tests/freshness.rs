//! Tests of how old a state may be, and who looks.

use super::*;

const HALF: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_state_answers_for_a_second() {
    let [gateway] = gateways().await;
    let key = gateway.user("alice").await;
    let asked = gateway.store.counts();
    assert_eq!(kind(&gateway.known(&key).unwrap()), "session");
    gateway.clock.step(Duration::from_secs(1));
    assert_eq!(kind(&gateway.known(&key).unwrap()), "session");
    // No request has asked the store.
    assert_eq!(gateway.store.counts(), asked);
    gateway.clock.step(Duration::from_millis(1));
    assert!(gateway.known(&key).is_none());
    // Whoever finds it too old looks, and all that follow have it for another second.
    assert_eq!(kind(&gateway.ask(&key, None).await), "session");
    assert_eq!(gateway.store.counts(), [asked[0] + 1, asked[1], asked[2]]);
    assert_eq!(kind(&gateway.known(&key).unwrap()), "session");
    // Twice a second is enough.
    for _ in 0..10 {
        gateway.clock.step(HALF);
        gateway.registry.look().await.unwrap();
        gateway.clock.step(HALF);
        assert!(gateway.known(&key).is_some());
    }
}

/// Strangers, whom no signature holds back, do not have the store asked at any rate they like.
#[tokio::test]
async fn strangers_cause_no_look_while_the_state_is_fresh() {
    let [gateway] = gateways().await;
    gateway.user("alice").await;
    let asked = gateway.store.counts();
    for _ in 0..10 {
        gateway.registry.fresh_or_look().await.unwrap();
    }
    assert_eq!(gateway.store.counts(), asked);
    gateway.clock.step(Duration::from_millis(1_001));
    gateway.registry.fresh_or_look().await.unwrap();
    assert_eq!(gateway.store.counts(), [asked[0] + 1, asked[1], asked[2]]);
}

/// The server's own key needs no store, however long that is away.
#[tokio::test]
async fn root_is_known_whatever_happens() {
    let [gateway] = gateways().await;
    gateway.store.fails.store(true, Ordering::Relaxed);
    gateway.clock.step(Duration::from_hours(1));
    for token in [None, Some("x")] {
        let wanted = if token.is_none() { "session" } else { "invalid" };
        assert_eq!(kind(&gateway.registry.known(ROOT_KEY, token).unwrap()), wanted);
        assert_eq!(kind(&gateway.registry.find(ROOT_KEY, token).await), wanted);
    }
}

#[tokio::test]
async fn a_change_counts_everywhere_within_a_second() {
    let [one, other] = gateways().await;
    let key = one.user("alice").await;
    // A key works everywhere when it was made: an unknown one is looked for.
    assert!(other.known(&key).is_none());
    assert_eq!(kind(&other.ask(&key, None).await), "session");
    for round in 0..100u64 {
        let status = if round % 2 == 0 { KeyStatus::Inactive } else { KeyStatus::Active };
        one.set_key("alice", &key, status).await;
        let wanted = if round % 2 == 0 { "inactive" } else { "session" };
        // At once where it was made, and nowhere else later than in a second, also if nobody
        // looks.
        assert_eq!(kind(&one.known(&key).unwrap()), wanted);
        other.clock.step(Duration::from_millis(1_001));
        assert_eq!(kind(&other.ask(&key, None).await), wanted, "round {round}");
    }
    let owner = KeyOwner::User(name("alice"));
    let delete =
        |document: &mut AccountDocument, _: &Context<'_>| document.delete_access_key(&owner, &key.access_key);
    one.registry.change(&id(ACCOUNT), &delete).await.unwrap();
    other.clock.step(Duration::from_millis(1_001));
    assert_eq!(kind(&other.ask(&key, None).await), "unknown");
}

#[tokio::test]
async fn one_look_for_all_who_wait() {
    let [gateway] = gateways().await;
    let key = gateway.user("alice").await;
    gateway.clock.step(Duration::from_secs(2));
    gateway.store.hold().await;
    let before = gateway.store.counts()[0];
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let (registry, access_key) = (Arc::clone(&gateway.registry), key.access_key.clone());
            tokio::spawn(async move { kind(&registry.find(access_key.as_str(), None).await) })
        })
        .collect();
    while gateway.store.counts()[0] == before {
        tokio::task::yield_now().await;
    }
    gateway.store.let_in();
    for one in waiting {
        assert_eq!(one.await.unwrap(), "session");
    }
    // Those who came while the first one looked share a second look: it began after they asked.
    let looks = gateway.store.counts()[0] - before;
    assert!((1..=2).contains(&looks), "{looks}");
}

#[tokio::test]
async fn a_look_that_failed_failed_for_all_who_waited() {
    let [gateway] = gateways().await;
    let key = gateway.user("alice").await;
    gateway.clock.step(Duration::from_secs(2));
    gateway.store.hold().await;
    gateway.store.fails.store(true, Ordering::Relaxed);
    let before = gateway.store.counts()[0];
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (registry, access_key) = (Arc::clone(&gateway.registry), key.access_key.clone());
            tokio::spawn(async move { kind(&registry.find(access_key.as_str(), None).await) })
        })
        .collect();
    while gateway.store.counts()[0] == before {
        tokio::task::yield_now().await;
    }
    gateway.store.let_in();
    for one in waiting {
        assert_eq!(one.await.unwrap(), "unavailable");
    }
    assert!(gateway.store.counts()[0] - before <= 2);
    // It works again as soon as the store does.
    gateway.store.fails.store(false, Ordering::Relaxed);
    assert_eq!(kind(&gateway.ask(&key, None).await), "session");
}

#[tokio::test]
async fn nobody_waits_longer_than_the_limit() {
    let (documents, clock) = (MemoryDocuments::default(), Arc::<Hand>::default());
    let store = Watched::new(&documents);
    let limit = Duration::from_millis(50);
    let registry =
        Registry::new(Arc::clone(&store) as Arc<dyn Documents>, None, &root(), clock.clone(), limit);
    registry.look().await.unwrap();
    clock.step(Duration::from_secs(2));
    store.hold().await;
    for _ in 0..2 {
        let found = registry.find("AKIAIOSFODNN7EXAMPLE", None).await;
        assert_eq!(kind(&found), "unavailable");
        assert!(found.unwrap_err().to_string().contains("no answer within 50ms"));
    }
    let change = registry.change(&id(ACCOUNT), &|document, _| document.set_name("x")).await;
    let error = change.unwrap_err();
    assert_eq!(error.code, IamCode::ServiceUnavailable);
    let cause = std::error::Error::source(&error).unwrap();
    assert!(cause.to_string().contains("no answer within 50ms"), "{cause}");
    assert!(!error.message.contains("50ms"), "not for clients: {error}");
    store.let_in();
    assert_eq!(kind(&registry.find("AKIAIOSFODNN7EXAMPLE", None).await), "unknown");
}

#[tokio::test]
async fn unknown_keys_are_looked_for_twenty_times_a_second() {
    let [gateway] = gateways().await;
    gateway.clock.step(Duration::from_millis(10));
    let before = gateway.store.counts()[0];
    for _ in 0..100 {
        assert_eq!(kind(&gateway.ask(&nobodys(), None).await), "unknown");
    }
    assert_eq!(gateway.store.counts()[0] - before, 20);
    gateway.clock.step(Duration::from_secs(1));
    assert_eq!(kind(&gateway.ask(&nobodys(), None).await), "unknown");
    assert_eq!(gateway.store.counts()[0] - before, 21);
    // The key of a session without its token is in no store.
    assert_eq!(kind(&gateway.registry.known("ASIAIOSFODNN7EXAMPLE", None).unwrap()), "unknown");
    assert_eq!(gateway.store.counts()[0] - before, 21);
}

#[tokio::test]
async fn what_did_not_change_is_kept() {
    let [one, other] = gateways().await;
    let account = one.registry.create_account("second").await.unwrap();
    let key = one.user("alice").await;
    other.registry.look().await.unwrap();
    let (state, counts) = (other.registry.last_known(), other.store.counts());
    other.registry.look().await.unwrap();
    assert!(Arc::ptr_eq(&state, &other.registry.last_known()));
    assert_eq!(other.store.counts(), [counts[0] + 1, counts[1], counts[2]]);
    one.set_key("alice", &key, KeyStatus::Inactive).await;
    other.registry.look().await.unwrap();
    // One document was read, and the other account is the same.
    assert_eq!(other.store.counts(), [counts[0] + 2, counts[1] + 1, counts[2] + 1]);
    let now = other.registry.last_known();
    assert!(Arc::ptr_eq(state.account(&account).unwrap(), now.account(&account).unwrap()));
    assert!(!Arc::ptr_eq(state.account(&id(ACCOUNT)).unwrap(), now.account(&id(ACCOUNT)).unwrap()));
    assert!(now.generation() > state.generation());
}

#[tokio::test]
async fn a_document_that_could_not_be_read_is_read_again() {
    let [one, other] = gateways().await;
    let account = one.registry.create_account("second").await.unwrap();
    let key = one.user("alice").await;
    *other.store.unreadable.lock().unwrap() = Some(DocumentName::of_account(&account));
    // The others go on.
    assert_eq!(kind(&other.ask(&key, None).await), "session");
    assert_eq!(kind(&other.ask(&nobodys(), None).await), "unavailable");
    let trouble = other.registry.last_known().troubles()[0].to_string();
    assert!(trouble.contains("input/output error"), "{trouble}");
    let refused = other.registry.update_account(&account, None, Some(true)).await.unwrap_err();
    assert_eq!(refused.code, IamCode::ServiceUnavailable);
    *other.store.unreadable.lock().unwrap() = None;
    // Nothing has changed in the store, and yet it is read.
    other.registry.look().await.unwrap();
    assert!(other.registry.last_known().account(&account).is_some());
    assert_eq!(kind(&other.ask(&nobodys(), None).await), "unknown");
}

/// A state is made beside the thread of requests, however large it is.
#[test]
fn a_look_leaves_the_thread_to_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(1).build();
    runtime.unwrap().block_on(async {
        let [one, other] = gateways().await;
        one.user("alice").await;
        // The only thread for such work is held until this one had a turn.
        let (go, wait) = std::sync::mpsc::channel();
        let held = tokio::task::spawn_blocking(move || wait.recv());
        let look = other.registry.look();
        tokio::pin!(look);
        tokio::select! {
            biased;
            _ = &mut look => panic!("the state was made on the thread of requests"),
            () = tokio::task::yield_now() => {}
        }
        go.send(()).unwrap();
        held.await.unwrap().unwrap();
        look.await.unwrap();
    });
}

/// A log shows an error and its sources: each cause comes once, down to the last.
#[test]
fn causes_come_once() {
    #[derive(Debug)]
    struct NoAnswer(std::io::Error);
    impl std::fmt::Display for NoAnswer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no answer")
        }
    }
    impl std::error::Error for NoAnswer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let of_store = || StoreError::Unavailable(Box::new(NoAnswer(std::io::Error::other("cut"))));
    let errors: [Box<dyn std::error::Error>; 5] = [
        Box::new(of_store()),
        Box::new(OpenError::from(of_store())),
        Box::new(Unavailable(Arc::new(of_store()))),
        Box::new(Unidentified::from(Unavailable(Arc::new(of_store())))),
        Box::new(crate::directory::LoginError::Unavailable(of_store())),
    ];
    for error in errors {
        let chain = std::iter::successors(Some(&*error), |error| error.source());
        let shown = chain.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        assert!(shown.ends_with("the store cannot be used: no answer: cut"), "{shown}");
        assert_eq!((shown.matches("no answer").count(), shown.matches("cut").count()), (1, 1), "{shown}");
    }
}
