use backend::ListPosition;
use iam::ConditionKey;
use policy::Value;
use s3_types::VersionId;
use s3_wire::Result;
use s3_wire::headers::{self, ListStart};
use s3_wire::xml::{KeyEncoding, ListObjectVersionsResult, ListedVersion, Owner};

use super::list::{entries_reply, next_marker, page, position_of};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::NULL;
use crate::outcome::Outcome;

/// ListObjectVersions. There are no versions yet: each object is its own only version, with the id
/// `null`.
pub struct ListObjectVersions<'a>(headers::ListVersions<'a>);

impl<'a> Handler<'a> for ListObjectVersions<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListVersions::parse(call.query).map(Self)
    }

    fn value(&self, call: &Call<'a>, key: ConditionKey) -> Value<'_> {
        let Self(asked) = self;
        values::of_listing(call, asked.prefix, asked.grouping(), asked.max_keys, key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let max_keys = if asked.is_past_the_end() { 0 } else { asked.max_keys };
        let page = page(&call, &storage, asked.prefix, asked.grouping(), start_of(&asked), max_keys).await?;
        let next = next_marker(&page, asked.prefix, asked.grouping());
        let next_version = page.next.as_ref().and_then(|next| match next {
            ListPosition::AfterKey(_) => Some(NULL.to_owned()),
            ListPosition::AfterVersion { version, .. } => Some(version.as_str().to_owned()),
            ListPosition::AfterPrefix(_) => None,
        });
        let result = ListObjectVersionsResult {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            key_marker: asked.key_marker,
            version_id_marker: asked.version_id_marker.unwrap_or_default(),
            next_key_marker: next.as_deref(),
            next_version_id_marker: next_version.as_deref(),
            max_keys: asked.max_keys,
            delimiter: asked.delimiter,
            encoding_type: asked.encoding_type,
            is_truncated: page.next.is_some(),
        };
        let (writer, owner) = (result.begin(), call.owner().id.to_owned());
        let encoding = KeyEncoding::of(asked.encoding_type);
        let reply = entries_reply(writer, page, encoding, move |object, writer| {
            let entry = ListedVersion {
                key: object.key.as_str(),
                version_id: object.version.as_ref().map_or(NULL, VersionId::as_str),
                is_latest: true,
                last_modified: object.last_modified,
                etag: &object.etag,
                checksum: object.checksum.map(|c| (c.value.algorithm(), c.checksum_type)),
                size_bytes: object.size_bytes,
            };
            entry.write(writer, encoding, Owner::new(&owner));
        });
        Ok(reply.into())
    }
}

/// Returns the position at which the listing begins.
fn start_of(asked: &headers::ListVersions<'_>) -> Option<ListPosition> {
    let version = asked.version_id_marker.and_then(|id| VersionId::new(id).ok());
    Some(match (asked.start()?, version) {
        (ListStart::AfterKey(key), Some(version)) => ListPosition::AfterVersion { key, version },
        (start, _) => position_of(start),
    })
}
