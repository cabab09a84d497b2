//! Responses, in the few forms that S3 has.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use s3_types::VersionId;
use s3_wire::xml::Writer;

use crate::body::{self, ResponseBody};
use crate::spare_headers;

/// The header which says that a version is a delete marker.
pub const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
/// The header that names a version.
pub const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// A response on its way to the client.
pub type Reply = Response<ResponseBody>;

/// Makes a response without a body.
pub fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = status;
    *reply.headers_mut() = spare_headers::take();
    reply
}

/// Makes a response that is an XML document.
pub fn xml(status: StatusCode, document: String) -> Reply {
    let mut reply = Response::new(ResponseBody::bytes(document));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    reply
}

/// Makes a response with `200` and an XML document.
pub fn ok_xml(document: String) -> Reply {
    xml(StatusCode::OK, document)
}

/// Makes a response with `200` and an XML document of many entries, which is written while it is
/// sent.
pub fn ok_entries<T>(
    writer: Writer,
    entries: impl IntoIterator<Item = T, IntoIter: Send + 'static>,
    write: impl Fn(T, &mut Writer) + Send + 'static,
) -> Reply {
    let mut reply = ok_xml(String::new());
    *reply.body_mut() = body::entries(writer, entries.into_iter(), write);
    reply
}

/// Sets the header that names the version of an object, if versions are kept.
pub fn set_version(headers: &mut HeaderMap, version: Option<&VersionId>) {
    if let Some(version) = version.and_then(|version| HeaderValue::from_str(version.as_str()).ok()) {
        headers.insert(VERSION_ID, version);
    }
}

/// Sets a header to a value that is made of checked text. A value that a header cannot hold is left
/// out.
pub fn set(headers: &mut HeaderMap, name: &'static str, value: impl AsRef<str>) {
    if let Ok(value) = HeaderValue::from_str(value.as_ref()) {
        headers.insert(name, value);
    }
}
