use std::sync::Arc;

use s3_types::{Timestamp, UnixName};

use super::*;
use crate::account::{Account, AccountId};
use crate::credential::{AccessKeyId, Credential, SecretKey};
use crate::documents::Tag;
use crate::identities::Unidentified;
use crate::language::Language;
use crate::model::*;
use crate::sealing::MasterKeys;
use crate::session::{KeyKind, Principal, Session};
use crate::unique_id::system_random;

mod directory;
mod keys;
mod principals;
mod sessions;

const ACCOUNT: &str = "123456789012";
const OTHER: &str = "210987654321";
const ROOT_KEY: &str = "the-root-of-the-server";
const FIRST: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECOND: &str = "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

/// A policy that allows an action.
fn allows(action: &str) -> Document {
    let text = format!(
        r#"{{"Version":"2012-10-17","Statement":{{"Effect":"Allow","Action":"{action}","Resource":"*"}}}}"#
    );
    Document::new(&text).unwrap()
}

fn trust() -> Document {
    Document::new(
        r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"123456789012"},"Action":"sts:AssumeRole"}}"#,
    )
    .unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The user id, if it is known without asking the system.
fn uid_of(unix: Option<&UnixName>) -> Option<u32> {
    match unix {
        Some(UnixName::Ids(identity)) => Some(identity.account.uid()),
        Some(UnixName::Account(_) | UnixName::User(_)) | None => None,
    }
}

fn id(text: &str) -> AccountId {
    AccountId::new(text).unwrap()
}

fn keys(lines: &[&str]) -> Arc<Keys> {
    Arc::new(Keys::new((!lines.is_empty()).then(|| MasterKeys::read(&lines.join("\n")).unwrap())))
}

fn credential(access_key: &str) -> Credential {
    Credential {
        access_key: AccessKeyId::new(access_key).unwrap(),
        secret_key: SecretKey::new("a-secret-of-mine").unwrap(),
    }
}

/// The root of the server, whose account is the first.
fn root() -> Arc<Session> {
    let principal = Principal::root(Arc::new(Account::new(id(ACCOUNT))), None);
    Arc::new(Session::new(principal, credential(ROOT_KEY), KeyKind::Root))
}

/// Changes a document.
fn with<T>(
    document: &mut AccountDocument,
    change: impl FnOnce(&mut AccountDocument, &Context<'_>) -> Result<T, IamError>,
) -> T {
    let keys = MasterKeys::read(FIRST).unwrap();
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let cx = Context { now, fill: &system_random, policies: &Language, master_keys: Some(&keys) };
    change(document, &cx).unwrap()
}

fn new_user(text: &str) -> NewUser {
    NewUser { name: name(text), path: Path::new("/staff/").unwrap(), boundary: None, tags: Tags::new() }
}

fn key_of(document: &mut AccountDocument, owner: KeyOwner, policy: Option<Document>) -> Credential {
    with(document, |document, cx| {
        document.create_access_key(&NewKey { owner, expires: None, policy, description: None }, cx)
    })
}

fn user_key(document: &mut AccountDocument, user: &str) -> Credential {
    key_of(document, KeyOwner::User(name(user)), None)
}

/// An account in which everything is that a state is made of.
fn full(account: &str) -> AccountDocument {
    let mut document = AccountDocument::new(id(account), "lab");
    with(&mut document, |document, cx| {
        let holder = Holder::User(name("alice"));
        document.create_user(&new_user("alice"), cx)?;
        document.create_group(&name("dev"), &Path::root(), cx)?;
        document.add_user_to_group(&name("dev"), &name("alice"))?;
        document.put_inline_policy(&holder, &name("own"), &allows("s3:GetObject"), cx)?;
        document.put_inline_policy(
            &Holder::Group(name("dev")),
            &name("of-dev"),
            &allows("s3:ListBucket"),
            cx,
        )?;
        let new = NewPolicy {
            name: name("p"),
            path: Path::root(),
            description: None,
            document: allows("s3:*"),
            tags: Tags::new(),
        };
        let arn = document.create_policy(&new, cx)?;
        document.attach_policy(&Holder::Group(name("dev")), &arn)?;
        document.set_boundary(&holder, Some(&arn))?;
        let tags = [("Team", "a"), ("Site", "x")];
        let tags = tags.map(|(key, value)| (TagKey::new(key).unwrap(), TagValue::new(value).unwrap()));
        document.tag(&Tagged::User(name("alice")), &Tags::from(tags.clone()))?;
        let new = NewRole {
            name: name("reader"),
            path: Path::new("/r/").unwrap(),
            trust: trust(),
            description: None,
            max_session: None,
            boundary: None,
            tags: Tags::from(tags),
        };
        document.create_role(&new, cx)?;
        let role = Holder::Role(name("reader"));
        document.put_inline_policy(&role, &name("own"), &allows("s3:GetObject"), cx)?;
        document.set_user_posix(&name("alice"), Some(&Posix::ids(1_000, 100, vec![27]).unwrap()))
    });
    document
}

fn policy_arn(account: &str) -> PolicyArn {
    PolicyArn::new(&format!("arn:aws:iam::{account}:policy/p")).unwrap()
}

/// Makes the state of these documents.
fn state_with(documents: &[&AccountDocument], keys: &Arc<Keys>, compiler: &mut Compiler) -> Snapshot {
    let entries: Vec<_> = documents
        .iter()
        .map(|document| {
            let json = document.to_json().unwrap();
            let account = document.account.clone();
            let entry = Entry::read(&account, &json, Tag::of_bytes(&json), keys, compiler);
            (account, entry)
        })
        .collect();
    Snapshot::new(1, &root(), entries, keys, compiler)
}

fn state(documents: &[&AccountDocument]) -> Snapshot {
    state_with(documents, &keys(&[FIRST]), &mut Compiler::new())
}

#[track_caller]
fn session(state: &Snapshot, key: &Credential) -> Arc<Session> {
    state.by_access_key(key.access_key.as_str()).unwrap().unwrap()
}
