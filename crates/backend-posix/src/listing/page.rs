//! Filling a page from a walk.

use backend::{ListItem, ListPage, ListPosition, Result};
use s3_types::BucketName;

use super::walk::{Hit, Walk, lower_bound};
use crate::store::Store;

/// [`backend::ListObjectsQuery`], owned.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub bucket: BucketName,
    pub prefix: String,
    pub delimiter: Option<String>,
    pub start: Option<ListPosition>,
    pub max_items: usize,
}

/// One page of keys.
pub(crate) fn list(store: &Store, query: &Query) -> Result<ListPage> {
    let bucket = store.bucket(&query.bucket)?;
    let from = lower_bound(query.start.as_ref());
    let delimiter = query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    let mut walk = Walk::new(&bucket, &query.prefix, delimiter, from)?;
    let mut page = ListPage::default();
    while let Some(hit) = walk.next()? {
        if page.items.len() >= query.max_items {
            page.next = page.items.last().map(position_after);
            break;
        }
        match hit {
            Hit::CommonPrefix(prefix) => page.items.push(ListItem::CommonPrefix(prefix)),
            Hit::Object(key, source) => {
                page.items.extend(walk.summary(&key, &source)?.map(ListItem::Object));
            }
        }
    }
    Ok(page)
}

fn position_after(item: &ListItem) -> ListPosition {
    match item {
        ListItem::Object(object) => ListPosition::AfterKey(object.key.as_str().to_owned()),
        ListItem::CommonPrefix(prefix) => ListPosition::AfterPrefix(prefix.clone()),
    }
}

/// What a key is rolled up to: the prefix asked for, and on up to and with the next delimiter.
pub(crate) fn common_prefix<'k>(key: &'k str, prefix: &str, delimiter: &str) -> Option<&'k str> {
    let at = key.strip_prefix(prefix)?.find(delimiter)?;
    Some(&key[..prefix.len() + at + delimiter.len()])
}
