//! Requests and documents for the tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::borrow::Cow;
use std::collections::HashMap;

use policy::{Facts, Key, Kind, Malformed, Party, PartyKind, Policy, Value};

pub const ACCOUNT: &str = "111122223333";
pub const OTHER: &str = "444455556666";
pub const CANONICAL: &str = "6906902c2fe356a8f148460733938d0c4d6a7a0489ea72af3564e5c5808a032e";

/// Values by the names of keys in small letters. Of a key with several, those after the first are
/// `name#1` and so on.
#[derive(Default, Clone, Debug)]
pub struct Context(pub HashMap<String, Vec<String>>);

impl Context {
    pub fn of(values: &[(&str, &str)]) -> Self {
        let mut context = Self::default();
        for (key, value) in values {
            context.0.entry(key.to_lowercase()).or_default().push((*value).to_owned());
        }
        context
    }
}

/// The value that stands for "not looked at yet".
pub const UNKNOWN: &str = "(unknown)";

impl Facts for Context {
    fn value(&self, key: &Key) -> Value<'_> {
        let Some(values) = self.0.get(&key.to_string().to_lowercase()) else { return Value::Absent };
        match &values[..] {
            [one] if one == UNKNOWN => Value::Unknown,
            [one] if !key.is_many() => Value::text(one),
            many => Value::Many(many.iter().map(|value| Cow::Borrowed(&**value)).collect()),
        }
    }
}

pub fn parse(document: &str, kind: Kind<'_>) -> Result<Policy, Malformed> {
    Policy::parse(document.as_bytes(), kind)
}

pub fn identity(document: &str) -> Policy {
    parse(document, Kind::Role).unwrap_or_else(|error| panic!("{error}: {document}"))
}

pub fn bucket(name: &str, document: &str) -> Policy {
    parse(document, Kind::Bucket(name)).unwrap_or_else(|error| panic!("{error}: {document}"))
}

pub fn user<'a>(account: &'a str, arn: &'a str) -> Party<'a> {
    Party { kind: PartyKind::User, account, canonical_id: "", arn, issuer: None, id: None, issuer_id: None }
}
