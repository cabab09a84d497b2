//! Sessions of tokens, from one gateway to the others.

use super::*;

const NOW: i64 = 1_800_000_000;
const TRUST: &str = r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"123456789012"},"Action":"sts:AssumeRole"}}"#;

impl Gateway {
    /// Makes a role, and the claims of a session of it.
    async fn role(&self, role: &str) -> Claims {
        let new = NewRole {
            name: name(role),
            path: Path::root(),
            trust: Document::new(TRUST).unwrap(),
            description: None,
            max_session: None,
            boundary: None,
            tags: Tags::new(),
        };
        let change = |document: &mut AccountDocument, cx: &Context<'_>| document.create_role(&new, cx);
        let role = self.registry.change(&id(ACCOUNT), &change).await.unwrap();
        Claims::new(SessionKind::Role, id(ACCOUNT), Who::Id(role), "nightly", NOW, NOW + 3_600)
    }

    async fn disable_role(&self, role: &str, disabled: bool) {
        let change = |document: &mut AccountDocument, _: &Context<'_>| {
            document.set_role_disabled(&name(role), disabled)
        };
        self.registry.change(&id(ACCOUNT), &change).await.unwrap();
    }

    /// Gives out a session, and returns its key and token.
    fn issue(&self, claims: &Claims) -> (Credential, String) {
        let issued = self.registry.issue(claims).unwrap();
        let token = issued.token.expose().to_owned();
        (Credential { access_key: issued.access_key, secret_key: issued.secret_key }, token)
    }
}

#[tokio::test]
async fn a_session_works_everywhere_at_once() {
    let [one, other] = gateways().await;
    let claims = one.role("reader").await;
    let (key, token) = one.issue(&claims);
    // The other one has not seen the role yet.
    let session = other.ask(&key, Some(&token)).await.unwrap();
    assert_eq!(session.credential.secret_key.expose(), key.secret_key.expose());
    assert_eq!(&*session.principal.arn, "arn:aws:sts::123456789012:assumed-role/reader/nightly");
    // Then it is in memory.
    let known = other.registry.known(key.access_key.as_str(), Some(&token)).unwrap().unwrap();
    assert!(Arc::ptr_eq(&known, &session));
    assert_eq!(other.registry.tokens.len(), 1);
}

#[tokio::test]
async fn a_session_is_made_anew_when_the_state_changes() {
    let [one, other] = gateways().await;
    let claims = one.role("reader").await;
    let (key, token) = one.issue(&claims);
    other.ask(&key, Some(&token)).await.unwrap();
    for round in 0..20 {
        let disabled = round % 2 == 0;
        one.disable_role("reader", disabled).await;
        let wanted = if disabled { "inactive" } else { "session" };
        assert_eq!(kind(&one.ask(&key, Some(&token)).await), wanted);
        other.clock.step(Duration::from_millis(1_001));
        assert_eq!(kind(&other.ask(&key, Some(&token)).await), wanted, "round {round}");
    }
}

#[tokio::test]
async fn wrong_tokens() {
    let [gateway] = gateways().await;
    let user = gateway.user("alice").await;
    let claims = gateway.role("reader").await;
    let ((key, token), (other, other_token)) = (gateway.issue(&claims), gateway.issue(&claims));
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    for (key, token, wanted) in [
        (&key, Some(other_token.as_str()), "invalid"),
        (&other, Some(token.as_str()), "invalid"),
        (&key, Some(""), "invalid"),
        (&key, Some(&token[1..]), "invalid"),
        (&key, None, "unknown"),
        // A key that lasts has no token, and neither has that of the server.
        (&user, Some(token.as_str()), "invalid"),
        (&nobodys(), Some(token.as_str()), "invalid"),
    ] {
        assert_eq!(kind(&gateway.ask(key, token).await), wanted, "{} {token:?}", key.access_key);
    }
    // Bad ones are not remembered, and put nothing else out of memory.
    assert_eq!(gateway.registry.tokens.len(), 1);
    let without = gateway_with(&MemoryDocuments::default(), &gateway.clock, &[]).await;
    assert_eq!(kind(&without.ask(&key, Some(&token)).await), "invalid");
}

#[tokio::test]
async fn a_session_ends() {
    let [gateway] = gateways().await;
    let claims = gateway.role("reader").await;
    let (key, token) = gateway.issue(&claims);
    let session = gateway.ask(&key, Some(&token)).await.unwrap();
    assert_eq!(session.expires, Timestamp::from_second(NOW + 3_600).ok());
    gateway.clock.step(Duration::from_hours(1));
    // One in memory is left to whoever asks; it has its end.
    let found = gateway.ask(&key, Some(&token)).await;
    assert!(found.map_or(true, |session| session.has_ended(gateway.clock.now())));
    gateway.registry.tokens.clear();
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "expired");
    // One of a gateway whose clock is far ahead.
    let ahead = Claims { issued: NOW + 7_200, ends: NOW + 9_000, ..claims };
    let (key, token) = gateway.issue(&ahead);
    assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "invalid");
}

#[tokio::test]
async fn policies_that_are_too_large_are_not_sealed() {
    let [gateway] = gateways().await;
    let claims = gateway.role("reader").await;
    // Tags that cannot be packed well.
    let mut state = 1u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from((state >> 16) % 26).unwrap())
    };
    let tags = (0..50).map(|number| {
        let value: String = (0..200).map(|_| letter()).collect();
        (TagKey::new(&format!("k{number}")).unwrap(), TagValue::new(&value).unwrap())
    });
    let large = Claims { tags: tags.collect(), ..claims };
    let error = gateway.registry.issue(&large).unwrap_err();
    assert_eq!(error.code, IamCode::PackedPolicyTooLarge);
}

#[tokio::test]
async fn sessions_in_memory_are_bounded() {
    let [gateway] = gateways().await;
    let claims = gateway.role("reader").await;
    for _ in 0..12_000 {
        let (key, token) = gateway.issue(&claims);
        assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
    }
    let kept = gateway.registry.tokens.len();
    assert!((2_000..=10_000).contains(&kept), "{kept}");
}

/// Removing a master key ends its sessions, also those in memory.
#[tokio::test]
async fn a_session_ends_with_its_master_key() {
    let [gateway] = gateways().await;
    let claims = gateway.role("reader").await;
    let (key, token) = gateway.issue(&claims);
    let steps: [(&[&str], _); 3] =
        [(&[SECOND, FIRST], "session"), (&[SECOND], "invalid"), (&[SECOND, FIRST], "session")];
    for (keys, wanted) in steps {
        assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), "session");
        gateway.registry.set_master_keys(master_keys(keys)).await.unwrap();
        assert_eq!(kind(&gateway.ask(&key, Some(&token)).await), wanted);
        if wanted == "invalid" {
            gateway.registry.set_master_keys(master_keys(&[FIRST])).await.unwrap();
        }
    }
}
