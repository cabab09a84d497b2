use backend::ListBucketsQuery;
use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::{ListBucketsResult, ListedBucket};

use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// ListBuckets.
pub struct ListBuckets<'a>(headers::ListBuckets<'a>);

impl<'a> Handler<'a> for ListBuckets<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::ListBuckets::parse(call.query, &call.gateway.signing.region).map(Self)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let Self(asked) = self;
        let region = call.gateway.signing.region.as_str();
        let query = ListBucketsQuery {
            prefix: asked.prefix.unwrap_or_default().to_owned(),
            after: asked.after.as_ref().map(ToString::to_string),
            max_buckets: asked.max_buckets,
        };
        let page = storage.list_buckets(&query).await.map_err(call.failed())?;
        let token = page.next.as_ref().map(headers::ListBuckets::token);
        let result = ListBucketsResult {
            owner: call.owner(),
            prefix: asked.prefix,
            continuation_token: token.as_deref(),
        };
        let writer = result.begin(page.buckets.len());
        let shown_region = asked.is_paged.then(|| region.to_owned());
        let reply = reply::ok_entries(writer, page.buckets, move |bucket, writer| {
            let arn = bucket.name.arn();
            let entry = ListedBucket { name: bucket.name.as_str(), arn: &arn, created: bucket.created };
            entry.write(writer, shown_region.as_deref());
        });
        Ok(reply.into())
    }
}
