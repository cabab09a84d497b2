use backend::{DeleteReceipt, DeleteRequest, Versioning};
use http::{HeaderValue, StatusCode};
use s3_types::{Conditions, VersionId};
use s3_wire::Result;
use s3_wire::headers::delete_conditions;

use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::version_id;
use crate::outcome::Outcome;
use crate::reply::{self, DELETE_MARKER};

/// DeleteObject.
pub struct DeleteObject {
    version: Option<VersionId>,
    conditions: Conditions,
    bypasses: bool,
}

impl<'a> Handler<'a> for DeleteObject {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let version = version_id(call.query.get("versionId"))?;
        let (conditions, bypasses) = (delete_conditions(call.headers)?, values::bypasses(call)?);
        Ok(Self { version, conditions, bypasses })
    }

    fn about(&self) -> About<'_> {
        About { version: self.version.as_ref(), conditions: Some(&self.conditions) }
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?.of(self.version.as_ref());
        let storage =
            if self.bypasses { storage.with_bypass(&|key| self.about().value(key)) } else { storage };
        let bypass_governance = self.bypasses;
        let request = DeleteRequest { object, conditions: &self.conditions, bypass_governance, check: None };
        let receipt = storage.delete_object(request).await.map_err(call.failed())?;
        Ok(outcome(receipt, self.version, call.versioning))
    }
}

/// Returns the outcome of a delete. A version that the request named is shown also if it did not
/// exist.
fn outcome(receipt: DeleteReceipt, named: Option<VersionId>, versioning: Versioning) -> Outcome {
    let DeleteReceipt { existed: _, version, delete_marker } = receipt;
    let version = version.or_else(|| match named {
        Some(named) => versioning.is_set().then_some(named),
        // Whether versions are kept was decided by a newer document, if there is one.
        None => delete_marker.then(VersionId::null),
    });
    let mut reply = reply::empty(StatusCode::NO_CONTENT);
    reply::set_version(reply.headers_mut(), version.as_ref());
    if delete_marker {
        reply.headers_mut().insert(DELETE_MARKER, HeaderValue::from_static("true"));
    }
    Outcome::done(reply, Did { object_bytes: None, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(
        receipt: (Option<&str>, bool),
        named: Option<&str>,
        versioning: Versioning,
    ) -> [Option<String>; 2] {
        let id = |text: &str| VersionId::new(text).unwrap();
        let receipt = DeleteReceipt { existed: true, version: receipt.0.map(id), delete_marker: receipt.1 };
        let outcome = outcome(receipt, named.map(id), versioning);
        let headers = outcome.reply.headers();
        let told = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned());
        let version = outcome.effects.so_far().and_then(|did| did.version.as_ref());
        assert_eq!(version.map(ToString::to_string), told("x-amz-version-id"));
        [told("x-amz-version-id"), told("x-amz-delete-marker")]
    }

    /// The answers are those recorded at Amazon S3.
    #[test]
    fn what_a_delete_tells() {
        use Versioning::{Enabled, Suspended, Unset};
        let some = |text: &str| Some(text.to_owned());
        for (receipt, named, versioning, expected) in [
            ((None, false), None, Unset, [None, None]),
            ((None, false), Some("null"), Unset, [None, None]),
            // A delete marker that was made, one that was removed, and a version that was.
            ((Some("m"), true), None, Enabled, [some("m"), some("true")]),
            ((Some("m"), true), Some("m"), Enabled, [some("m"), some("true")]),
            ((Some("v"), false), Some("v"), Enabled, [some("v"), None]),
            // One that is the null version, which the gateway may not have known of.
            ((None, true), None, Suspended, [some("null"), some("true")]),
            ((None, true), None, Unset, [some("null"), some("true")]),
            ((None, true), Some("null"), Enabled, [some("null"), some("true")]),
            // The null version, and a version that did not exist.
            ((None, false), Some("null"), Enabled, [some("null"), None]),
            ((None, false), Some("v"), Enabled, [some("v"), None]),
        ] {
            assert_eq!(told(receipt, named, versioning), expected, "{receipt:?} {named:?} {versioning:?}");
        }
    }
}
