//! The values of condition keys that several operations share.

use std::borrow::Cow;

use iam::ConditionKey;
use policy::Value;
use s3_types::{ActionSet, S3Action, Tags};

use crate::call::Call;

/// Returns the value of a condition key for a request that makes an object.
pub fn of_new_object<'v>(call: &Call<'v>, key: ConditionKey) -> Value<'v> {
    match key {
        ConditionKey::ObjectCreationOperation => Value::text("true"),
        _ => of_new_upload(call, key),
    }
}

/// Returns the actions for a request that sets these tags on a new object, besides `others`.
pub fn with_tags(tags: &Tags, others: ActionSet) -> ActionSet {
    if tags.is_empty() { others } else { others.and(S3Action::PutObjectTagging) }
}

/// Returns the value of a condition key for a request that begins an upload.
pub fn of_new_upload<'v>(call: &Call<'v>, key: ConditionKey) -> Value<'v> {
    // Their case does not matter to what is done: a policy sees S3's.
    match key {
        ConditionKey::Acl => cased(header(call, "x-amz-acl"), str::to_ascii_lowercase),
        ConditionKey::StorageClass => cased(header(call, "x-amz-storage-class"), str::to_ascii_uppercase),
        _ => of_part(key),
    }
}

/// Returns the value of a condition key for a request that makes a part.
pub fn of_part(key: ConditionKey) -> Value<'static> {
    (key == ConditionKey::ObjectCreationOperation).then_some("false").into()
}

fn cased<'v>(header: Option<&str>, case: impl FnOnce(&str) -> String) -> Value<'v> {
    header.map_or(Value::Absent, |value| Value::One(case(value).into()))
}

/// Returns the value of a condition key for a listing of keys.
pub fn of_listing<'v>(
    call: &Call<'_>,
    prefix: &'v str,
    delimiter: Option<&'v str>,
    max_keys: u32,
    key: ConditionKey,
) -> Value<'v> {
    let asked = |name| call.query.get(name).is_some();
    match key {
        ConditionKey::Prefix => asked("prefix").then_some(prefix).into(),
        ConditionKey::Delimiter => delimiter.into(),
        ConditionKey::MaxKeys => asked("max-keys").then(|| Cow::Owned(max_keys.to_string())).into(),
        _ => Value::Absent,
    }
}

/// Returns a header without the spaces around it.
pub fn header<'v>(call: &Call<'v>, name: &str) -> Option<&'v str> {
    call.headers.get(name)?.to_str().ok().map(str::trim)
}
