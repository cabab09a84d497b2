use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::{ListObjectVersionsResult, ListedVersion, Owner};

use super::list::{entries_reply, page, position_text};
use crate::ops::Operation;
use crate::pipeline::Call;
use crate::reply::Reply;

/// ListObjectVersions. As there are no versions yet, each object is its own and only one, with the id `null`.
pub struct ListObjectVersions<'a>(headers::ListVersions<'a>);

impl<'a> Operation<'a> for ListObjectVersions<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListVersions::parse(call.query).map(Self)
    }

    async fn perform(self, call: Call<'a>) -> Result<Reply> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let page = page(&call, asked.prefix, asked.delimiter, asked.start(), asked.max_keys).await?;
        let result = ListObjectVersionsResult {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            key_marker: asked.key_marker,
            version_id_marker: asked.version_id_marker,
            next_key_marker: page.next.as_ref().map(position_text),
            next_version_id_marker: page.next.as_ref().map(|_| "null"),
            max_keys: asked.max_keys,
            delimiter: asked.delimiter,
            encoding: asked.encoding,
            is_truncated: page.next.is_some(),
        };
        let (writer, owner) = (result.begin(), call.owner().id.to_owned());
        Ok(entries_reply(writer, page, asked.encoding, move |object, writer| {
            let entry = ListedVersion {
                key: object.key.as_str(),
                version_id: "null",
                is_latest: true,
                last_modified: object.last_modified,
                etag: &object.etag,
                checksum: object.checksum.map(|c| (c.value.algorithm(), c.checksum_type)),
                size_bytes: object.size_bytes,
            };
            entry.write(writer, asked.encoding, Owner::new(&owner));
        }))
    }
}
