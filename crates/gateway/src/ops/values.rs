//! The values of condition keys that several operations share.

use std::borrow::Cow;

use iam::ConditionKey;

use crate::call::Call;

/// Returns the value of a condition key for a request that makes an object.
pub fn of_new_object<'v>(call: &Call<'v>, key: ConditionKey) -> Option<Cow<'v, str>> {
    match key {
        ConditionKey::ObjectCreationOperation => Some("true".into()),
        _ => of_new_upload(call, key),
    }
}

/// Returns the value of a condition key for a request that begins an upload.
pub fn of_new_upload<'v>(call: &Call<'v>, key: ConditionKey) -> Option<Cow<'v, str>> {
    // Their case does not matter to what is done: a policy sees S3's.
    match key {
        ConditionKey::Acl => header(call, "x-amz-acl").map(|acl| acl.to_ascii_lowercase().into()),
        ConditionKey::StorageClass => {
            header(call, "x-amz-storage-class").map(|class| class.to_ascii_uppercase().into())
        }
        _ => of_part(key),
    }
}

/// Returns the value of a condition key for a request that makes a part.
pub fn of_part(key: ConditionKey) -> Option<Cow<'static, str>> {
    (key == ConditionKey::ObjectCreationOperation).then_some(Cow::Borrowed("false"))
}

/// Returns the value of a condition key for a listing of keys.
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

/// Returns a header without the spaces around it.
pub fn header<'v>(call: &Call<'v>, name: &str) -> Option<&'v str> {
    call.headers.get(name)?.to_str().ok().map(str::trim)
}
