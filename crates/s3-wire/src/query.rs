//! The query string, decoded once.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use percent_encoding::percent_decode_str;

use crate::error::{ErrorCode, Result};
use crate::limits::QUERY_PARAMETERS_MAX;

/// The decoded parameters of a query string, in order.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    parameters: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

impl<'a> Query<'a> {
    /// Decodes `raw` (without the `?`). `+` means a space, as S3 has it. Bytes that are not UTF-8
    /// give `InvalidURI`.
    pub fn parse(raw: &'a str) -> Result<Self> {
        let ends = raw.bytes().filter(|b| *b == b'&').count();
        if ends >= QUERY_PARAMETERS_MAX {
            return Err(ErrorCode::InvalidURI.into());
        }
        let mut parameters = Vec::with_capacity(if raw.is_empty() { 0 } else { ends + 1 });
        let mut rest = raw;
        while !rest.is_empty() {
            let pair;
            (pair, rest) = cut(rest, b'&');
            if !pair.is_empty() {
                let (name, value) = cut(pair, b'=');
                parameters.push((decode(name)?, decode(value)?));
            }
        }
        Ok(Self { parameters })
    }

    /// The first value of `name`; names are case-sensitive.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_ref())
    }

    /// The first value of `name`, unless it is empty.
    pub fn get_non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// True if `name` is there, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// All parameters in order, decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|(n, v)| (n.as_ref(), v.as_ref()))
    }
}

/// What is before the first `end`, an ASCII character, and what is behind it.
fn cut(text: &str, end: u8) -> (&str, &str) {
    let at = memchr(end, text.as_bytes()).unwrap_or(text.len());
    (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default())
}

fn decode(text: &str) -> Result<Cow<'_, str>> {
    if memchr2(b'%', b'+', text.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let spaced: Cow<'_, str> = if text.contains('+') { text.replace('+', " ").into() } else { text.into() };
    let decoded = match &spaced {
        Cow::Borrowed(text) => percent_decode_str(text).decode_utf8().map_err(|_| ErrorCode::InvalidURI)?,
        Cow::Owned(text) => Cow::Owned(
            percent_decode_str(text).decode_utf8().map_err(|_| ErrorCode::InvalidURI)?.into_owned(),
        ),
    };
    Ok(match (decoded, spaced) {
        (Cow::Borrowed(_), Cow::Borrowed(text)) => Cow::Borrowed(text),
        (decoded, _) => Cow::Owned(decoded.into_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_names_and_values() {
        let query = Query::parse("list-type=2&prefix=a%2Fb+c&acl&&x=%25&y=a=b").unwrap();
        assert_eq!(query.get("list-type"), Some("2"));
        assert_eq!(query.get("prefix"), Some("a/b c"));
        assert_eq!(query.get("acl"), Some(""));
        assert_eq!(query.get("x"), Some("%"));
        assert_eq!(query.get("y"), Some("a=b"));
        assert_eq!(query.get("none"), None);
        assert_eq!(query.get_non_empty("acl"), None);
        assert!(Query::parse("a=%FF").is_err());
    }
}
