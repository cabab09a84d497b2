//! Values of headers as text.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};

/// True if the header was sent. The case of its name does not matter.
pub fn has(headers: &HeaderMap, name: &str) -> bool {
    headers.keys().any(|key| key.as_str().eq_ignore_ascii_case(name))
}

/// Returns the first value of the header `name`, in any case of letters.
pub fn first_value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h HeaderValue> {
    all_values(headers, name).next()
}

/// Returns all values of the header `name`, in any case of letters, in their order.
///
/// A search through the few names that a request has costs less than the map's own, which checks,
/// lowers and hashes the name it is given.
pub fn all_values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h HeaderValue> {
    headers.iter().filter(move |(key, _)| key.as_str().eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns the characters of a value, which is UTF-8 or, if it is not valid UTF-8, ISO 8859-1 (RFC
/// 9110, section 5.5).
pub(super) fn decode(value: &HeaderValue) -> Cow<'_, str> {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

/// Returns the first value of `name`, trimmed; `None` if there is none, or it has other characters
/// than visible ASCII, spaces and tabs.
pub(super) fn ascii<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    first_value(headers, name)?.to_str().ok().map(str::trim)
}

/// Reads the number in a header; `None` if the header is missing or not a number.
pub(super) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    ascii(headers, name)?.parse().ok()
}

/// Returns the first value of `name`, trimmed, with any characters.
pub(super) fn lossless<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    first_value(headers, name).map(trimmed)
}

/// Returns a value's characters, trimmed.
pub(super) fn trimmed(value: &HeaderValue) -> Cow<'_, str> {
    match decode(value) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

/// Returns all values of `name`, joined by commas; `None` if there are none.
pub(super) fn joined<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let mut values = all_values(headers, name).map(decode);
    let first = values.next()?;
    Some(values.fold(first, |mut all, next| {
        all.to_mut().push(',');
        all.to_mut().push_str(&next);
        all
    }))
}
