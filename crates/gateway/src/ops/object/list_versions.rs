use backend::{BackendError, ListPosition, ListQuery, VersionItem, VersionPage};
use iam::ConditionKey;
use policy::Value;
use s3_types::VersionId;
use s3_wire::Result;
use s3_wire::headers::{self, ListStart, invalid_version_marker, page_items};
use s3_wire::xml::{KeyEncoding, ListObjectVersionsResult, ListedMarker, ListedVersion, Owner, Writer};

use super::list::{position_of, start_of};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::ops::values;
use crate::ops::version::NULL;
use crate::outcome::Outcome;
use crate::reply;

/// ListObjectVersions. In a bucket that never kept versions, each object is its own only version,
/// with the id `null`.
pub struct ListObjectVersions<'a>(headers::ListVersions<'a>);

impl<'a> Handler<'a> for ListObjectVersions<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        headers::check_optional_attributes(call.headers)?;
        headers::ListVersions::parse(call.query, call.versioning.is_set()).map(Self)
    }

    fn value(&self, call: &Call<'a>, key: ConditionKey) -> Value<'_> {
        let Self(asked) = self;
        values::of_listing(call, asked.prefix, asked.grouping(), asked.max_keys, key)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self(asked)) = (call.bucket()?, self);
        let mut page = page(&call, &storage, &asked).await?;
        let (next_key, next_version) = next_markers(&page, &asked).unzip();
        let result = ListObjectVersionsResult {
            bucket: bucket.as_str(),
            prefix: asked.prefix,
            key_marker: asked.key_marker,
            version_id_marker: asked.version_id_marker.as_ref().map_or("", VersionId::as_str),
            next_key_marker: next_key.as_deref(),
            next_version_id_marker: next_version.as_ref().and_then(Option::as_deref),
            max_keys: asked.max_keys,
            delimiter: asked.delimiter,
            encoding_type: asked.encoding_type,
            is_truncated: page.next.is_some(),
        };
        let (writer, owner) = (result.begin(), call.owner().id.to_owned());
        let encoding = KeyEncoding::of(asked.encoding_type);
        // Common prefixes come after the versions, whose order stays.
        page.items.sort_by_key(|item| matches!(item, VersionItem::CommonPrefix(_)));
        let reply = reply::ok_entries(writer, page.items, move |item, writer| {
            write(&item, writer, encoding, Owner::new(&owner));
        });
        Ok(reply.into())
    }
}

/// Returns one page of the request's bucket; an empty one if the client asks for no keys, or for
/// those behind the last.
async fn page(
    call: &Call<'_>,
    storage: &Authorized<'_>,
    asked: &headers::ListVersions<'_>,
) -> Result<VersionPage> {
    let (bucket, max_items) = (call.bucket()?, page_items(asked.max_keys));
    if max_items == 0 || asked.is_past_the_end() {
        call.require_bucket().await?;
        return Ok(VersionPage::default());
    }
    let start = start_at(asked);
    let (prefix, delimiter) = (asked.prefix, asked.grouping());
    let query = ListQuery { bucket, prefix, delimiter, start: start.as_ref(), max_items };
    storage.list_versions(&query).await.map_err(|error| match error {
        BackendError::InvalidVersionId(id) => invalid_version_marker(id.as_str()),
        error => call.fail(error),
    })
}

/// Returns the position at which the listing begins.
fn start_at(asked: &headers::ListVersions<'_>) -> Option<ListPosition> {
    Some(match (asked.start()?, asked.version_id_marker.clone()) {
        (ListStart::AfterKey(key), Some(version)) => ListPosition::AfterVersion { key, version },
        (start, _) => position_of(start),
    })
}

/// Returns the markers of the next page, of a key and of its version; `None` if there is no next
/// page.
///
/// If the page ends with a version, S3 names it also if it is the last one of its key. There is no
/// version marker if the page ends with a common prefix, nor if it was ended early, at a key that
/// it does not show.
fn next_markers(page: &VersionPage, asked: &headers::ListVersions<'_>) -> Option<(String, Option<String>)> {
    let next = page.next.as_ref()?;
    let key = start_of(next).to_marker(asked.prefix, asked.grouping()).into_owned();
    let version = match next {
        ListPosition::AfterVersion { version, .. } => Some(version.as_str()),
        ListPosition::AfterKey(_) => {
            page.items.last().and_then(named).filter(|of| of.0 == key).map(|of| of.1)
        }
        ListPosition::AfterPrefix(_) => None,
    };
    let version = version.map(str::to_owned);
    Some((key, version))
}

/// Returns key and id of a version; `None` for a common prefix.
fn named(item: &VersionItem) -> Option<(&str, &str)> {
    match item {
        VersionItem::Object { object, .. } => {
            Some((object.key.as_str(), object.version.as_ref().map_or(NULL, VersionId::as_str)))
        }
        VersionItem::DeleteMarker { key, marker, .. } => Some((key.as_str(), marker.version.as_str())),
        VersionItem::CommonPrefix(_) => None,
    }
}

fn write(item: &VersionItem, writer: &mut Writer, encoding: KeyEncoding, owner: Owner<'_>) {
    let (key, version_id) = named(item).unwrap_or_default();
    match item {
        VersionItem::Object { object, is_latest } => {
            let entry = ListedVersion {
                key,
                version_id,
                is_latest: *is_latest,
                last_modified: object.last_modified,
                etag: &object.etag,
                checksum: object.checksum.map(|c| (c.value.algorithm(), c.checksum_type)),
                size_bytes: object.size_bytes,
            };
            entry.write(writer, encoding, owner);
        }
        VersionItem::DeleteMarker { marker, is_latest, .. } => {
            let (is_latest, last_modified) = (*is_latest, marker.last_modified);
            ListedMarker { key, version_id, is_latest, last_modified }.write(writer, encoding, owner);
        }
        VersionItem::CommonPrefix(prefix) => writer.common_prefix(prefix, encoding),
    }
}

#[cfg(test)]
mod tests {
    use backend::{DeleteMarker, ObjectSummary};
    use s3_types::{ETag, ObjectKey, Timestamp};
    use s3_wire::Query;

    use super::*;

    fn id(text: &str) -> VersionId {
        VersionId::new(text).unwrap()
    }

    fn version(key: &str, version: Option<&str>) -> VersionItem {
        let object = ObjectSummary {
            key: ObjectKey::new(key).unwrap(),
            size_bytes: 0,
            last_modified: Timestamp::UNIX_EPOCH,
            etag: ETag::Md5([0; 16]),
            checksum: None,
            version: version.map(id),
        };
        VersionItem::Object { object, is_latest: true }
    }

    fn marker(key: &str, version: &str) -> VersionItem {
        let marker = DeleteMarker { version: id(version), last_modified: Timestamp::UNIX_EPOCH };
        VersionItem::DeleteMarker { key: ObjectKey::new(key).unwrap(), marker, is_latest: false }
    }

    fn asked<T>(query: &str, with: impl FnOnce(&headers::ListVersions<'_>) -> T) -> T {
        with(&headers::ListVersions::parse(&Query::parse(query).unwrap(), true).unwrap())
    }

    #[test]
    fn a_page_begins_after_a_version_or_a_key_or_a_group() {
        let start = |query: &str| asked(query, start_at);
        let key = || "d/k".to_owned();
        assert_eq!(start("key-marker="), None);
        assert_eq!(start("key-marker=d/k"), Some(ListPosition::AfterKey(key())));
        let version = Some(ListPosition::AfterVersion { key: key(), version: id("v1") });
        assert_eq!(start("key-marker=d/k&version-id-marker=v1"), version);
        let group = Some(ListPosition::AfterPrefix("d/".to_owned()));
        assert_eq!(start("key-marker=d/k&version-id-marker=v1&delimiter=/"), group);
    }

    #[test]
    fn a_page_names_the_version_after_which_the_next_begins() {
        let next = |items: Vec<VersionItem>, next: ListPosition| {
            let page = VersionPage { items, next: Some(next) };
            let (key, version) = asked("delimiter=/", |asked| next_markers(&page, asked)).unwrap();
            (key, version.unwrap_or_default())
        };
        let told = |key: &str, version: &str| (key.to_owned(), version.to_owned());
        let after = |key: &str| ListPosition::AfterKey(key.to_owned());
        let after_version =
            |key: &str, of: &str| ListPosition::AfterVersion { key: key.to_owned(), version: id(of) };
        assert_eq!(next(vec![version("k", Some("v2"))], after_version("k", "v2")), told("k", "v2"));
        assert_eq!(next(vec![marker("k", "m1")], after("k")), told("k", "m1"));
        assert_eq!(next(vec![version("k", None)], after("k")), told("k", "null"));
        let group = || VersionItem::CommonPrefix("d/".to_owned());
        let after_group = ListPosition::AfterPrefix("d/".to_owned());
        assert_eq!(next(vec![version("c", None), group()], after_group), told("d/", ""));
        // Ended early: at a key that is not shown, and in the middle of a group.
        assert_eq!(next(vec![version("c", None)], after("k")), told("k", ""));
        let (key, version) = next(vec![version("c", None)], after("d/k"));
        assert!(key.starts_with("d/j") && version.is_empty(), "{key} {version}");
        let last = VersionPage { items: vec![marker("k", "m1")], next: None };
        assert_eq!(asked("", |asked| next_markers(&last, asked)), None);
    }
}
