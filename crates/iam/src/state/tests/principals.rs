//! Principals of documents, as ARNs and as unique ids.

use super::*;

fn document(principals: &str) -> String {
    format!(
        r#"{{"Statement":{{"Principal":{{"AWS":{principals}}},
        "Condition":{{"ArnLike":{{"aws:PrincipalArn":"arn:aws:iam::123456789012:user/staff/alice"}}}}}}}}"#
    )
}

#[test]
fn users_roles_and_their_sessions_are_stored_as_ids() {
    let mut account = full(ACCOUNT);
    let (alice, role) = (&account.users[&name("alice")].id, &account.roles[&name("reader")].id);
    let arns = document(
        r#"["arn:aws:iam::123456789012:user/staff/alice", "arn:aws:iam::123456789012:role/r/reader",
        "arn:aws:sts::123456789012:assumed-role/reader/a@b", "*", "123456789012", "999999999999",
        "arn:aws:iam::999999999999:root", "arn:aws:sts::123456789012:federated-user/f"]"#,
    );
    let ids = arns
        .replacen("\"arn:aws:iam::123456789012:user/staff/alice\"", &format!("\"{alice}\""), 1)
        .replace("arn:aws:iam::123456789012:role/r/reader", role.as_str())
        .replace("arn:aws:sts::123456789012:assumed-role/reader/a@b", &format!("{role}:a@b"));
    let before = state(&[&account]);
    assert_eq!(before.with_ids(&arns), Ok(Some(ids.clone())));
    assert_eq!(before.with_ids(&ids), Ok(None));
    assert_eq!(before.with_arns(&ids).as_deref(), Some(&*arns));
    assert_eq!(before.with_arns(&arns), None);

    // Another name of the same user is shown; what is gone has its id.
    with(&mut account, |document, _| {
        document.update_user(&name("alice"), Some(&name("Ann")), Some(&Path::root()))?;
        document.delete_inline_policy(&Holder::Role(name("reader")), &name("own"))?;
        document.delete_role(&name("reader"))
    });
    let after = state(&[&account]).with_arns(&ids).unwrap();
    assert!(after.contains(r#"["arn:aws:iam::123456789012:user/Ann", "AROA"#), "{after}");
    assert!(after.contains(":a@b\""), "{after}");
}

#[test]
fn principals_that_are_not_there_are_refused() {
    let state = state(&[&full(ACCOUNT)]);
    for unknown in [
        "arn:aws:iam::123456789012:user/alice",
        "arn:aws:iam::123456789012:user/staff/Alice",
        "arn:aws:iam::123456789012:user/staff/bob",
        "arn:aws:iam::123456789012:role/staff/alice",
        "arn:aws:iam::123456789012:role/reader",
        "arn:aws:iam::999999999999:user/staff/alice",
        "arn:aws:sts::123456789012:assumed-role/Reader/s",
        "arn:aws:sts::123456789012:assumed-role/alice/s",
        "arn:aws:sts::999999999999:assumed-role/reader/s",
        "AIDAJQABLZS4A3QDU576Q",
        "AROAJQABLZS4A3QDU576Q:s",
    ] {
        let found = state.with_ids(&document(&format!("[\"*\",\"{unknown}\"]")));
        assert_eq!(found, Err(UnknownPrincipal(unknown.to_owned())));
    }
}
