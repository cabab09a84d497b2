//! Headers' values as text.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue};

/// True if a header is there, by its name in lower case. Looking through the few names there are
/// costs less than the map's own search, which hashes and checks the name.
pub fn has(headers: &HeaderMap, name: &str) -> bool {
    headers.keys().any(|key| key.as_str() == name)
}

/// A value's characters: UTF-8 where it is that, else ISO 8859-1 (RFC 9110, section 5.5).
pub(super) fn decode(value: &HeaderValue) -> Cow<'_, str> {
    match str::from_utf8(value.as_bytes()) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

/// The first value of `name`, trimmed; `None` if there is none or it has characters that no such
/// value has.
pub(super) fn ascii<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The first value of `name`, trimmed, with whatever characters it has.
pub(super) fn lossless<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    headers.get(name).map(|value| match decode(value) {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    })
}

/// All values of `name`, joined by commas; `None` if there is none.
pub(super) fn joined<'h>(headers: &'h HeaderMap, name: &str) -> Option<Cow<'h, str>> {
    let mut values = headers.get_all(name).iter().map(decode);
    let first = values.next()?;
    Some(values.fold(first, |mut all, next| {
        all.to_mut().push(',');
        all.to_mut().push_str(&next);
        all
    }))
}
