use backend::{ObjectAttributes, ObjectPart, ReadRequest, ReadSelector};
use s3_types::{ActionSet, Checksum, ChecksumType, S3Action, VersionId};
use s3_wire::headers::{AttributesRequest, no_attributes, read_conditions};
use s3_wire::xml::{AttributePart, AttributeParts, AttributePartsPage, ObjectAttributesResult};
use s3_wire::{Result, time};

use crate::access::Authorized;
use crate::call::Call;
use crate::effects::Did;
use crate::ops::about::About;
use crate::ops::handler::Handler;
use crate::ops::object::get::read_error;
use crate::ops::version::{shown, version_id};
use crate::outcome::Outcome;
use crate::reply;

/// GetObjectAttributes.
pub struct GetObjectAttributes {
    version: Option<VersionId>,
    asked: AttributesRequest,
}

impl<'a> Handler<'a> for GetObjectAttributes {
    fn parse(call: &Call<'a>) -> Result<Self> {
        let version = version_id(call.query.get("versionId"))?;
        let asked = AttributesRequest::parse(call.headers)?.ok_or_else(no_attributes)?;
        Ok(Self { version, asked })
    }

    fn about(&self) -> About<'_> {
        About::version(self.version.as_ref())
    }

    fn needs(&self, call: &Call<'a>) -> ActionSet {
        let [read, own] = [S3Action::GetObject, call.action()].map(|action| self.about().actions(action));
        read.or(own)
    }

    async fn perform(self, call: Call<'a>, storage: Authorized<'a>) -> Result<Outcome> {
        let object = call.object()?.of(self.version.as_ref());
        let asked = self.asked;
        let conditions = read_conditions(call.headers, call.cx.now);
        let request = ReadRequest {
            object,
            selector: ReadSelector::Whole,
            conditions: &conditions,
            with_lock: false,
            check: None,
        };
        let read = match storage.head_object(request).await {
            Ok(read) => read,
            Err(error) => return read_error(&call, error).map(Outcome::from),
        };
        let mut reply = reply::ok_xml(render(&asked, &read.attributes));
        reply::set(
            reply.headers_mut(),
            "last-modified",
            time::format_http_date(read.attributes.last_modified),
        );
        let version = shown(read.attributes.version, call.versioning);
        reply::set_version(reply.headers_mut(), version.as_ref());
        let did = Did { object_bytes: Some(read.attributes.size_bytes), version };
        Ok(Outcome::done(reply, did))
    }
}

fn render(asked: &AttributesRequest, attributes: &ObjectAttributes) -> String {
    let parts = attributes.parts.as_deref().filter(|_| asked.object_parts);
    let page = parts.map(|parts| page(asked, parts)).unwrap_or_default();
    // S3 shows single parts only where the object's checksum is made of theirs.
    let composite = |checksum: &Checksum| checksum.checksum_type == ChecksumType::Composite;
    let shows_parts = attributes.checksum.as_ref().is_some_and(composite);
    // And the checksum, here alone, without the number of its parts.
    let checksum = attributes.checksum.map(|checksum| Checksum { parts: None, ..checksum });
    let result = ObjectAttributesResult {
        etag: asked.etag.then_some(&attributes.etag),
        checksum: checksum.as_ref().filter(|_| asked.checksum),
        object_parts: parts.map(|parts| AttributeParts {
            total_parts: parts.len(),
            page: shows_parts.then(|| AttributePartsPage {
                part_number_marker: asked.part_number_marker,
                next_part_number_marker: page.last().map(|part| part.part_number).unwrap_or_default(),
                max_parts: asked.max_parts,
                is_truncated: page.last().map(|part| part.part_number) != last_number(asked, parts),
                parts: &page,
            }),
        }),
        storage_class: asked.storage_class.then_some("STANDARD"),
        object_size: asked.object_size.then_some(attributes.size_bytes),
    };
    result.render()
}

fn page(asked: &AttributesRequest, parts: &[ObjectPart]) -> Vec<AttributePart> {
    let wanted =
        parts.iter().filter(|part| part.part_number > asked.part_number_marker).take(asked.max_parts);
    wanted
        .map(|part| AttributePart {
            part_number: part.part_number,
            size_bytes: part.size_bytes,
            checksum: part.checksum,
        })
        .collect()
}

/// Returns the number of the last part, if there is any part after the marker.
fn last_number(asked: &AttributesRequest, parts: &[ObjectPart]) -> Option<u32> {
    parts.last().map(|part| part.part_number).filter(|number| *number > asked.part_number_marker)
}
