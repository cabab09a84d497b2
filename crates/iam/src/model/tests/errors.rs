//! Codes and sentences. Those of AWS are from recordings of February 2026 (localstack's snapshots).

use super::*;
use crate::credential::{Credential, SecretKey};

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, IamError>, code: IamCode, message: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (code, message));
}

#[test]
fn users() {
    with(|document, cx| {
        let id = document.create_user(&new_user("Alice"), cx).unwrap();
        let exists = IamCode::EntityAlreadyExists;
        refused(document.create_user(&new_user("alice"), cx), exists, "User with name alice already exists.");
        let missing = "The user with name bob cannot be found.";
        refused(document.update_user(&name("bob"), None, None), IamCode::NoSuchEntity, missing);
        refused(document.delete_user(&name("bob")), IamCode::NoSuchEntity, missing);
        refused(document.set_user_disabled(&name("bob"), true), IamCode::NoSuchEntity, missing);
        document.create_user(&new_user("bob"), cx).unwrap();
        let renamed = document.update_user(&name("bob"), Some(&name("ALICE")), None);
        refused(renamed, exists, "User with name ALICE already exists.");
        // In another case it is the same user.
        let path = Path::new("/new/").unwrap();
        document.update_user(&name("aLICE"), Some(&name("aLiCe")), Some(&path)).unwrap();
        let (there, user) = document.users.get_key_value(&name("alice")).unwrap();
        assert_eq!((there.as_str(), user.path.as_str(), &user.id), ("aLiCe", "/new/", &id));
        assert_eq!(user.created.to_string(), "2027-01-15T08:00:00Z");
        let long = new_user(&"a".repeat(65));
        assert_eq!(document.create_user(&long, cx).unwrap_err().code, IamCode::ValidationError);
    });
}

#[test]
fn a_user_that_has_something_is_not_deleted() {
    with(|document, cx| {
        let (alice, dev, own) = (name("alice"), name("dev"), name("own"));
        let holder = Holder::User(alice.clone());
        let conflict = IamCode::DeleteConflict;
        document.create_user(&new_user("alice"), cx).unwrap();
        document.create_group(&dev, &Path::root(), cx).unwrap();
        let attached = document.create_policy(&new_policy("p"), cx).unwrap();
        document.add_user_to_group(&dev, &alice).unwrap();
        document.attach_policy(&holder, &attached).unwrap();
        document.put_inline_policy(&holder, &own, &policy("{}"), cx).unwrap();
        let new =
            NewKey { owner: KeyOwner::User(alice.clone()), expires: None, policy: None, description: None };
        let key = document.create_access_key(&new, cx).unwrap();

        refused(
            document.delete_user(&alice),
            conflict,
            "Cannot delete entity, must detach all policies first.",
        );
        refused(document.delete_policy(&attached), conflict, "Cannot delete a policy attached to entities.");
        document.detach_policy(&holder, &attached).unwrap();
        refused(document.delete_user(&alice), conflict, "Cannot delete entity, must delete policies first.");
        document.delete_inline_policy(&holder, &own).unwrap();
        refused(
            document.delete_user(&alice),
            conflict,
            "Cannot delete entity, must delete access keys first.",
        );
        document.delete_access_key(&new.owner, &key.access_key).unwrap();
        let first = "Cannot delete entity, must remove users from group first.";
        refused(document.delete_user(&alice), conflict, first);
        refused(document.delete_group(&dev), conflict, first);
        document.remove_user_from_group(&dev, &alice).unwrap();
        document.delete_group(&dev).unwrap();
        // A boundary is no reason to stay.
        document.set_boundary(&holder, Some(&attached)).unwrap();
        refused(document.delete_policy(&attached), conflict, "Cannot delete a policy attached to entities.");
        document.delete_user(&alice).unwrap();
        document.delete_policy(&attached).unwrap();
    });
}

#[test]
fn groups() {
    with(|document, cx| {
        let (alice, dev) = (name("alice"), name("dev"));
        let no_user = "The user with name alice cannot be found.";
        let no_group = "The group with name dev cannot be found.";
        let missing = IamCode::NoSuchEntity;
        // The user is looked for first.
        refused(document.add_user_to_group(&dev, &alice), missing, no_user);
        refused(document.remove_user_from_group(&dev, &alice), missing, no_user);
        document.create_user(&new_user("alice"), cx).unwrap();
        refused(document.add_user_to_group(&dev, &alice), missing, no_group);
        refused(document.remove_user_from_group(&dev, &alice), missing, no_group);
        refused(document.delete_group(&dev), missing, no_group);
        document.create_group(&dev, &Path::root(), cx).unwrap();
        let again = document.create_group(&name("DEV"), &Path::root(), cx);
        refused(again, IamCode::EntityAlreadyExists, "Group with name DEV already exists.");
        document.add_user_to_group(&name("DEV"), &alice).unwrap();
        document.add_user_to_group(&dev, &alice).unwrap();
        document.update_group(&dev, Some(&name("Ops")), None).unwrap();
        let groups = &document.users[&alice].groups;
        assert_eq!(groups.iter().map(Name::as_str).collect::<Vec<_>>(), ["Ops"]);
        document.remove_user_from_group(&name("ops"), &alice).unwrap();
        document.remove_user_from_group(&name("ops"), &alice).unwrap();
        for index in 0..limits::GROUPS_PER_USER_MAX {
            let group = name(&format!("g{index}"));
            document.create_group(&group, &Path::root(), cx).unwrap();
            document.add_user_to_group(&group, &alice).unwrap();
        }
        let one_more = document.add_user_to_group(&name("ops"), &alice);
        refused(one_more, IamCode::LimitExceeded, "Cannot exceed quota for GroupsPerUser: 10");
        assert_eq!(
            document.set_group_external(&name("ops"), Some("a\nb")).unwrap_err().code,
            IamCode::InvalidInput
        );
    });
}

#[test]
fn access_keys_of_other_servers() {
    with(|document, cx| {
        let [alice, bob] = ["alice", "bob"].map(|of| NewKey::plain(KeyOwner::User(name(of))));
        let key = |id: &str| Credential {
            access_key: AccessKeyId::new(id).unwrap(),
            secret_key: SecretKey::new("a-secret-of-another-server").unwrap(),
        };
        let missing = "The user with name alice cannot be found.";
        refused(document.import_access_key(&alice, &key("ann"), cx), IamCode::NoSuchEntity, missing);
        document.create_user(&new_user("alice"), cx).unwrap();
        document.create_user(&new_user("bob"), cx).unwrap();
        document.import_access_key(&alice, &key("ann"), cx).unwrap();
        let opened =
            document.secret_of(&alice.owner, &key("ann").access_key, &master_keys()).unwrap().unwrap();
        assert_eq!(opened.expose(), "a-secret-of-another-server");
        // Twice, of whomever; and what would be looked for in tokens.
        for id in ["ann", "ASIAIOSFODNN7EXAMPLE"] {
            let error = document.import_access_key(&bob, &key(id), cx).unwrap_err();
            assert_eq!(error.code, IamCode::EntityAlreadyExists, "{id}");
        }
        document.import_access_key(&alice, &key("ann2"), cx).unwrap();
        let quota = "Cannot exceed quota for AccessKeysPerUser: 2";
        refused(document.import_access_key(&alice, &key("ann3"), cx), IamCode::LimitExceeded, quota);
        // A key of a service, which has ended or not.
        let policy = Document::new("{}").unwrap();
        let ends = |seconds| Timestamp::from_second(cx.now.as_second() + seconds).ok();
        let service = |expires| NewKey { expires, policy: Some(policy.clone()), ..alice.clone() };
        let ended = document.import_access_key(&service(ends(0)), &key("svc"), cx).unwrap_err();
        assert_eq!(ended.code, IamCode::InvalidInput);
        document.import_access_key(&service(ends(1)), &key("svc"), cx).unwrap();
        let made = document.keys_of(&alice.owner).unwrap().last().unwrap();
        assert!(made.is_of_service() && made.expires == ends(1) && made.policy.as_ref() == Some(&policy));
        let none = Context { master_keys: None, ..context(cx.master_keys.unwrap(), cx.fill) };
        let error = document.import_access_key(&bob, &key("bob"), &none).unwrap_err();
        assert_eq!(error.code, IamCode::NotImplemented);
        assert!(document.keys_of(&bob.owner).unwrap().is_empty());
    });
}

#[test]
fn access_keys() {
    with(|document, cx| {
        let owner = KeyOwner::User(name("alice"));
        let new = NewKey { owner: owner.clone(), expires: None, policy: None, description: None };
        let missing = "The user with name alice cannot be found.";
        refused(document.create_access_key(&new, cx), IamCode::NoSuchEntity, missing);
        document.create_user(&new_user("alice"), cx).unwrap();
        let first = document.create_access_key(&new, cx).unwrap();
        let second = document.create_access_key(&new, cx).unwrap();
        let quota = "Cannot exceed quota for AccessKeysPerUser: 2";
        refused(document.create_access_key(&new, cx), IamCode::LimitExceeded, quota);
        // Service keys are counted apart.
        let service = NewKey { policy: Some(policy("{}")), ..new.clone() };
        let third = document.create_access_key(&service, cx).unwrap();
        for key in [&first, &second, &third] {
            let opened = document.secret_of(&owner, &key.access_key, &master_keys()).unwrap().unwrap();
            assert_eq!(opened.expose(), key.secret_key.expose());
            assert_eq!(opened.expose().len(), 40);
        }
        let malformed = NewKey { policy: Some(policy("x")), ..new.clone() };
        let sentence = "This policy contains invalid Json";
        refused(document.create_access_key(&malformed, cx), IamCode::MalformedPolicyDocument, sentence);
        let ended = NewKey { expires: Some(cx.now), policy: Some(policy("{}")), ..new.clone() };
        assert_eq!(document.create_access_key(&ended, cx).unwrap_err().code, IamCode::InvalidInput);
        let of_root = NewKey { owner: KeyOwner::Root, ..service };
        assert_eq!(document.create_access_key(&of_root, cx).unwrap_err().code, IamCode::InvalidInput);

        let unknown = AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").unwrap();
        let missing = "The Access Key with id AKIAIOSFODNN7EXAMPLE cannot be found.";
        let update = document.update_access_key(&owner, &unknown, KeyStatus::Inactive, cx.now);
        refused(update, IamCode::NoSuchEntity, missing);
        refused(document.delete_access_key(&owner, &unknown), IamCode::NoSuchEntity, missing);
        // The key of a user is not one of root, or of another user.
        assert!(document.delete_access_key(&KeyOwner::Root, &first.access_key).is_err());
        document.update_access_key(&owner, &first.access_key, KeyStatus::Inactive, cx.now).unwrap();
        assert_eq!(document.users[&name("alice")].keys[0].status, KeyStatus::Inactive);
        document.create_access_key(&NewKey { owner: KeyOwner::Root, ..new }, cx).unwrap();
        assert_eq!(document.keys().count(), 4);
    });
}

#[test]
fn without_a_master_key_no_access_key_is_made() {
    with(|document, cx| {
        document.create_user(&new_user("alice"), cx).unwrap();
        let cx = Context { now: cx.now, fill: cx.fill, policies: cx.policies, master_keys: None };
        let new =
            NewKey { owner: KeyOwner::User(name("alice")), expires: None, policy: None, description: None };
        let error = document.create_access_key(&new, &cx).unwrap_err();
        assert_eq!(error.code, IamCode::NotImplemented);
        assert!(error.message.contains("slipway master-key new"), "{error}");
        assert!(document.users[&name("alice")].keys.is_empty());
    });
}

#[test]
fn managed_policies() {
    with(|document, cx| {
        let exists = "A policy called P already exists. Duplicate names are not allowed.";
        let p = document.create_policy(&new_policy("p"), cx).unwrap();
        assert_eq!(p, arn("p"));
        refused(document.create_policy(&new_policy("P"), cx), IamCode::EntityAlreadyExists, exists);
        let missing = IamCode::NoSuchEntity;
        let gone = format!("Policy {} was not found.", arn("q"));
        refused(document.delete_policy(&arn("q")), missing, &gone);
        // In an ARN case counts, and so does the path.
        assert!(document.delete_policy(&arn("P")).is_err() && document.delete_policy(&arn("a/p")).is_err());
        let no_version = format!("Policy {p} version v9 does not exist or is not attachable.");
        refused(document.set_default_policy_version(&p, 9), missing, &no_version);
        refused(document.delete_policy_version(&p, 9), missing, &no_version);
        let no_policy = format!("Policy {} version v1 does not exist or is not attachable.", arn("q"));
        refused(document.set_default_policy_version(&arn("q"), 1), missing, &no_policy);
        let of_default = "Cannot delete the default version of a policy.";
        refused(document.delete_policy_version(&p, 1), IamCode::DeleteConflict, of_default);
        for expected in 2..=5 {
            let made = document.create_policy_version(&p, &policy("{}"), false, cx);
            assert_eq!(made, Ok(expected));
        }
        let full = "A managed policy can have up to 5 versions. Before you create a new version, you must delete an \
                    existing version.";
        let sixth = document.create_policy_version(&p, &policy("{}"), true, cx);
        refused(sixth, IamCode::LimitExceeded, full);
        document.delete_policy_version(&p, 5).unwrap();
        assert_eq!(document.create_policy_version(&p, &policy("{}"), true, cx), Ok(6));
        assert_eq!(document.policy(&p).unwrap().1.default, 6);
        assert_eq!(document.delete_policy(&p).unwrap_err().code, IamCode::DeleteConflict);

        let long = policy(&format!("{{{}}}", "x".repeat(6_143)));
        let quota = "Cannot exceed quota for PolicySize: 6144";
        refused(document.create_policy_version(&p, &long, true, cx), IamCode::LimitExceeded, quota);
        let built_in = PolicyArn::new(BUILT_IN[0].arn).unwrap();
        assert_eq!(document.delete_policy(&built_in).unwrap_err().code, IamCode::UnmodifiableEntity);
    });
}

#[test]
fn policies_of_identities() {
    with(|document, cx| {
        let holder = Holder::User(name("alice"));
        document.create_user(&new_user("alice"), cx).unwrap();
        let missing = IamCode::NoSuchEntity;
        let not_there = format!("Policy {} does not exist or is not attachable.", arn("q"));
        refused(document.attach_policy(&holder, &arn("q")), missing, &not_there);
        let no_boundary = format!("Scope ARN: {} does not exist or is not attachable.", arn("q"));
        refused(document.set_boundary(&holder, Some(&arn("q"))), missing, &no_boundary);
        let new = NewUser { boundary: Some(arn("q")), ..new_user("bob") };
        refused(document.create_user(&new, cx), missing, &no_boundary);
        let detached = format!("Policy {} was not found.", arn("q"));
        refused(document.detach_policy(&holder, &arn("q")), missing, &detached);
        for index in 0..limits::ATTACHED_MAX {
            let made = document.create_policy(&new_policy(&format!("p{index}")), cx).unwrap();
            document.attach_policy(&holder, &made).unwrap();
            document.attach_policy(&holder, &made).unwrap();
        }
        let built_in = PolicyArn::new(BUILT_IN[0].arn).unwrap();
        let quota = "Cannot exceed quota for PoliciesPerUser: 10";
        refused(document.attach_policy(&holder, &built_in), IamCode::LimitExceeded, quota);
        document.detach_policy(&holder, &arn("p0")).unwrap();
        document.attach_policy(&holder, &built_in).unwrap();

        let half = policy(&format!("{{{}}}", "x".repeat(1_022)));
        document.put_inline_policy(&holder, &name("a"), &half, cx).unwrap();
        document.put_inline_policy(&holder, &name("A"), &half, cx).unwrap();
        document.put_inline_policy(&holder, &name("b"), &half, cx).unwrap();
        let full = "Maximum policy size of 2048 bytes exceeded for user alice";
        let third = document.put_inline_policy(&holder, &name("c"), &policy("{}"), cx);
        refused(third, IamCode::LimitExceeded, full);
        let inline = &document.users[&name("alice")].inline;
        assert_eq!(inline.keys().map(Name::as_str).collect::<Vec<_>>(), ["A", "b"]);
        let gone = "The user policy with name c cannot be found.";
        refused(document.delete_inline_policy(&holder, &name("c")), missing, gone);
        let group = Holder::Group(name("dev"));
        refused(
            document.attach_policy(&group, &built_in),
            missing,
            "The group with name dev cannot be found.",
        );
        let role = Holder::Role(name("r"));
        refused(document.attach_policy(&role, &built_in), missing, "The role with name r cannot be found.");
    });
}

#[test]
fn tags_of_users_differ_in_more_than_case() {
    with(|document, cx| {
        document.create_user(&new_user("alice"), cx).unwrap();
        let p = document.create_policy(&new_policy("p"), cx).unwrap();
        let (user, of_policy) = (Tagged::User(name("alice")), Tagged::Policy(p));
        let both = tags(&[("a", "1"), ("A", "2")]);
        let twice = "Duplicate tag keys found. Please note that Tag keys are case insensitive.";
        refused(document.tag(&user, &both), IamCode::InvalidInput, twice);
        refused(document.tag(&of_policy, &both), IamCode::InvalidInput, twice);
        let new = NewPolicy { tags: both.clone(), ..new_policy("other") };
        refused(document.create_policy(&new, cx), IamCode::InvalidInput, twice);
        // One after the other, a policy can have both.
        document.tag(&of_policy, &tags(&[("a", "1")])).unwrap();
        document.tag(&of_policy, &tags(&[("A", "2")])).unwrap();
        assert_eq!(document.policies[&name("p")].tags, both);
        document.tag(&user, &tags(&[("Team", "1")])).unwrap();
        document.tag(&user, &tags(&[("team", "2")])).unwrap();
        assert_eq!(document.users[&name("alice")].tags, tags(&[("team", "2")]));
        document.untag(&user, &[TagKey::new("TEAM").unwrap()]).unwrap();
        assert!(document.users[&name("alice")].tags.is_empty());
        document.untag(&of_policy, &[TagKey::new("a").unwrap()]).unwrap();
        assert_eq!(document.policies[&name("p")].tags, tags(&[("A", "2")]));
        let many: Vec<_> = (0..50).map(|index| format!("k{index}")).collect();
        let many: Vec<_> = many.iter().map(|key| (key.as_str(), "")).collect();
        document.tag(&user, &tags(&many)).unwrap();
        document.tag(&user, &tags(&many)).unwrap();
        let one_more = document.tag(&user, &tags(&[("other", "")]));
        refused(one_more, IamCode::LimitExceeded, "The number of tags has reached the maximum limit.");
        let missing = "The user with name bob cannot be found.";
        refused(document.tag(&Tagged::User(name("bob")), &both), IamCode::NoSuchEntity, missing);
        let missing = format!("Policy {} was not found.", arn("q"));
        refused(document.untag(&Tagged::Policy(arn("q")), &[]), IamCode::NoSuchEntity, &missing);
    });
}

#[test]
fn the_account() {
    with(|document, cx| {
        document.create_user(&new_user("alice"), cx).unwrap();
        let summary: std::collections::BTreeMap<_, _> = document.summary().into_iter().collect();
        assert_eq!((summary["Users"], summary["UsersQuota"], summary["Groups"]), (1, 5_000, 0));
        assert_eq!(summary.len(), 34);
        let (lab, other) = (Alias::new("lab").unwrap(), Alias::new("other").unwrap());
        document.set_alias(&lab);
        assert_eq!(document.delete_alias(&other).unwrap_err().code, IamCode::NoSuchEntity);
        document.delete_alias(&lab).unwrap();
        assert_eq!(document.set_name("").unwrap_err().code, IamCode::InvalidInput);
        document.set_name("Lab 2").unwrap();
        assert_eq!(&*document.name, "Lab 2");
    });
}

#[test]
fn a_change_that_changes_nothing_is_not_written() {
    with(|document, cx| {
        let made =
            document.changed(&|document, cx| document.create_user(&new_user("alice"), cx), cx).unwrap();
        assert_eq!((document.revision, made.document.revision), (0, 1));
        assert_eq!(made.json.unwrap(), made.document.to_json().unwrap());
        let again =
            made.document.changed(&|document, _| document.set_user_disabled(&name("alice"), false), cx);
        let again = again.unwrap();
        assert_eq!((again.document.revision, again.json), (1, None));
        // The same name in another case is a change.
        let renamed = |document: &mut AccountDocument, _: &Context<'_>| {
            document.update_user(&name("alice"), Some(&name("ALICE")), None)
        };
        assert!(made.document.changed(&renamed, cx).unwrap().json.is_some());
        assert!(made.document.changed(&|document, _| document.delete_user(&name("bob")), cx).is_err());
    });
}

#[test]
fn secrets_are_sealed_anew_or_given_up() {
    const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    with(|document, cx| {
        document.create_user(&new_user("alice"), cx).unwrap();
        let owner = KeyOwner::User(name("alice"));
        let new = NewKey { owner: owner.clone(), expires: None, policy: None, description: None };
        let made = document.create_access_key(&new, cx).unwrap();
        document.create_access_key(&NewKey { owner: KeyOwner::Root, ..new }, cx).unwrap();
        let both = format!("{SECOND}\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        let (both, second) = (MasterKeys::read(&both).unwrap(), MasterKeys::read(SECOND).unwrap());
        let with_keys = |keys| Context { master_keys: keys, ..context(&both, &system_random) };
        let none = document.reseal(&with_keys(None)).unwrap_err();
        assert_eq!(none.code, IamCode::NotImplemented);
        let mut lost = document.clone();
        assert_eq!(document.reseal(&with_keys(Some(&both))), Ok(2));
        assert_eq!(document.reseal(&with_keys(Some(&both))), Ok(0));
        let opened = document.secret_of(&owner, &made.access_key, &second).unwrap().unwrap();
        assert_eq!(opened.expose(), made.secret_key.expose());
        assert_eq!(document.forget_secrets(&with_keys(Some(&second))), Ok(0));
        // Those whose key is not there any more cannot be sealed anew.
        assert_eq!(lost.reseal(&with_keys(Some(&second))), Ok(0));
        assert_eq!(lost.forget_secrets(&with_keys(Some(&second))), Ok(2));
        assert!(lost.keys().all(|key| key.secret.is_none() && key.status == KeyStatus::Inactive));
    });
}
