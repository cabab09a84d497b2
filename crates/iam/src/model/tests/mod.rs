use s3_types::Timestamp;

use super::*;
use crate::account::AccountId;
use crate::credential::AccessKeyId;
use crate::sealing::MasterKeys;
use crate::unique_id::{Fill, system_random};

mod errors;
mod federation;
mod properties;
mod reading;

/// Stands for the language of policies, which has tests of its own: whatever begins with a brace is
/// a policy.
struct Braces;

impl PolicyCheck for Braces {
    fn check(&self, used_as: PolicyUse, document: &str) -> Result<usize, PolicyFault> {
        let chars = document.chars().filter(|c| !c.is_whitespace()).count();
        match document.starts_with('{') {
            false => Err(PolicyFault::Malformed("This policy contains invalid Json".to_owned())),
            true if chars > used_as.chars_max() => Err(PolicyFault::TooLong),
            true => Ok(chars),
        }
    }
}

const ACCOUNT: &str = "123456789012";

fn master_keys() -> MasterKeys {
    MasterKeys::read("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap()
}

fn context<'c>(keys: &'c MasterKeys, fill: &'c Fill<'c>) -> Context<'c> {
    // Not a whole second: documents have whole ones.
    let now = Timestamp::new(1_800_000_000, 500).unwrap();
    Context { now, fill, policies: &Braces, master_keys: Some(keys) }
}

fn document() -> AccountDocument {
    AccountDocument::new(AccountId::new(ACCOUNT).unwrap(), "lab")
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn policy(text: &str) -> Document {
    Document::new(text).unwrap()
}

fn arn(policy: &str) -> PolicyArn {
    PolicyArn::new(&format!("arn:aws:iam::{ACCOUNT}:policy/{policy}")).unwrap()
}

fn tags(all: &[(&str, &str)]) -> Tags {
    all.iter().map(|(key, value)| (TagKey::new(key).unwrap(), TagValue::new(value).unwrap())).collect()
}

fn new_user(text: &str) -> NewUser {
    NewUser { name: name(text), path: Path::root(), boundary: None, tags: Tags::new() }
}

fn new_policy(text: &str) -> NewPolicy {
    let (name, path) = (name(text), Path::root());
    NewPolicy { name, path, description: None, document: policy("{}"), tags: Tags::new() }
}

fn new_role(text: &str) -> NewRole {
    NewRole {
        name: name(text),
        path: Path::root(),
        trust: policy("{}"),
        description: None,
        max_session: None,
        boundary: None,
        tags: Tags::new(),
    }
}

fn provider(url: &str) -> ProviderArn {
    ProviderArn::new(&format!("arn:aws:iam::{ACCOUNT}:oidc-provider/{url}")).unwrap()
}

/// Calls `test` with a document and a context for changes.
fn with(test: impl FnOnce(&mut AccountDocument, &Context<'_>)) {
    let keys = master_keys();
    let mut document = document();
    test(&mut document, &context(&keys, &system_random));
    document.check().unwrap();
}
