//! Answers to bytes that never become a request.

use s3_wire::{ErrorCode, S3Error};

use crate::gateway::Gateway;

/// The beginning of a header that all responses of the gateway have.
const ID_HEADER: &[u8] = b"\r\nx-amz-request-id:";

/// Returns a whole response with an error document, after which the connection is closed.
pub fn response(gateway: &Gateway, error: &S3Error) -> String {
    let (id, host_id) = (gateway.request_ids.next(), gateway.host_id.as_str());
    let status = error.status();
    tracing::debug!(id = id.as_str(), %status, "{error}");
    let body = error.render(id.as_str(), host_id);
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/xml\r\nserver: Slipway\r\nx-amz-request-id: {id}\r\n\
         x-amz-id-2: {host_id}\r\nconnection: close\r\ncontent-length: {}\r\n",
        status.as_u16(),
        body.len()
    );
    for (name, value) in error.headers() {
        if let Ok(value) = value.to_str() {
            head.extend([name.as_str(), ": ", value, "\r\n"]);
        }
    }
    head + "\r\n" + &body
}

/// Returns S3's error for a request head that hyper could not read, if `written` is the answer that
/// hyper itself writes to such a head. `None` if it is part of a response of the gateway.
pub fn in_place_of(written: &[u8]) -> Option<S3Error> {
    let status = written.strip_prefix(b"HTTP/1.1 ").or_else(|| written.strip_prefix(b"HTTP/1.0 "))?;
    let code = match status.get(..3)? {
        b"431" => ErrorCode::RequestHeaderSectionTooLarge,
        b"414" => ErrorCode::InvalidURI,
        [b'4' | b'5', ..] => ErrorCode::BadRequest,
        _ => return None,
    };
    let ours = written.windows(ID_HEADER.len()).any(|window| window.eq_ignore_ascii_case(ID_HEADER));
    (!ours).then(|| code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_answers_are_replaced() {
        let code = |written: &[u8]| in_place_of(written).map(|error| error.code());
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n";
        assert_eq!(code(bare), Some(ErrorCode::RequestHeaderSectionTooLarge));
        assert_eq!(code(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Some(ErrorCode::BadRequest));
        assert_eq!(code(b"HTTP/1.1 404 Not Found\r\nX-Amz-Request-Id: 1\r\n\r\n"), None);
        assert_eq!(code(b"HTTP/1.1 100 Continue\r\n\r\n"), None);
        assert_eq!(code(b"HTTP/1.1 4"), None);
        assert_eq!(code(b"</Error>"), None);
    }
}
