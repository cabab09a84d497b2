//! The canonical request of SigV4 (S3 API reference, "Signature calculations for the Authorization
//! header").

use http::HeaderMap;

use super::encoding::encode_query;
use super::request::SignedRequest;
use crate::headers::all_values;
use crate::split::pieces;

/// The query parameter with the signature, which is not signed itself.
const SIGNATURE: &str = "X-Amz-Signature";
/// The initial capacity for an encoded query, in bytes: most queries need less.
const QUERY_BYTES_MOST: usize = 512;

/// Returns the canonical request. `path` is the path in the form in which the client probably
/// signed it.
///
/// A header that is named in `signed_headers` but was not sent counts as empty, as in S3.
pub(super) fn canonical_request(
    request: &SignedRequest<'_>,
    path: &str,
    signed_headers: &str,
    content_sha256: &str,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(request.method.as_str().as_bytes());
    out.push(b'\n');
    out.extend_from_slice(if path.is_empty() { b"/" } else { path.as_bytes() });
    out.push(b'\n');
    write_query(request, &mut out);
    out.push(b'\n');
    for name in pieces(signed_headers, b';') {
        out.extend_from_slice(name.as_bytes());
        out.push(b':');
        if name.eq_ignore_ascii_case("host") {
            write_value(request.host.unwrap_or_default().as_bytes(), &mut out);
        } else {
            write_values(request.headers, name, &mut out);
        }
        out.push(b'\n');
    }
    out.push(b'\n');
    out.extend_from_slice(signed_headers.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(content_sha256.as_bytes());
    out
}

/// Appends the values of a header, joined with commas.
fn write_values(headers: &HeaderMap, name: &str, out: &mut Vec<u8>) {
    for (index, value) in all_values(headers, name).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_value(value.as_bytes(), out);
    }
}

/// Appends a value without outer blanks, and with one space for each run of inner ones.
fn write_value(value: &[u8], out: &mut Vec<u8>) {
    let words = value.split(|b| matches!(b, b' ' | b'\t')).filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(word);
    }
}

/// Appends the parameters in AWS's encoding, sorted by name, then by value.
fn write_query(request: &SignedRequest<'_>, out: &mut Vec<u8>) {
    let mut text = String::with_capacity(QUERY_BYTES_MOST);
    // The offsets in `text` at which each parameter's name starts and ends, and its value ends.
    let mut parameters: Vec<(usize, usize, usize)> = Vec::with_capacity(request.query.len());
    for (name, value) in request.query.iter().filter(|(name, _)| *name != SIGNATURE) {
        let start = text.len();
        encode_query(name, &mut text);
        let middle = text.len();
        encode_query(value, &mut text);
        parameters.push((start, middle, text.len()));
    }
    let part = |from: usize, to: usize| text.as_bytes().get(from..to).unwrap_or_default();
    parameters.sort_unstable_by_key(|&(start, middle, end)| (part(start, middle), part(middle, end)));
    for (index, (start, middle, end)) in parameters.into_iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(part(start, middle));
        out.push(b'=');
        out.extend_from_slice(part(middle, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Query;
    use http::{HeaderValue, Method};

    fn canonical(path: &str, query: &str, headers: &[(&'static str, &str)], signed_headers: &str) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let request = SignedRequest {
            method: &Method::GET,
            raw_path: path,
            query: &Query::parse(query).unwrap(),
            headers: &map,
            host: Some("h:9000"),
            virtual_bucket: None,
        };
        String::from_utf8(canonical_request(&request, path, signed_headers, "UNSIGNED-PAYLOAD")).unwrap()
    }

    fn query(raw: &str) -> String {
        canonical("/", raw, &[], "host").lines().nth(2).unwrap().to_owned()
    }

    #[test]
    fn queries_are_encoded_and_sorted() {
        assert_eq!(query(""), "");
        assert_eq!(query("uploads"), "uploads=");
        assert_eq!(query("prefix=J&max-keys=2&marker="), "marker=&max-keys=2&prefix=J");
        assert_eq!(query("a=b+c&a=b%20a&a=~%7e&a=%2b/*"), "a=%2B%2F%2A&a=b%20a&a=b%20c&a=~~");
        assert_eq!(query("prefix=é&b=%c3%a9"), "b=%C3%A9&prefix=%C3%A9");
        // Parameters are sorted by encoded name, not by encoded pair: `a` comes before `a-b`,
        // though `=` comes after `-`.
        assert_eq!(query("a-b=1&a=2&A=3&X-Amz-Signature=x"), "A=3&a=2&a-b=1");
    }

    #[test]
    fn headers_are_joined_and_collapsed() {
        let headers =
            [("x-amz-a", "  one   two\t three "), ("x-amz-b", "1"), ("x-amz-b", ""), ("x-amz-b", "é")];
        let text = canonical("/a%20b//c", "", &headers, "host;x-amz-a;x-amz-b;x-none");
        assert_eq!(
            text,
            "GET\n/a%20b//c\n\nhost:h:9000\nx-amz-a:one two three\nx-amz-b:1,,é\nx-none:\n\n\
             host;x-amz-a;x-amz-b;x-none\nUNSIGNED-PAYLOAD"
        );
    }
}
