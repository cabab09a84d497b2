use backend::{ListItem, ListPage, ListPosition, ListQuery};
use iam::ConditionKey;
use policy::Value;
use s3_wire::Result;
use s3_wire::headers::{self, ListStart, page_items};
use s3_wire::xml::{KeyEncoding, ListObjectsResult, ListedObject, Owner, Writer};

use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::outcome::Outcome;
use crate::reply::{self, Reply};

/// ListObjects, in its first version.
pub struct ListObjects<'a>(headers::ListObjects<'a>);

impl<'a> Handler<'a> for ListObjects<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListObjects::parse(call.query).map(Self)
    }

    fn value(&self, call: &Call<'a>, key: ConditionKey) -> Value<'_> {
        let Self(asked) = self;
        values::of_listing(call, asked.prefix, asked.delimiter, asked.max_keys, key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let start = asked.start().map(position_of);
        let page = page(&call, &storage, asked.prefix, asked.delimiter, start, asked.max_keys).await?;
        let next = next_marker(&page, asked.prefix, asked.delimiter);
        let result = ListObjectsResult {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            marker: asked.marker,
            next_marker: next.as_deref().filter(|next| needs_marker(&page, asked.delimiter, next)),
            max_keys: asked.max_keys,
            delimiter: asked.delimiter,
            encoding_type: asked.encoding_type,
            is_truncated: page.next.is_some(),
        };
        let writer = result.begin(page.items.len());
        Ok(objects_reply(writer, page, asked.encoding_type, Some(call.owner())).into())
    }
}

/// True if a client cannot find out the next marker itself. It can only if there is no delimiter,
/// and the marker is the last key on the page.
fn needs_marker(page: &ListPage, delimiter: Option<&str>, next: &str) -> bool {
    let last = match page.items.last() {
        Some(ListItem::Object(object)) => Some(object.key.as_str()),
        _ => None,
    };
    delimiter.is_some() || last != Some(next)
}

/// Returns the marker for the next page.
fn next_marker(page: &ListPage, prefix: &str, delimiter: Option<&str>) -> Option<String> {
    let next = page.next.as_ref()?;
    Some(start_of(next).to_marker(prefix, delimiter).into_owned())
}

/// Converts a position of the backend to the wire's type.
pub fn start_of(position: &ListPosition) -> ListStart {
    match position {
        // The wire has the version apart, and only in listings of versions.
        ListPosition::AfterKey(key) | ListPosition::AfterVersion { key, .. } => {
            ListStart::AfterKey(key.clone())
        }
        ListPosition::AfterPrefix(prefix) => ListStart::AfterPrefix(prefix.clone()),
    }
}

/// Converts a position of the wire to the backend's type.
pub fn position_of(start: ListStart) -> ListPosition {
    match start {
        ListStart::AfterKey(key) => ListPosition::AfterKey(key),
        ListStart::AfterPrefix(prefix) => ListPosition::AfterPrefix(prefix),
    }
}

/// Returns one page of the request's bucket; an empty one if the client asks for no keys.
pub async fn page(
    call: &Call<'_>,
    storage: &Authorized<'_>,
    prefix: &str,
    delimiter: Option<&str>,
    start: Option<ListPosition>,
    max_keys: u32,
) -> Result<ListPage> {
    let max_items = page_items(max_keys);
    let bucket = call.bucket()?;
    if max_items == 0 {
        call.require_bucket().await?;
        return Ok(ListPage::default());
    }
    let query = ListQuery { bucket, prefix, delimiter, start: start.as_ref(), max_items };
    storage.list_objects(&query).await.map_err(call.failed())
}

/// Returns the answer with the entries of a page of objects; common prefixes come after the
/// objects.
pub fn objects_reply(
    writer: Writer,
    mut page: ListPage,
    encoding_type: Option<&str>,
    owner: Option<Owner<'_>>,
) -> Reply {
    let encoding = KeyEncoding::of(encoding_type);
    let owner = owner.map(|owner| owner.id.to_owned());
    page.items.sort_by_key(|item| matches!(item, ListItem::CommonPrefix(_)));
    reply::ok_entries(writer, page.items, move |item, writer| match item {
        ListItem::Object(object) => {
            let entry = ListedObject {
                key: object.key.as_str(),
                last_modified: object.last_modified,
                etag: &object.etag,
                checksum: object.checksum.map(|c| (c.value.algorithm(), c.checksum_type)),
                size_bytes: object.size_bytes,
            };
            entry.write(writer, encoding, owner.as_deref().map(Owner::new));
        }
        ListItem::CommonPrefix(prefix) => writer.common_prefix(&prefix, encoding),
    })
}
