//! Lists parts and uploads (ListParts and ListMultipartUploads).

use std::thread::sleep;

use backend::{BackendError, PartPage, PartSummary, Result, UploadPage, UploadPosition};
use kernel_calls::acting::{acting_user, as_self};
use rustix::io::Errno;
use s3_types::UploadId;

use super::in_progress::{Upload, UploadName, is_for};
use super::index::{Bound, Indexed, UploadIndex, UploadIndexes, is_in_progress};
use super::part::Part;
use crate::error::{Op, is_of_one};
use crate::fs::file_info;
use crate::fs::reading::entries;
use crate::fs::resolve::{self, DIRECTORY};
use crate::layout::uploads::{UPLOADS, is_id, part_name, part_number};
use crate::limits::{PART_TRIES, PART_TRIES_STEP};
use crate::listing::{Query, after_all, common_prefix};
use crate::record::text_of;
use crate::tree::bucket::Bucket;
use crate::tree::store::Store;

/// Returns one page of an upload's parts.
pub(crate) fn list_parts(store: &Store, name: &UploadName, after: u32, max_parts: usize) -> Result<PartPage> {
    let upload = Upload::open(&store.bucket(&name.bucket)?, name)?;
    as_self(|| page_of(store, &upload, after, max_parts))
}

fn page_of(store: &Store, upload: &Upload, after: u32, max_parts: usize) -> Result<PartPage> {
    let directory = resolve::plain(&upload.directory, "", DIRECTORY).op("open an upload")?;
    let mut numbers: Vec<u32> = entries(&directory)
        .op("read an upload")?
        .into_iter()
        .filter_map(|(name, _)| part_number(&name))
        .filter(|number| *number > after)
        .collect();
    numbers.sort_unstable();
    // Of a part that is being uploaded again, FUSE may say for a moment that there is none, and
    // other machines may have cached some of the old one. So many looks more for all of the page.
    let its_own = store.times_are_final(file_info::stat(&directory)?.device);
    let mut looks = if its_own { 0 } else { PART_TRIES };
    let (chosen, initiator) = (upload.record.checksum, upload.record.initiator.clone());
    let version = upload.record.version_id.and_then(text_of);
    let mut page = PartPage { chosen, initiator, version, ..PartPage::default() };
    for number in numbers {
        if page.parts.len() >= max_parts {
            page.truncated = true;
            break;
        }
        // `None` if the upload ended meanwhile.
        let part = loop {
            let part = match Part::read(store, &upload.directory, number) {
                Err(Errno::STALE) if looks > 0 => None,
                result => result.op("read a part")?,
            };
            if part.is_some() || looks == 0 {
                break part;
            }
            looks -= 1;
            sleep(PART_TRIES_STEP);
            let _ = file_info::fresh_at(&upload.directory, &part_name(number));
        };
        page.parts.extend(part.map(|part| PartSummary {
            part_number: part.number,
            size_bytes: part.size_bytes,
            last_modified: file_info::timestamp(part.modified_ns),
            etag: part.etag,
            checksum: part.checksum,
        }));
    }
    Ok(page)
}

/// Returns one page of the uploads in progress: those of the user whose identity the thread has, or
/// all.
pub(crate) fn list_uploads(
    store: &Store,
    indexes: &UploadIndexes,
    query: &Query<UploadPosition>,
) -> Result<UploadPage> {
    let bucket = store.bucket(&query.bucket)?;
    let user = acting_user();
    as_self(|| list_in(&bucket, indexes, query, user))
}

fn list_in(
    bucket: &Bucket<'_>,
    indexes: &UploadIndexes,
    query: &Query<UploadPosition>,
    user: Option<u32>,
) -> Result<UploadPage> {
    if let Some(UploadPosition::AfterUpload { key, id }) = &query.start {
        check_marker(bucket, key, id, user)?;
    }
    let mut page = UploadPage::default();
    let directory = match bucket.own_existing(UPLOADS) {
        Err(Errno::NOENT) => return Ok(page),
        result => result.op("open the uploads directory")?,
    };
    let mut position = query.start.clone();
    loop {
        let from = bound(query, position.as_ref());
        let index = indexes.get(bucket, &directory, &from)?;
        if fill(bucket, query, &index, user, &mut position, &mut page)? || !index.is_cut() {
            return Ok(page);
        }
    }
}

/// Refuses a marker that can't be the id of an upload, or is that of an upload of another key. The
/// id of an upload that has ended since the previous page is still a position, since ids sort by
/// time. An upload of another user counts as one that has ended.
fn check_marker(bucket: &Bucket<'_>, key: &str, id: &UploadId, user: Option<u32>) -> Result<()> {
    let upload = Upload::open_id(bucket, id.as_str())?.filter(|upload| is_for(user, upload.record.user));
    let valid = match upload {
        Some(upload) => upload.record.key.as_deref() == Some(key),
        None => is_id(id.as_str()),
    };
    if valid { Ok(()) } else { Err(BackendError::InvalidUploadMarker) }
}

/// Adds the uploads of an index after `position` to a page. Returns true if the page is full, or
/// has all uploads that the query asks for.
fn fill(
    bucket: &Bucket<'_>,
    query: &Query<UploadPosition>,
    index: &UploadIndex,
    user: Option<u32>,
    position: &mut Option<UploadPosition>,
    page: &mut UploadPage,
) -> Result<bool> {
    let delimiter = query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
    let mut rest = index.behind(&bound(query, position.as_ref()));
    while let Some((Indexed { upload, user: whose }, others)) = rest.split_first() {
        let key = upload.key.as_str();
        if !key.starts_with(&query.prefix) {
            return Ok(true);
        }
        rest = others;
        if !is_for(user, *whose) {
            continue;
        }
        let here = UploadPosition::AfterUpload { key: key.to_owned(), id: upload.id.clone() };
        if !in_progress(bucket, &upload.id)? {
            *position = Some(here);
            continue;
        }
        if page.uploads.len() + page.common_prefixes.len() >= query.max_items {
            page.next.clone_from(position);
            return Ok(true);
        }
        let rolled_up = delimiter.and_then(|delimiter| common_prefix(key, &query.prefix, delimiter));
        if let Some(prefix) = rolled_up {
            *position = Some(UploadPosition::AfterPrefix(prefix.to_owned()));
            page.common_prefixes.push(prefix.to_owned());
            rest = index.behind(&bound(query, position.as_ref()));
        } else {
            *position = Some(here);
            page.uploads.push(upload.clone());
        }
    }
    Ok(false)
}

/// True if an upload is still in progress. False also for one that can't be read, which is logged.
fn in_progress(bucket: &Bucket<'_>, id: &UploadId) -> Result<bool> {
    is_in_progress(bucket, id).or_else(|error| {
        if !is_of_one(&error) {
            return Err(error);
        }
        tracing::warn!(id = id.as_str(), %error, "an upload cannot be read, so it is left out of the list of uploads");
        Ok(false)
    })
}

/// Returns the position after which a listing continues.
fn bound(query: &Query<UploadPosition>, position: Option<&UploadPosition>) -> Bound {
    let first = (query.prefix.as_bytes().to_vec(), None);
    let position = match position {
        None => return first,
        Some(UploadPosition::AfterKey(key)) => ([key.as_bytes(), &[0]].concat(), None),
        Some(UploadPosition::AfterPrefix(prefix)) => (after_all(prefix), None),
        Some(UploadPosition::AfterUpload { key, id }) => (key.as_bytes().to_vec(), Some(id.clone())),
    };
    first.max(position)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use backend::NewUpload;

    use super::*;
    use crate::base::options::Options;
    use crate::layout::keymap::KeyPath;
    use crate::layout::uploads::ID_LENGTH;
    use crate::testing::Scene;

    fn query(
        scene: &Scene,
        prefix: &str,
        delimiter: Option<&str>,
        max_items: usize,
    ) -> Query<UploadPosition> {
        let delimiter = delimiter.map(str::to_owned);
        Query { bucket: scene.name.clone(), prefix: prefix.to_owned(), delimiter, start: None, max_items }
    }

    /// All (key, id) pairs and prefixes, page by page.
    fn list(scene: &Scene, mut query: Query<UploadPosition>) -> (Vec<(String, String)>, Vec<String>) {
        let (mut uploads, mut prefixes) = (Vec::new(), Vec::new());
        loop {
            let page = list_uploads(&scene.store, &scene.caches.uploads, &query).unwrap();
            assert!(page.uploads.len() + page.common_prefixes.len() <= query.max_items);
            uploads.extend(page.uploads.into_iter().map(|u| (u.key.as_str().to_owned(), u.id.to_string())));
            prefixes.extend(page.common_prefixes);
            match page.next {
                None => return (uploads, prefixes),
                next => query.start = next,
            }
        }
    }

    /// Pages do not depend on the memory for indexes: they are the same if each index has room for
    /// only a part of the uploads, even of those of one key or one prefix.
    #[test]
    fn pages_are_the_same_whatever_fits_in_memory() {
        for index_cache_bytes in [64 << 20, 0] {
            let scene = Scene::with(Options { index_cache_bytes, ..Options::default() });
            let mut made = BTreeSet::new();
            for n in 0..150 {
                let key = match n % 3 {
                    0 => "same".to_owned(),
                    1 => format!("dir/{}", n * 7 % 150),
                    _ => format!("k{}", n * 7 % 150),
                };
                let id =
                    crate::upload::create(&scene.store, &scene.name, &key, &NewUpload::default()).unwrap();
                made.insert((key, id.to_string()));
            }
            let made: Vec<_> = made.into_iter().collect();
            for size in [1, 7, 1000] {
                assert_eq!(list(&scene, query(&scene, "", None, size)).0, made, "{index_cache_bytes} {size}");
                let (uploads, prefixes) = list(&scene, query(&scene, "", Some("/"), size));
                assert_eq!((uploads.len(), prefixes), (100, vec!["dir/".to_owned()]));
                assert_eq!(
                    list(&scene, query(&scene, "dir/1", None, size)).0.len(),
                    made.iter().filter(|(key, _)| key.starts_with("dir/1")).count()
                );
            }
        }
    }

    #[test]
    fn what_comes_and_goes_shows_at_once() {
        let scene = Scene::new();
        let all =
            || list(&scene, query(&scene, "", None, 2)).0.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        let create =
            |key: &str| crate::upload::create(&scene.store, &scene.name, key, &NewUpload::default()).unwrap();
        let ids: Vec<_> = ["a", "b", "c"].into_iter().map(create).collect();
        assert_eq!(all(), ["a", "b", "c"]);
        let path = |id: &UploadId| scene.path().join(".slipway/uploads").join(id.as_str());
        // As an upload is while it is created, and while it is removed.
        let description = fs::read(path(&ids[1]).join("upload")).unwrap();
        fs::remove_file(path(&ids[1]).join("upload")).unwrap();
        assert_eq!(all(), ["a", "c"]);
        let new = path(&ids[1]).with_file_name("f".repeat(ID_LENGTH));
        fs::create_dir(&new).unwrap();
        assert_eq!(all(), ["a", "c"]);
        fs::write(new.join("upload"), &description).unwrap();
        assert_eq!(all(), ["a", "b", "c"]);
        // What is not named as an upload is not one, whatever is in it.
        fs::create_dir(new.with_file_name("else")).unwrap();
        fs::write(new.with_file_name("else").join("upload"), &description).unwrap();
        assert_eq!(all(), ["a", "b", "c"]);
        let name = UploadName { bucket: scene.name.clone(), place: KeyPath::of("a"), id: ids[0].clone() };
        crate::upload::abort(&scene.store, &name, None).unwrap();
        create("d");
        assert_eq!(all(), ["b", "c", "d"]);
    }
}
