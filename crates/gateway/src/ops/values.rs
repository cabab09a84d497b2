//! The values of condition keys that several operations share.

use std::borrow::Cow;

use iam::ConditionKey;
use policy::Value;
use s3_types::{ActionSet, ObjectLock, Retention, S3Action, Tags, Timestamp};
use s3_wire::Result;
use s3_wire::headers::{bypass_governance, bypass_without_lock, object_lock};
use s3_wire::time::format_iso8601_millis;

use crate::call::Call;
use crate::errors::no_object_lock;

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

/// Returns the actions for a request that gives a new object this lock, besides `others`.
pub fn with_lock(lock: &ObjectLock, others: ActionSet) -> ActionSet {
    let ObjectLock { retention, legal_hold } = lock;
    let others = if retention.is_some() { others.and(S3Action::PutObjectRetention) } else { others };
    if legal_hold.is_some() { others.and(S3Action::PutObjectLegalHold) } else { others }
}

/// Returns the value of a condition key about the lock that a request sets; none for other keys.
pub fn of_lock(lock: &ObjectLock, now: Timestamp, key: ConditionKey) -> Value<'static> {
    let ObjectLock { retention, legal_hold } = lock;
    match key {
        ConditionKey::ObjectLockMode => retention.map(|retention| retention.mode.as_str()).into(),
        ConditionKey::ObjectLockRetainUntil => {
            let until = retention.map(|retention| format_iso8601_millis(retention.until()));
            until.map(Cow::<str>::Owned).into()
        }
        ConditionKey::ObjectLockRemainingDays => {
            let days = |retention: Retention| (retention.until().as_second() - now.as_second()) / 86_400;
            retention.map(|retention| Cow::<str>::Owned(days(retention).to_string())).into()
        }
        ConditionKey::ObjectLockLegalHold => legal_hold.map(|held| if held { "ON" } else { "OFF" }).into(),
        _ => Value::Absent,
    }
}

/// True for a condition key that [`of_lock`] has values of.
pub const fn is_of_lock(key: ConditionKey) -> bool {
    use ConditionKey as K;
    matches!(
        key,
        K::ObjectLockMode | K::ObjectLockRetainUntil | K::ObjectLockRemainingDays | K::ObjectLockLegalHold
    )
}

/// Returns the lock that a request gives a new object. Fails if nothing in the bucket can be
/// locked.
pub fn new_lock(call: &Call<'_>) -> Result<ObjectLock> {
    let lock = object_lock(call.headers, call.cx.now)?;
    if lock.is_empty() || call.has_locks { Ok(lock) } else { Err(no_object_lock()) }
}

/// True if a request asks for a retention to be bypassed (`x-amz-bypass-governance-retention`).
/// Fails if nothing in the bucket can be locked, whatever the header says.
pub fn bypasses(call: &Call<'_>) -> Result<bool> {
    match bypass_governance(call.headers) {
        Some(_) if !call.has_locks => Err(bypass_without_lock()),
        given => Ok(given == Some(true)),
    }
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
