use backend::{PutRequest, Versioning, WriteOptions, WriteReceipt};
use http::StatusCode;
use iam::{ConditionKey, request_tags};
use policy::Value;
use s3_types::{ActionSet, Checksum, Conditions, ETag, ObjectLock, ObjectMetadata, Tags};
use s3_wire::Result;
use s3_wire::headers::{
    ChecksumRequest, Md5Of, append_checksum, etag_value, lock_needs_digest, object_metadata, object_tags,
    write_conditions,
};

use crate::access::Authorized;
use crate::body::{DigestPlan, receive};
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::shown;
use crate::outcome::Outcome;
use crate::reply::{self, Reply};

/// PutObject.
pub struct PutObject {
    metadata: ObjectMetadata,
    tags: Tags,
    lock: ObjectLock,
    conditions: Conditions,
    checksum: ChecksumRequest,
}

impl<'a> Handler<'a> for PutObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let put = Self {
            metadata: object_metadata(call.headers)?,
            tags: object_tags(call.headers)?,
            lock: values::new_lock(call)?,
            conditions: write_conditions(call.headers)?,
            checksum: ChecksumRequest::parse(call.headers)?,
        };
        let has_digest = put.checksum.algorithm.is_some() || put.checksum.content_md5.is_some();
        if put.lock.is_empty() || has_digest { Ok(put) } else { Err(lock_needs_digest()) }
    }

    fn about(&self) -> About<'_> {
        About { version: None, conditions: Some(&self.conditions) }
    }

    fn needs(&self, call: &Call<'a>) -> ActionSet {
        let own = values::with_tags(&self.tags, self.about().actions(call.action()));
        values::with_lock(&self.lock, own)
    }

    fn value<'v>(&'v self, call: &'v Call<'a>, key: ConditionKey) -> Value<'v> {
        let redirect = self.metadata.website_redirect_location.as_deref();
        match key {
            ConditionKey::WebsiteRedirectLocation => redirect.into(),
            _ if values::is_of_lock(key) => values::of_lock(&self.lock, call.cx.now, key),
            _ => request_tags(self.tags.as_slice(), key).or_else(|| values::of_new_object(call, key)),
        }
    }

    async fn perform(self, mut call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?;
        let failed = call.failed();
        let plan = DigestPlan::new(call.gateway.storage.capabilities(), &call.gateway.digests);
        let body = call.decode_body()?;
        let options = WriteOptions {
            metadata: self.metadata,
            tags: self.tags,
            lock: self.lock,
            conditions: self.conditions,
            size_hint: Some(body.length()),
        };
        let mut writer =
            storage.put_object(PutRequest { object, options, check: None }).await.map_err(failed)?;
        let digests = receive(body, writer.as_mut(), self.checksum, Md5Of::Object, plan, failed).await?;
        let receipt = storage.commit(writer, digests).await.map_err(failed)?;
        Ok(Outcome::done(reply_to_write(&receipt), did_write(receipt, call.versioning)))
    }
}

/// Returns the effects of a write in a bucket with this versioning.
pub fn did_write(receipt: WriteReceipt, versioning: Versioning) -> Did {
    // A write makes the null version only where versioning is suspended.
    let version = match versioning {
        Versioning::Suspended => shown(receipt.version, versioning),
        Versioning::Unset | Versioning::Enabled => receipt.version,
    };
    Did { object_bytes: Some(receipt.size_bytes), version }
}

/// Returns the answer. S3 does not name the null version here, which a PUT makes where versioning
/// is suspended; it names it in answers of copies and completions.
fn reply_to_write(receipt: &WriteReceipt) -> Reply {
    let mut reply = reply::empty(StatusCode::OK);
    reply_headers(&mut reply, &receipt.etag, receipt.checksum.as_ref());
    reply::set_version(reply.headers_mut(), receipt.version.as_ref());
    reply
}

/// Sets the headers for the ETag and the checksum of what was written.
pub fn reply_headers(reply: &mut Reply, etag: &ETag, checksum: Option<&Checksum>) {
    reply.headers_mut().insert(http::header::ETAG, etag_value(etag));
    if let Some(checksum) = checksum {
        append_checksum(reply.headers_mut(), checksum);
    }
}

#[cfg(test)]
mod tests {
    use s3_types::{Timestamp, VersionId};

    use super::*;

    #[test]
    fn a_version_is_named_where_versions_are_kept() {
        let version = VersionId::new("3sL4kqtJlcpXroDTDmJ").unwrap();
        let receipt = WriteReceipt {
            etag: ETag::Md5([0; 16]),
            checksum: None,
            last_modified: Timestamp::UNIX_EPOCH,
            size_bytes: 0,
            version: None,
        };
        let named =
            |receipt: &WriteReceipt| reply_to_write(receipt).headers().get("x-amz-version-id").cloned();
        assert_eq!(named(&receipt), None);
        let told = |versioning| did_write(receipt.clone(), versioning).version;
        let of_each = [Versioning::Unset, Versioning::Enabled, Versioning::Suspended].map(told);
        assert_eq!(of_each, [None, None, Some(VersionId::null())]);
        let receipt = WriteReceipt { version: Some(version), ..receipt };
        assert_eq!(named(&receipt).unwrap(), "3sL4kqtJlcpXroDTDmJ");
    }
}
