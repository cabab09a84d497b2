use backend::{ListPartsQuery, PartPage, UploadRef};
use s3_types::UploadId;
use s3_wire::Result;
use s3_wire::headers;
use s3_wire::xml::{ListPartsResult, ListedPart};

use super::named::{set_version_to_be, upload_id};
use crate::access::Authorized;
use crate::call::Call;
use crate::ops::handler::Handler;
use crate::outcome::Outcome;
use crate::reply;

/// ListParts.
pub struct ListParts {
    id: UploadId,
    asked: headers::ListParts,
}

impl<'a> Handler<'a> for ListParts {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let asked = headers::ListParts::parse(call.query)?;
        Ok(Self { id: upload_id(call)?, asked })
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let (object, asked) = (call.object()?, self.asked);
        let upload = UploadRef { object, id: &self.id };
        let failed = call.failed();
        // Of none, the upload is asked all the same.
        let max_parts = asked.max_parts.max(1);
        let query = ListPartsQuery { upload, after: asked.part_number_marker, max_parts };
        let mut page = storage.list_parts(query).await.map_err(failed)?;
        if asked.max_parts == 0 {
            page = PartPage { parts: Vec::new(), truncated: false, ..page };
        }
        let result = ListPartsResult {
            bucket: object.bucket.as_str(),
            key: object.key.as_str(),
            upload_id: self.id.as_str(),
            initiator: call.initiator(page.initiator.as_deref()),
            owner: call.owner(),
            part_number_marker: asked.part_number_marker,
            next_part_number_marker: page.parts.last().map(|part| part.part_number).unwrap_or_default(),
            max_parts: asked.max_parts,
            is_truncated: page.truncated,
            checksum: page.chosen,
        };
        // Like S3, which shows none where the upload chose no algorithm, whatever came with the
        // parts.
        let chosen = page.chosen.is_some();
        let parts = page.parts.iter().map(|part| ListedPart {
            part_number: part.part_number,
            last_modified: part.last_modified,
            etag: &part.etag,
            size_bytes: part.size_bytes,
            checksum: part.checksum.filter(|_| chosen),
        });
        let mut reply = reply::ok_xml(result.render(parts));
        set_version_to_be(&mut reply, &call, page.version);
        Ok(reply.into())
    }
}
