//! The query string, decoded once.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use s3_types::hex;

use crate::error::{ErrorCode, Result};
use crate::limits::QUERY_PARAMETERS_MAX;
use crate::split::{cut, pieces};

/// The decoded parameters of a query string, in order.
#[derive(Debug, Clone, Default)]
pub struct Query<'a> {
    parameters: Vec<Parameter<'a>>,
}

#[derive(Debug, Clone)]
struct Parameter<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
    /// The offset of the parameter in the query as it was sent, in bytes.
    start: usize,
}

impl<'a> Query<'a> {
    /// Decodes `raw`, a query without its `?`. `+` means a space, as in S3. Bytes that are not
    /// UTF-8, and too many parameters, are `InvalidURI`.
    pub fn parse(raw: &'a str) -> Result<Self> {
        let ends = raw.bytes().filter(|b| *b == b'&').count();
        if ends >= QUERY_PARAMETERS_MAX {
            return Err(ErrorCode::InvalidURI.into());
        }
        let mut parameters = Vec::with_capacity(if raw.is_empty() { 0 } else { ends + 1 });
        let mut rest = raw;
        while !rest.is_empty() {
            let start = raw.len() - rest.len();
            let pair;
            (pair, rest) = cut(rest, b'&');
            if !pair.is_empty() {
                let (name, value) = cut(pair, b'=');
                parameters.push(Parameter { name: decode(name)?, value: decode(value)?, start });
            }
        }
        Ok(Self { parameters })
    }

    /// Returns the first value of `name`. The case of names matters.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|parameter| parameter.name == name).map(|parameter| &*parameter.value)
    }

    /// Returns the first value of `name`, unless it is empty.
    pub fn get_non_empty(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// True if there is a parameter `name`, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the number of parameters.
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// True if there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// Returns all parameters in order, decoded.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().map(|parameter| (&*parameter.name, &*parameter.value))
    }

    /// Returns the names in order, decoded, and the offsets of their parameters in the raw query.
    pub fn starts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.parameters.iter().map(|parameter| (&*parameter.name, parameter.start))
    }
}

fn decode(text: &str) -> Result<Cow<'_, str>> {
    if memchr2(b'%', b'+', text.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(text));
    }
    let spaced: Cow<'_, str> =
        if memchr(b'+', text.as_bytes()).is_some() { text.replace('+', " ").into() } else { text.into() };
    let mut decoded = Vec::with_capacity(spaced.len());
    // Credentials and lists of signed headers have few encoded bytes: the text between those is
    // copied.
    let mut pieces = pieces(&spaced, b'%');
    decoded.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let piece = piece.as_bytes();
        let byte = piece.split_at_checked(2).and_then(|(digits, rest)| Some((hex::decode(digits)?, rest)));
        // A `%` without two digits stands for itself (WHATWG's URL standard, percent-decode).
        let ([byte], rest) = byte.unwrap_or(([b'%'], piece));
        decoded.push(byte);
        decoded.extend_from_slice(rest);
    }
    String::from_utf8(decoded).map(Cow::Owned).map_err(|_| ErrorCode::InvalidURI.into())
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
        let query = Query::parse("a=%2b%+1%zz%4&b=%C3%a9%%&c=%25%32%46").unwrap();
        assert_eq!(query.get("a"), Some("+% 1%zz%4"));
        assert_eq!(query.get("b"), Some("\u{e9}%%"));
        assert_eq!(query.get("c"), Some("%2F"));
        assert_eq!(query.get_non_empty("acl"), None);
        assert!(Query::parse("a=%FF").is_err());
    }

    #[test]
    fn knows_where_parameters_begin() {
        let query = Query::parse("&a=1&&%62=2&c").unwrap();
        assert_eq!(query.starts().collect::<Vec<_>>(), [("a", 1), ("b", 6), ("c", 12)]);
    }
}
