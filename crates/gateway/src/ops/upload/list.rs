use backend::{BackendError, Initiator, ListQuery, UploadPage, UploadPosition};
use iam::ROOT_NAME;
use s3_types::UploadId;
use s3_wire::Result;
use s3_wire::headers::{self, ListStart};
use s3_wire::xml::{KeyEncoding, ListUploadsResult, ListedUpload, Owner};

use crate::access::Authorized;
use crate::call::Call;
use crate::errors::invalid_upload_marker;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// ListMultipartUploads.
pub struct ListMultipartUploads<'a> {
    asked: headers::ListUploads<'a>,
    start: Option<UploadPosition>,
}

impl<'a> Handler<'a> for ListMultipartUploads<'a> {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let asked = headers::ListUploads::parse(call.query)?;
        Ok(Self { start: position(&asked)?, asked })
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (bucket, Self { asked, start }) = (call.bucket()?, self);
        let failed = call.failed();
        let query = ListQuery {
            bucket,
            prefix: asked.prefix,
            delimiter: asked.delimiter,
            start: start.as_ref(),
            max_items: asked.max_uploads,
        };
        let page = if asked.max_uploads == 0 {
            call.require_bucket().await?;
            UploadPage::default()
        } else {
            storage.list_uploads(&query).await.map_err(|error| match error {
                BackendError::InvalidUploadMarker => invalid_upload_marker(asked.upload_id_marker),
                error => failed(error),
            })?
        };
        let (next_key_marker, next_upload_id_marker) = match (&page.next, page.uploads.last()) {
            // S3 leaves both empty where a page ends with a common prefix, so that no one can ask
            // for the next.
            (Some(UploadPosition::AfterKey(text) | UploadPosition::AfterPrefix(text)), _) => (&**text, ""),
            (Some(UploadPosition::AfterUpload { key, id }), _) => (&**key, id.as_str()),
            (None, Some(last)) => (last.key.as_str(), last.id.as_str()),
            (None, None) => ("", ""),
        };
        let result = ListUploadsResult {
            bucket: bucket.as_str(),
            key_marker: asked.key_marker,
            upload_id_marker: asked.upload_id_marker,
            next_key_marker,
            next_upload_id_marker,
            delimiter: asked.delimiter,
            prefix: asked.prefix,
            encoding_type: asked.encoding_type,
            max_uploads: asked.max_uploads,
            is_truncated: page.next.is_some(),
        };
        let writer = result.begin(page.uploads.len() + page.common_prefixes.len());
        let (encoding, owner) = (KeyEncoding::of(asked.encoding_type), call.owner().id.to_owned());
        let of_storage = Initiator { id: call.initiator(None).id.into(), name: ROOT_NAME.into() };
        let uploads = page.uploads.into_iter().map(Ok);
        let entries = uploads.chain(page.common_prefixes.into_iter().map(Err));
        let reply = reply::ok_entries(writer, entries, move |entry, writer| match entry {
            Ok(upload) => ListedUpload {
                key: upload.key.as_str(),
                upload_id: upload.id.as_str(),
                initiated: upload.initiated,
                checksum: upload.checksum,
            }
            .write(
                writer,
                encoding,
                shown(upload.initiator.as_deref().unwrap_or(&of_storage)),
                Owner::new(&owner),
            ),
            Err(prefix) => writer.common_prefix(&prefix, encoding),
        });
        Ok(reply.into())
    }
}

/// Returns an initiator in the form of answers.
fn shown(initiator: &Initiator) -> Owner<'_> {
    Owner { display_name: Some(&initiator.name), ..Owner::new(&initiator.id) }
}

/// Returns the position at which the listing begins. If the marker's key is inside a common prefix,
/// the listing begins after the whole prefix, whatever upload the marker names.
fn position(asked: &headers::ListUploads<'_>) -> Result<Option<UploadPosition>> {
    let id = match asked.upload_id_marker {
        "" => None,
        text => Some(UploadId::new(text).map_err(|_| invalid_upload_marker(text))?),
    };
    Ok(asked.start().map(|start| match (start, id) {
        (ListStart::AfterPrefix(prefix), _) => UploadPosition::AfterPrefix(prefix),
        (ListStart::AfterKey(key), None) => UploadPosition::AfterKey(key),
        (ListStart::AfterKey(key), Some(id)) => UploadPosition::AfterUpload { key, id },
    }))
}
