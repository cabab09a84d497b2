//! Values of condition keys that several operations have.

use std::borrow::Cow;

use iam::ConditionKey;
use s3_types::{Conditions, ETag, ETagCondition, VersionId};

use crate::call::Call;

/// The values of a request that makes an object.
pub fn of_new_object<'v>(
    call: &Call<'v>,
    conditions: &Conditions,
    key: ConditionKey,
) -> Option<Cow<'v, str>> {
    let header = |name: &str| call.headers.get(name)?.to_str().ok().map(|text| Cow::Borrowed(text.trim()));
    match key {
        ConditionKey::Acl => header("x-amz-acl"),
        ConditionKey::StorageClass => header("x-amz-storage-class"),
        ConditionKey::IfMatch => conditions.if_match.as_ref().map(text),
        ConditionKey::IfNoneMatch => conditions.if_none_match.as_ref().map(text),
        ConditionKey::ObjectCreationOperation => Some("true".into()),
        _ => None,
    }
}

/// The values of a request that makes a part.
pub fn of_part(key: ConditionKey) -> Option<Cow<'static, str>> {
    (key == ConditionKey::ObjectCreationOperation).then_some(Cow::Borrowed("false"))
}

/// The values of a request that may name a version.
pub fn of_version(version: Option<&VersionId>, key: ConditionKey) -> Option<Cow<'_, str>> {
    version.filter(|_| key == ConditionKey::VersionId).map(|id| id.as_str().into())
}

/// The values of a listing of keys.
pub fn of_listing<'v>(
    call: &Call<'_>,
    prefix: &'v str,
    delimiter: Option<&'v str>,
    max_keys: u32,
    key: ConditionKey,
) -> Option<Cow<'v, str>> {
    let asked = |name| call.query.get(name).is_some();
    match key {
        ConditionKey::Prefix => asked("prefix").then_some(prefix.into()),
        ConditionKey::Delimiter => delimiter.map(Into::into),
        ConditionKey::MaxKeys => asked("max-keys").then(|| max_keys.to_string().into()),
        _ => None,
    }
}

fn text(condition: &ETagCondition) -> Cow<'static, str> {
    match condition {
        ETagCondition::Any => "*".into(),
        ETagCondition::OneOf(etags) => {
            let etags: Vec<_> = etags.iter().map(ETag::quoted).collect();
            etags.join(", ").into()
        }
    }
}
