use backend::{BackendError, LockChange, LockReceipt, LockRequest, PutLockRequest, VersionLock};
use http::{Method, StatusCode};
use iam::ConditionKey;
use policy::Value;
use s3_types::{ObjectLock, VersionId};
use s3_wire::headers::ChecksumRequest;
use s3_wire::xml::{check_retention, legal_hold, parse_legal_hold, parse_retention, retention};
use s3_wire::{ErrorCode, Result, S3Error, limits};

use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::{shown, version_id};
use crate::outcome::Outcome;
use crate::reply;

/// GetObjectRetention.
pub struct GetObjectRetention(Named);

/// GetObjectLegalHold.
pub struct GetObjectLegalHold(Named);

/// PutObjectRetention.
pub struct PutObjectRetention {
    named: Named,
    bypasses: bool,
}

/// PutObjectLegalHold.
pub struct PutObjectLegalHold(Named);

/// The version that a request names.
struct Named(Option<VersionId>);

impl Named {
    fn parse(call: &Call<'_>) -> Result<Self> {
        Ok(Self(version_id(call.query.get("versionId"))?))
    }

    fn about(&self) -> About<'_> {
        About::version(self.0.as_ref())
    }

    /// Returns the lock of the version; an error if it has none of the kind that is asked for.
    async fn read<T>(
        &self,
        call: &Call<'_>,
        storage: &Authorized<'_>,
        part: impl Fn(ObjectLock) -> Option<T>,
    ) -> Result<(T, Option<VersionId>)> {
        let request = LockRequest { object: call.object()?.of(self.0.as_ref()), check: None };
        let read = storage.object_lock(call.action(), request).await.map_err(of_lock(call))?;
        let VersionLock { lock, version } = read;
        match part(lock) {
            Some(part) => Ok((part, version)),
            None => Err(ErrorCode::NoSuchObjectLockConfiguration.into()),
        }
    }

    /// Changes the lock, with the permission for this change.
    async fn put(&self, call: &Call<'_>, lock: ObjectLock, change: LockChange) -> Result<Outcome> {
        let values = |key| self.about().value(key).or_else(|| values::of_lock(&lock, call.cx.now, key));
        let storage = call.authorize(call.subject(), self.about().actions(call.action()), &values)?;
        let bypasses = matches!(change, LockChange::Retention { bypass_governance: true, .. });
        let storage = if bypasses { storage.with_bypass(&values) } else { storage };
        let request = PutLockRequest { object: call.object()?.of(self.0.as_ref()), change, check: None };
        let LockReceipt { version } = storage.put_object_lock(request).await.map_err(of_lock(call))?;
        let did = Did { object_bytes: None, version: shown(version, call.versioning) };
        Ok(Outcome::done(reply::empty(StatusCode::OK), did))
    }
}

/// Returns a value that is not known yet for a condition key about the lock, which is in the
/// document. Whoever may set no lock at all is refused before that is read. All others are asked
/// about again.
fn unknown<'v>(key: ConditionKey) -> Value<'v> {
    if values::is_of_lock(key) { Value::Unknown } else { Value::Absent }
}

/// Returns the function that turns errors of the storage into S3's. A delete marker has no lock,
/// also if it is the current version.
fn of_lock<'a>(call: &Call<'a>) -> impl Fn(BackendError) -> S3Error + Copy + Send + Sync + use<'a> {
    let failed = call.failed();
    move |error| match error {
        BackendError::DeleteMarker { marker, .. } => {
            failed(BackendError::DeleteMarker { marker, is_named: true })
        }
        error => failed(error),
    }
}

fn answer(call: &Call<'_>, document: String, version: Option<VersionId>) -> Outcome {
    debug_assert_eq!(call.head.method, Method::GET, "the answer of a read");
    let did = Did { object_bytes: None, version: shown(version, call.versioning) };
    Outcome::done(reply::ok_xml(document), did)
}

impl<'a> Handler<'a> for GetObjectRetention {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Named::parse(call).map(Self)
    }

    fn about(&self) -> About<'_> {
        self.0.about()
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (found, version) = self.0.read(&call, &storage, |lock| lock.retention).await?;
        Ok(answer(&call, retention(found), version))
    }
}

impl<'a> Handler<'a> for GetObjectLegalHold {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Named::parse(call).map(Self)
    }

    fn about(&self) -> About<'_> {
        self.0.about()
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (held, version) = self.0.read(&call, &storage, |lock| lock.legal_hold).await?;
        Ok(answer(&call, legal_hold(held), version))
    }
}

impl<'a> Handler<'a> for PutObjectRetention {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Ok(Self { named: Named::parse(call)?, bypasses: values::bypasses(call)? })
    }

    fn about(&self) -> About<'_> {
        self.named.about()
    }

    fn value<'v>(&'v self, _: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        unknown(key)
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let retention = call.read_document(checksum, limits::XML_BODY_BYTES_MAX, parse_retention).await?;
        check_retention(retention, call.cx.now)?;
        let lock = ObjectLock { retention, legal_hold: None };
        let change = LockChange::Retention { retention, bypass_governance: self.bypasses };
        self.named.put(&call, lock, change).await
    }
}

impl<'a> Handler<'a> for PutObjectLegalHold {
    fn parse(call: &Call<'a>) -> Result<Self> {
        Named::parse(call).map(Self)
    }

    fn about(&self) -> About<'_> {
        self.0.about()
    }

    fn value<'v>(&'v self, _: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        unknown(key)
    }

    async fn perform(self, mut call: Call<'a>, _: Authorized<'a>) -> Result<Outcome> {
        let checksum = ChecksumRequest::required(call.headers)?;
        let held = call.read_document(checksum, limits::XML_BODY_BYTES_MAX, parse_legal_hold).await?;
        let lock = ObjectLock { retention: None, legal_hold: Some(held) };
        self.0.put(&call, lock, LockChange::LegalHold(held)).await
    }
}
