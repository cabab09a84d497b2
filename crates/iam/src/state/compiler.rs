use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};

use aws_lc_rs::digest::{SHA256, digest};
use policy::{Kind, Malformed, Policy, Version};

use crate::model::BUILT_IN;

/// The policy that replaces one that cannot be read, since that might have denied anything.
const DENIES_ALL: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}"#;

/// The kind of policy that a text is compiled as. Policies of identities differ only in their size
/// limits, which were checked when they were put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A policy of a user, group, role or session.
    Identity,
    /// A trust policy, which says who may assume a role.
    Trust,
}

/// The built-in policies, compiled.
pub(crate) type BuiltIns = HashMap<&'static str, Arc<Policy>>;

/// Compiles policies. A text is compiled once, and kept as long as something uses it.
pub(crate) struct Compiler {
    /// The compiled policies by a hash of form and text.
    known: HashMap<[u8; 32], Weak<Policy>>,
    built_in: Arc<BuiltIns>,
    denies_all: Arc<Policy>,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Compiler({} policies)", self.known.len())
    }
}

impl Compiler {
    pub fn new() -> Self {
        let mut this = Self { known: HashMap::new(), built_in: Arc::default(), denies_all: denies_all() };
        let compiled = BUILT_IN
            .iter()
            .filter_map(|policy| Some((policy.arn, this.compile(Form::Identity, policy.document).ok()?)));
        this.built_in = Arc::new(compiled.collect());
        this
    }

    /// Compiles a document, or returns the policy that was compiled from it before.
    pub fn compile(&mut self, form: Form, text: &str) -> Result<Arc<Policy>, Malformed> {
        let hash = hash(form, text);
        if let Some(policy) = hash.and_then(|hash| self.known.get(&hash)).and_then(Weak::upgrade) {
            return Ok(policy);
        }
        let policy = Arc::new(parse(form, text)?);
        if let Some(hash) = hash {
            self.known.insert(hash, Arc::downgrade(&policy));
        }
        Ok(policy)
    }

    /// Returns the policy that denies everything.
    pub fn denies_all(&self) -> Arc<Policy> {
        Arc::clone(&self.denies_all)
    }

    /// Returns the built-in policies by ARN.
    pub fn built_in(&self) -> Arc<BuiltIns> {
        Arc::clone(&self.built_in)
    }

    /// Forgets the policies that nothing uses any more.
    pub fn forget_unused(&mut self) {
        self.known.retain(|_, policy| policy.strong_count() > 0);
    }
}

/// Returns the hash that stands for a document. It is never `None`, since hashes have 32 bytes.
fn hash(form: Form, text: &str) -> Option<[u8; 32]> {
    let form: &[u8] = if form == Form::Trust { b"trust\0" } else { b"identity\0" };
    digest(&SHA256, &[form, text.as_bytes()].concat()).as_ref().try_into().ok()
}

/// Compiles a document, without keeping the result.
pub(crate) fn parse(form: Form, text: &str) -> Result<Policy, Malformed> {
    // The largest of the policies of identities.
    let kind = if form == Form::Trust { Kind::Trust } else { Kind::Role };
    Policy::parse(text.as_bytes(), kind)
}

/// Makes the policy that denies everything.
pub(crate) fn denies_all() -> Arc<Policy> {
    let policy = parse(Form::Identity, DENIES_ALL);
    // It is one, as a test sees.
    let without = |_| Policy {
        version: Version::V2012,
        id: None,
        statements: Box::default(),
        inert: Box::default(),
        size: 0,
    };
    Arc::new(policy.unwrap_or_else(without))
}

#[cfg(test)]
mod tests {
    use policy::Effect;

    use super::*;

    #[test]
    fn equal_texts_are_one_policy_as_long_as_it_is_used() {
        let mut compiler = Compiler::new();
        let text = DENIES_ALL.replace("Deny", "Allow").replace(r#""Action":"*""#, r#""Action":"s3:*Object""#);
        let one = compiler.compile(Form::Identity, &text).unwrap();
        assert!(Arc::ptr_eq(&one, &compiler.compile(Form::Identity, &text).unwrap()));
        assert!(!Arc::ptr_eq(&one, &compiler.compile(Form::Identity, &format!("{text} ")).unwrap()));
        compiler.compile(Form::Trust, &text).unwrap_err();
        compiler.compile(Form::Identity, "{").unwrap_err();
        compiler.forget_unused();
        assert_eq!(compiler.known.len(), BUILT_IN.len() + 1);
        drop(one);
        compiler.forget_unused();
        assert_eq!(compiler.known.len(), BUILT_IN.len());
        assert_eq!(compiler.built_in.len(), BUILT_IN.len());
        let built_in = compiler.compile(Form::Identity, BUILT_IN[0].document).unwrap();
        assert!(Arc::ptr_eq(&built_in, &compiler.built_in()[BUILT_IN[0].arn]));
    }

    #[test]
    fn what_cannot_be_read_denies_everything() {
        let policy = denies_all();
        assert_eq!((policy.statements.len(), policy.statements[0].effect), (1, Effect::Deny));
    }
}
