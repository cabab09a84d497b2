use std::borrow::Cow;

use backend::ListPosition;
use iam::ConditionKey;
use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::{KeyEncoding, ListObjectVersionsResult, ListedVersion, Owner};

use super::list::{entries_reply, next_marker, page};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;

/// ListObjectVersions. There are no versions yet: each object is its own only version, with the id
/// `null`.
pub struct ListObjectVersions<'a>(headers::ListVersions<'a>);

impl<'a> Handler<'a> for ListObjectVersions<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListVersions::parse(call.query).map(Self)
    }

    fn value(&self, call: &Call<'a>, key: ConditionKey) -> Option<Cow<'_, str>> {
        let Self(asked) = self;
        values::of_listing(call, asked.prefix, asked.grouping(), asked.max_keys, key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let max_keys = if asked.is_past_the_end() { 0 } else { asked.max_keys };
        let page = page(&call, &storage, asked.prefix, asked.grouping(), asked.start(), max_keys).await?;
        let next = next_marker(&page, asked.prefix, asked.grouping());
        let ends_with_a_key = matches!(page.next, Some(ListPosition::AfterKey(_)));
        let result = ListObjectVersionsResult {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            key_marker: asked.key_marker,
            version_id_marker: asked.version_id_marker.unwrap_or_default(),
            next_key_marker: next.as_deref(),
            next_version_id_marker: ends_with_a_key.then_some("null"),
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
                version_id: "null",
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
