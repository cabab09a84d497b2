use backend::{BucketPage, ListBucketsQuery};
use iam::{Decision, Resource};
use policy::Value;
use s3_types::{BucketName, S3Action};
use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::{ListBucketsResult, ListedBucket};

use crate::access::{Authorized, KnownRules, Subject};
use crate::call::Call;
use crate::limits::{LIST_BUCKETS_ASKED_FOR_MIN, LIST_BUCKETS_LOOKED_AT_MAX};
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
        let page = if call.asker.requester.is_root() {
            storage.list_buckets(&query).await.map_err(call.failed())?
        } else {
            shown(&call, &storage, query).await?
        };
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

/// Returns one page of the buckets that a requester other than the server's root may see: those of
/// its account, and those that it may list (docs/decisions/0073-buckets-belong-to-accounts.md).
async fn shown(call: &Call<'_>, storage: &Authorized<'_>, query: ListBucketsQuery) -> Result<BucketPage> {
    let (mut page, mut looked_at) = (BucketPage::default(), 0);
    let wanted = query.max_buckets;
    let mut query = ListBucketsQuery { max_buckets: wanted.max(LIST_BUCKETS_ASKED_FOR_MIN), ..query };
    loop {
        let found = storage.list_buckets(&query).await.map_err(call.failed())?;
        page.unreadable += found.unreadable;
        let count = found.buckets.len();
        for (bucket, number) in found.buckets.into_iter().zip(1..) {
            looked_at += 1;
            let name = bucket.name.clone();
            if may_see(call, &name).await {
                page.buckets.push(bucket);
            }
            let has_more = number < count || found.next.is_some();
            let is_full = page.buckets.len() >= wanted || looked_at >= LIST_BUCKETS_LOOKED_AT_MAX;
            if is_full && has_more {
                return Ok(BucketPage { next: Some(name), ..page });
            }
        }
        let Some(next) = found.next else { return Ok(page) };
        query.after = Some(next.to_string());
    }
}

/// True if the requester owns the bucket, or may list it. It is false for a bucket that cannot be
/// read, or whose rules are not known.
async fn may_see(call: &Call<'_>, bucket: &BucketName) -> bool {
    let storage = &call.gateway.storage;
    let state = match storage.known_bucket(bucket) {
        Some(state) => Some(state),
        None => storage.load_bucket(call.backend_cx, bucket).await.ok(),
    };
    let Some(state) = state.filter(|state| state.closed.is_none()) else { return false };
    let known = KnownRules::of(&state, &call.settings.account, call.gateway.storage.bucket_defaults())
        .filter(|known| known.closed.is_none());
    let Some(rules) = known.map(|known| &known.rules) else { return false };
    let requester = call.asker.requester.session().map(|session| session.principal.account.id());
    let subject = Subject { resource: Resource { bucket: Some(bucket), key: None }, rules: Some(rules) };
    requester == Some(rules.owner.id())
        || call.asker.decide(S3Action::ListBucket, subject, &|_| Value::Absent) == Decision::Allow
}
