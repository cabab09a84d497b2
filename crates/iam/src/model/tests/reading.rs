//! Documents that break a rule are refused with its name, and others are read as they were written.

use serde_json::{Value, json};

use super::*;

/// A document in which everything is that a document can have.
fn full() -> Value {
    let user = json!({
        "id": "AIDAQ3EGRWOAT7LCK5XUM", "path": "/", "created": "2026-11-25T15:10:38Z", "disabled": false,
        "groups": ["dev"], "boundary": "arn:aws:iam::123456789012:policy/p1", "tags": { "Team": "a" },
        "attached": ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"], "inline": { "own": "{}" },
        "posix": { "name": "alice" },
        "keys": [
            { "id": "AKIA5OXHV2LQJ7MBNE3T", "secret": null, "status": "Active", "created": "2026-11-25T15:11:02Z",
              "expires": null, "policy": null },
            { "id": "AKIA5OXHV2LQJ7MBNE3U",
              "secret": "v1.9c41f07a.AAAAAAAAAAAAAAAAoPKIlMoxCXqG5Wa/IV7EF9pPCdG9B7d9RLT3T9h+ZwEyGMYjRZHqdeKbc6J381z7Zf4BEyARFiQ=",
              "status": "Inactive", "created": "2026-11-25T15:11:02Z", "expires": "2027-11-25T15:11:02Z",
              "policy": "{ }", "description": "CI of the lab" },
        ],
    });
    json!({
        "format": 1, "account": "123456789012", "name": "lab", "revision": 418, "disabled": false, "alias": "my-lab",
        "root_keys": [],
        "users": { "alice": user },
        "groups": { "dev": { "id": "AGPAQ3EGRWOAT7LCK5XUM", "path": "/", "created": "2026-11-25T15:10:38Z",
            "attached": [], "inline": {}, "external": "cn=dev,ou=groups,dc=lab" } },
        "roles": { "reader": { "id": "AROAQ3EGRWOAT7LCK5XUM", "path": "/", "created": "2026-11-25T15:10:38Z",
            "description": null, "trust": "{}", "max_session": 3600, "disabled": false, "attached": [], "inline": {},
            "boundary": null, "tags": {}, "posix": { "uid": 1000, "gid": 100, "groups": [27] } } },
        "policies": { "p1": { "id": "ANPAQ3EGRWOAT7LCK5XUM", "path": "/", "created": "2026-11-25T15:10:38Z",
            "updated": "2026-11-25T15:10:38Z", "description": "d", "default": 2, "next": 3,
            "versions": { "1": { "document": "{}", "created": "2026-11-25T15:10:38Z" },
                          "2": { "document": "{}", "created": "2026-11-25T15:10:38Z" } },
            "tags": { "a": "", "A": "" } } },
        "providers": { "idp.lab/realms/a": { "id": "OIDCQ3EGRWOAT7LCK5XUM", "client_ids": ["c"], "thumbprints": [],
            "created": "2026-11-25T15:10:38Z", "disabled": false, "posix_claim": "preferred_username", "role_claim": "groups", "tags": {} } },
    })
}

fn read(value: &Value) -> Result<AccountDocument, DocumentError> {
    AccountDocument::read(value.to_string().as_bytes())
}

#[test]
fn a_document_is_read_as_it_was_written() {
    let document = read(&full()).unwrap();
    let written: Value = serde_json::from_slice(&document.to_json().unwrap()).unwrap();
    assert_eq!(written, full());
}

/// Puts `value` at `pointer`.
fn with_value(pointer: &str, value: Value) -> Value {
    let mut all = full();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match all.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.insert(name.to_owned(), value)),
        Value::Array(values) => values[name.parse::<usize>().unwrap()] = value,
        _ => panic!("{pointer}"),
    }
    all
}

#[test]
fn each_rule_that_is_broken_is_named() {
    let alice = || full()["users"]["alice"].clone();
    let many = |count: usize| {
        json!((0..count).map(|i| (format!("k{i}"), json!(""))).collect::<serde_json::Map<_, _>>())
    };
    for (pointer, value, rule) in [
        ("/users/alice/groups/0", json!("ops"), "a group does not exist"),
        ("/users/alice/groups/0", json!("DEV"), "a group does not exist"),
        ("/users/alice/groups", json!(["dev", "dev"]), "a group is there twice"),
        ("/users/alice/boundary", json!("arn:aws:iam::123456789012:policy/p2"), "does not exist"),
        ("/users/alice/boundary", json!("arn:aws:iam::123456789013:policy/p1"), "does not exist"),
        ("/users/alice/attached/0", json!("arn:aws:iam::aws:policy/Nothing"), "does not exist"),
        ("/users/alice/attached/0", json!("arn:aws:s3:::b"), "the ARN of a policy"),
        ("/users/alice/tags", json!({ "a": "", "A": "" }), "differ in case alone"),
        ("/users/alice/tags", many(51), "more than 50 tags"),
        ("/users/alice/id", json!("AROAQ3EGRWOAT7LCK5XUL"), "another kind of thing"),
        ("/users/alice/id", json!("alice"), "a unique id is"),
        ("/users/bob", alice(), "a unique id is there twice"),
        ("/users/ALICE", alice(), "a name is there twice"),
        ("/users/alice/keys/1/id", json!("AKIA5OXHV2LQJ7MBNE3T"), "an access key is there twice"),
        ("/users/alice/keys/1/secret", json!("v1.9c41f07a"), "a sealed secret is"),
        ("/users/alice/keys/1/status", json!("active"), "unknown variant"),
        ("/users/alice/created", json!("2026-11-25T15:10:38.5Z"), "a time is written as"),
        ("/users/alice/created", json!("2026-11-25T15:10:38+00:00"), "a time is written as"),
        ("/users/alice/posix", json!({ "uid": 0, "gid": 5 }), "neither root nor"),
        ("/users/alice/posix", json!({ "uid": 5, "gid": 5, "groups": [0] }), "neither root nor"),
        ("/users/alice/posix", json!({ "uid": 5 }), "has a name, or uid"),
        ("/users/alice/posix", json!({ "uid": 5, "gid": 5, "name": "a" }), "has a name, or uid"),
        ("/users/alice/posix", json!({ "name": "root" }), "is not root"),
        ("/users/alice/inline/own", json!("\u{100}"), "a policy document has"),
        ("/users/alice/more", json!(1), "unknown field `more`"),
        ("/groups/dev/external", json!("a\nb"), "the DN of a group"),
        ("/roles/reader/max_session", json!(43_201), "3600 to 43200"),
        ("/policies/p1/default", json!(3), "the default version does not exist"),
        ("/policies/p1/next", json!(2), "the numbers of versions"),
        ("/policies/p1/versions", json!({}), "1 to 5 versions"),
        ("/providers/idp.lab~1realms~1a/client_ids", json!(["c", "c"]), "a client id is there twice"),
        (
            "/providers/idp.lab~1realms~1a/id",
            json!("AROAQ3EGRWOAT7LCK5XUA"),
            "the unique id is that of another kind of thing",
        ),
        (
            "/providers",
            json!({ "idp.lab?a": full()["providers"]["idp.lab/realms/a"] }),
            "the URL of a provider",
        ),
        ("/account", json!("1234"), "an account id must"),
        ("/alias", json!("My-Lab"), "an alias has"),
        ("/name", json!("a\nb"), "in one line"),
        ("/more", json!(1), "unknown field `more`"),
        ("/format", json!(2), "has the format 2"),
    ] {
        // A pointer's own escapes are not in names.
        let value = if pointer.contains('~') {
            let mut all = full();
            *all.pointer_mut(pointer).unwrap() = value;
            all
        } else {
            with_value(pointer, value)
        };
        let error = read(&value).unwrap_err().to_string();
        assert!(error.contains(rule), "{pointer}: {error}");
    }
}

#[test]
fn a_later_format_is_named_even_if_its_members_are_not_known() {
    let mut later = with_value("/format", json!(7));
    later["sessions"] = json!([]);
    assert_eq!(read(&later).unwrap_err(), DocumentError::Format(7));
}

#[test]
fn a_rule_has_its_place() {
    let error = read(&with_value("/users/alice/groups/0", json!("ops"))).unwrap_err();
    assert_eq!(error.to_string(), "users.alice: a group does not exist");
    let cut = full().to_string();
    for length in [0, 1, cut.len() / 2, cut.len() - 1] {
        let error = AccountDocument::read(&cut.as_bytes()[..length]).unwrap_err();
        assert!(matches!(error, DocumentError::Json { .. }), "{error}");
    }
    let mut twice = cut.replacen("\"revision\":418", "\"revision\":418,\"revision\":418", 1);
    assert!(AccountDocument::read(twice.as_bytes()).unwrap_err().to_string().contains("duplicate field"));
    twice.push('x');
    assert!(AccountDocument::read(twice.as_bytes()).is_err());
}

#[test]
fn a_document_has_at_most_16_mib() {
    let mut text = full().to_string();
    text.push_str(&" ".repeat(limits::ACCOUNT_BYTES_MAX - text.len()));
    assert!(AccountDocument::read(text.as_bytes()).is_ok());
    text.push(' ');
    assert_eq!(AccountDocument::read(text.as_bytes()).unwrap_err(), DocumentError::TooLarge);
}
