//! ListParts and ListMultipartUploads.

use backend::{ListPartsQuery, PartPage, PartSummary, Result, UploadPage, UploadPosition, UploadSummary};
use rustix::io::Errno;
use s3_types::{BucketName, ObjectKey, UploadId};

use super::part::{Part, part_number};
use super::{UPLOADS, Upload, UploadName};
use crate::bucket::Bucket;
use crate::buckets::entries;
use crate::error::{Op, is_of_one};
use crate::file_info;
use crate::listing::{after_all, common_prefix};
use crate::resolve::{self, DIRECTORY};
use crate::store::Store;

/// One page of an upload's parts.
pub(crate) fn list_parts(store: &Store, name: &UploadName, query: ListPartsQuery) -> Result<PartPage> {
    let upload = Upload::open(&store.bucket(&name.bucket)?, name)?;
    let directory = resolve::plain(&upload.directory, "", DIRECTORY).op("open an upload")?;
    let mut numbers: Vec<u32> = entries(&directory)
        .op("read an upload")?
        .into_iter()
        .filter_map(|(name, _)| part_number(&name))
        .filter(|number| *number > query.after)
        .collect();
    numbers.sort_unstable();
    let mut page = PartPage::default();
    for number in numbers {
        if page.parts.len() >= query.max_parts {
            page.truncated = true;
            break;
        }
        // `None` if the upload ended meanwhile.
        let part = Part::read(store, &upload.directory, number).op("read a part")?;
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

/// [`backend::ListUploadsQuery`], owned.
#[derive(Debug, Clone)]
pub(crate) struct UploadsQuery {
    pub bucket: BucketName,
    pub prefix: String,
    pub delimiter: Option<String>,
    pub start: Option<UploadPosition>,
    pub max_items: usize,
}

/// One page of the uploads in progress.
pub(crate) fn list_uploads(store: &Store, query: &UploadsQuery) -> Result<UploadPage> {
    let mut page = UploadPage::default();
    let mut last = None;
    // Keys below this were rolled up.
    let mut from = Vec::new();
    for upload in uploads(store, query)? {
        let key = upload.key.as_str();
        if key.as_bytes() < from.as_slice() {
            continue;
        }
        if page.uploads.len() + page.common_prefixes.len() >= query.max_items {
            page.next = last;
            break;
        }
        let delimiter = query.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
        if let Some(prefix) = delimiter.and_then(|delimiter| common_prefix(key, &query.prefix, delimiter)) {
            from = after_all(prefix);
            page.common_prefixes.push(prefix.to_owned());
            last = Some(UploadPosition::AfterPrefix(prefix.to_owned()));
        } else {
            last = Some(UploadPosition::AfterUpload { key: key.to_owned(), id: upload.id.clone() });
            page.uploads.push(upload);
        }
    }
    Ok(page)
}

/// All uploads that the query may show, in order. Ids begin with the time of creation, so that their order is that of time.
fn uploads(store: &Store, query: &UploadsQuery) -> Result<Vec<UploadSummary>> {
    let bucket = store.bucket(&query.bucket)?;
    let directory = match resolve::plain(&bucket.fd, &format!(".slipway/{UPLOADS}"), DIRECTORY) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        result => result.op("open uploads")?,
    };
    let mut uploads = Vec::new();
    for (id, _) in entries(&directory).op("read uploads")? {
        let Some(Upload { record, .. }) = readable(&bucket, &id)? else { continue };
        let (Some(Ok(key)), Ok(id)) = (record.key.map(ObjectKey::new), UploadId::new(&id)) else { continue };
        if key.as_str().starts_with(&query.prefix) && is_after(query.start.as_ref(), &key, &id) {
            let initiated = file_info::timestamp(i128::from(record.time_ns.unwrap_or(0)));
            uploads.push(UploadSummary { key, id, initiated, checksum: record.upload_checksum });
        }
    }
    uploads.sort_by(|a, b| (&a.key, &a.id).cmp(&(&b.key, &b.id)));
    Ok(uploads)
}

/// An upload in progress; one that cannot be read is left out.
fn readable(bucket: &Bucket<'_>, id: &str) -> Result<Option<Upload>> {
    Upload::open_id(bucket, id).or_else(|error| {
        if !is_of_one(&error) {
            return Err(error);
        }
        tracing::warn!(id, %error, "an upload cannot be read and is left out");
        Ok(None)
    })
}

fn is_after(start: Option<&UploadPosition>, key: &ObjectKey, id: &UploadId) -> bool {
    match start {
        None => true,
        Some(UploadPosition::AfterKey(after)) => key.as_str() > after.as_str(),
        Some(UploadPosition::AfterPrefix(prefix)) => key.as_str().as_bytes() > after_all(prefix).as_slice(),
        Some(UploadPosition::AfterUpload { key: after, id: after_id }) => {
            (key.as_str(), id) > (after.as_str(), after_id)
        }
    }
}
