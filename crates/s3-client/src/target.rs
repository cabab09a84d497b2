//! The targets of requests: paths and queries, percent-encoded in the form that signatures need.

use http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are encoded in a query: all but those that RFC 3986 calls unreserved.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The characters that are encoded in a path: those of a query except the slash.
const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/');

/// Makes the target with this path, which begins with a slash, and these parameters; none of them
/// is encoded yet. Returns `None` if the target would be too long.
pub fn target(path: &str, query: &[(&str, &str)]) -> Option<PathAndQuery> {
    let mut text = utf8_percent_encode(path, IN_PATH).to_string();
    for (n, (name, value)) in query.iter().enumerate() {
        text.push(if n == 0 { '?' } else { '&' });
        text.extend(utf8_percent_encode(name, IN_QUERY));
        text.push('=');
        text.extend(utf8_percent_encode(value, IN_QUERY));
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unreserved_characters_stay() {
        let key = "/b/a b/\u{fc}+%?&=#~-._";
        let target = target(key, &[("prefix", "x/ +&\u{fc}"), ("uploads", "")]).unwrap();
        assert_eq!(target.path(), "/b/a%20b/%C3%BC%2B%25%3F%26%3D%23~-._");
        assert_eq!(target.query(), Some("prefix=x%2F%20%2B%26%C3%BC&uploads="));
    }

    #[test]
    fn what_is_too_long_has_no_target() {
        assert_eq!(target(&format!("/{}", "x".repeat(70_000)), &[]), None);
    }
}
