//! Random sequences of changes.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, Ordering};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::*;
use crate::unique_id::NoRandomNumbers;

/// Names of which several are one, and one that is nobody's.
const NAMES: [&str; 6] = ["a", "A", "b", "B", "cc", "dd"];

/// A change that bytes stand for.
#[derive(Debug, Clone, Copy)]
struct Step([u8; 4]);

impl Step {
    fn name(self, at: usize) -> Name {
        name(NAMES[usize::from(self.0[at]) % NAMES.len()])
    }

    fn arn(self, at: usize) -> PolicyArn {
        match self.0[at] % 8 {
            7 => PolicyArn::new(BUILT_IN[0].arn).unwrap(),
            _ => arn(self.name(at).as_str()),
        }
    }

    fn holder(self, at: usize) -> Holder {
        match self.0[at] >> 6 {
            0 | 1 => Holder::User(self.name(at)),
            2 => Holder::Group(self.name(at)),
            _ => Holder::Role(self.name(at)),
        }
    }

    fn owner(self, at: usize) -> KeyOwner {
        if self.0[at] & 64 == 0 { KeyOwner::User(self.name(at)) } else { KeyOwner::Root }
    }

    /// Returns a key that is there, mostly.
    fn key(self, document: &AccountDocument) -> AccessKeyId {
        let there: Vec<_> = document.keys().map(|key| key.id.clone()).collect();
        let any = AccessKeyId::new("AKIAIOSFODNN7EXAMPLE").unwrap();
        there.get(usize::from(self.0[3]) % (there.len() + 1)).cloned().unwrap_or(any)
    }

    fn tagged(self) -> Tagged {
        match (self.0[1] >> 6, self.0[3] & 2) {
            (0 | 1, _) => Tagged::User(self.name(1)),
            (2, _) => Tagged::Policy(self.arn(1)),
            (_, 0) => Tagged::Role(self.name(1)),
            _ => Tagged::Provider(self.provider(1)),
        }
    }

    fn document(self) -> Document {
        let sizes = ["{}", "x", &format!("{{{}}}", "y".repeat(700)), &format!("{{{}}}", "y".repeat(7_000))]
            .map(policy);
        sizes[usize::from(self.0[3]) % 4].clone()
    }

    fn of_users(self, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
        let (first, second) = (self.name(1), self.name(2));
        let path = Path::new(["/", "/p/"][usize::from(self.0[3] & 1)]).unwrap();
        match self.0[0] % 8 {
            0 | 1 => {
                let boundary = (self.0[3] & 2 != 0).then(|| self.arn(2));
                let tags = tags(&[("k", "v"), (if self.0[3] & 4 == 0 { "K" } else { "l" }, "w")]);
                document.create_user(&NewUser { name: first, path, boundary, tags }, cx).map(|_| ())
            }
            2 => document.update_user(&first, Some(&second), Some(&path)),
            3 => document.delete_user(&first),
            4 => document.create_group(&first, &path, cx).map(|_| ()),
            5 => document.update_group(&first, Some(&second), None),
            6 => document.delete_group(&first),
            _ if self.0[3] & 1 == 0 => document.remove_user_from_group(&first, &second),
            _ => document.add_user_to_group(&first, &second),
        }
    }

    fn of_policies(self, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
        let version = u32::from(self.0[2] % 7);
        match self.0[0] % 8 {
            0 | 1 => {
                let new = NewPolicy { document: self.document(), ..new_policy(self.name(1).as_str()) };
                document.create_policy(&new, cx).map(|_| ())
            }
            2 => document.delete_policy(&self.arn(1)),
            3 => {
                let is_default = self.0[2] & 1 == 0;
                document.create_policy_version(&self.arn(1), &self.document(), is_default, cx).map(|_| ())
            }
            4 => document.delete_policy_version(&self.arn(1), version),
            5 => document.set_default_policy_version(&self.arn(1), version),
            6 => document.attach_policy(&self.holder(1), &self.arn(2)),
            _ => document.detach_policy(&self.holder(1), &self.arn(2)),
        }
    }

    fn of_others(self, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
        match self.0[0] % 8 {
            0 | 1 => {
                let policy = (self.0[2] & 1 == 0).then(|| self.document());
                let new = NewKey { owner: self.owner(1), expires: None, policy, description: None };
                document.create_access_key(&new, cx).map(|_| ())
            }
            2 => document.update_access_key(&self.owner(1), &self.key(document), KeyStatus::Inactive, cx.now),
            3 => document.delete_access_key(&self.owner(1), &self.key(document)),
            4 => document.put_inline_policy(&self.holder(1), &self.name(2), &self.document(), cx),
            5 => document.delete_inline_policy(&self.holder(1), &self.name(2)),
            6 => {
                let arn = self.arn(2);
                document.set_boundary(&self.holder(1), (self.0[3] & 1 == 0).then_some(&arn))
            }
            _ if self.0[3] & 1 == 0 => {
                document.tag(&self.tagged(), &tags(&[(NAMES[usize::from(self.0[2] % 4)], "v")]))
            }
            _ => document.untag(&self.tagged(), &[TagKey::new(NAMES[usize::from(self.0[2] % 4)]).unwrap()]),
        }
    }

    fn provider(self, at: usize) -> ProviderArn {
        provider(["idp.lab", "idp.lab/a", "idp.lab/A"][usize::from(self.0[at] % 3)])
    }

    fn of_roles(self, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
        let name = self.name(1);
        match self.0[0] % 8 {
            0 | 1 => {
                let boundary = (self.0[3] & 4 != 0).then(|| self.arn(2));
                let tags = tags(&[("k", "v"), (if self.0[3] & 8 == 0 { "K" } else { "l" }, "w")]);
                let new = NewRole { trust: self.document(), boundary, tags, ..new_role(name.as_str()) };
                document.create_role(&new, cx).map(|_| ())
            }
            2 => document.delete_role(&name),
            3 => document.update_role(&name, None, Some(u32::from(self.0[2]) * 300)),
            4 => document.update_trust(&name, &self.document(), cx),
            5 if self.0[3] & 1 == 0 => document.delete_provider(&self.provider(1)),
            5 => document.set_role_disabled(&name, self.0[2] & 1 == 0),
            6 => {
                let url = self.provider(1).url().clone();
                let ids = (0..self.0[3]).map(|number| number.to_string().into()).collect();
                let prints = (0..self.0[2] % 7).map(|number| format!("{number:040}").into()).collect();
                let new = NewProvider {
                    url,
                    is_http: false,
                    client_ids: ids,
                    thumbprints: prints,
                    tags: Tags::new(),
                };
                document.create_provider(&new, cx).map(|_| ())
            }
            _ if self.0[3] & 1 == 0 => {
                document.add_client_id(&self.provider(1), NAMES[usize::from(self.0[2] % 4)])
            }
            _ => document.remove_client_id(&self.provider(1), NAMES[usize::from(self.0[2] % 4)]),
        }
    }

    fn make(self, document: &mut AccountDocument, cx: &Context<'_>) -> Result<(), IamError> {
        match self.0[0] / 8 % 4 {
            0 => self.of_users(document, cx),
            1 => self.of_policies(document, cx),
            2 => self.of_roles(document, cx),
            _ => self.of_others(document, cx),
        }
    }
}

/// Returns all ids that are there.
fn ids(document: &AccountDocument) -> HashSet<String> {
    let unique = document.unique_ids().into_iter().map(|(_, _, id)| id.to_string());
    unique.chain(document.keys().map(|key| key.id.to_string())).collect()
}

/// Makes the steps. After each the rules hold, and the JSON is read as what was written; one that
/// fails has changed nothing. Returns how many succeeded.
fn walk(steps: &[[u8; 4]], fill: &Fill<'_>, forget_ids: bool) -> usize {
    let keys = master_keys();
    let cx = context(&keys, fill);
    let (mut document, mut made) = (document(), 0);
    let (mut seen, mut there) = (HashSet::new(), HashSet::new());
    for step in steps.iter().copied().map(Step) {
        let before = document.to_json().unwrap();
        let result = step.make(&mut document, &cx);
        let after = document.to_json().unwrap();
        if result.is_err() {
            assert_eq!(before, after, "{step:?} failed, and changed something: {result:?}");
            continue;
        }
        made += 1;
        let read = AccountDocument::read(&after).unwrap_or_else(|e| panic!("after {step:?}: {e}"));
        assert_eq!(read.to_json().unwrap(), after, "{step:?}");
        let now = ids(&document);
        for id in now.difference(&there) {
            assert!(seen.insert(id.clone()) || forget_ids, "{id} was there before");
        }
        there = now;
    }
    for key in document.root_keys.clone() {
        assert!(document.secret_of(&KeyOwner::Root, &key.id, &keys).unwrap().is_some());
    }
    for (name, user) in &document.users {
        for key in &user.keys {
            // Also of users that have another name by now.
            let owner = KeyOwner::User(name.clone());
            assert!(document.secret_of(&owner, &key.id, &keys).unwrap().is_some());
        }
    }
    made
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rules_hold_after_every_change(steps in prop::collection::vec(any::<[u8; 4]>(), 1..150)) {
        walk(&steps, &system_random, false);
    }

    /// With numbers of which there are few, ids are drawn that are there, and drawn again.
    #[test]
    fn no_id_is_there_twice(steps in prop::collection::vec(any::<[u8; 4]>(), 1..150)) {
        let last = AtomicU8::new(0);
        let few = |bytes: &mut [u8]| -> Result<(), NoRandomNumbers> {
            bytes.fill(last.fetch_add(1, Ordering::Relaxed) / 2 % 8);
            Ok(())
        };
        walk(&steps, &few, true);
    }
}

/// The sequences are no good if most of what they do fails.
#[test]
fn many_of_the_changes_succeed() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec(any::<[u8; 4]>(), 2_000..2_001);
    let steps = steps.new_tree(&mut runner).unwrap().current();
    let made = walk(&steps, &system_random, false);
    assert!(made > 400, "only {made}");
}
