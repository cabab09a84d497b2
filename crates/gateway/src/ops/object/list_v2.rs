use iam::ConditionKey;
use policy::Value;
use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::ListObjectsV2Result;

use super::list::{objects_reply, page, position_of, start_of};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;

/// ListObjectsV2.
pub struct ListObjectsV2<'a>(headers::ListObjectsV2<'a>);

impl<'a> Handler<'a> for ListObjectsV2<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListObjectsV2::parse(call.query).map(Self)
    }

    fn value(&self, call: &Call<'a>, key: ConditionKey) -> Value<'_> {
        let Self(asked) = self;
        values::of_listing(call, asked.prefix, asked.delimiter, asked.max_keys, key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let start = asked.start().map(position_of);
        let page = page(&call, &storage, asked.prefix, asked.delimiter, start, asked.max_keys).await?;
        let token = page.next.as_ref().map(|next| start_of(next).to_token());
        let result = ListObjectsV2Result {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            continuation_token: asked.continuation_token,
            next_continuation_token: token.as_deref(),
            start_after: asked.start_after,
            key_count: page.items.len(),
            max_keys: asked.max_keys,
            delimiter: asked.delimiter,
            encoding_type: asked.encoding_type,
        };
        let (writer, owner) = (result.begin(), asked.fetch_owner.then(|| call.owner()));
        Ok(objects_reply(writer, page, asked.encoding_type, owner).into())
    }
}
