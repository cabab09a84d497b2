use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use s3_types::limits::KEY_BYTES_MAX;

use crate::error::{Result, S3Error};

/// The version of the token's format, which changes when the meaning of the bytes after it does.
const VERSION: u8 = 1;
const AFTER_KEY: u8 = b'k';
const AFTER_PREFIX: u8 = b'p';
/// The last character of a marker for a page that ended early, in the middle of a common prefix
/// that was not listed yet.
const AMID: char = char::MAX;
/// The longest token, in bytes, with room to spare: a position is a key, or a key with a delimiter
/// at its end.
const TOKEN_BYTES_MAX: usize = 4 * KEY_BYTES_MAX;

/// A position at which a listing continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStart {
    /// The position after this key, which need not exist.
    AfterKey(String),
    /// The position after all keys that start with this text: a common prefix that was already
    /// listed.
    AfterPrefix(String),
}

impl ListStart {
    /// Returns the continuation token for the position: opaque to clients, and safe in a URL.
    pub fn to_token(&self) -> String {
        let (kind, text) = match self {
            Self::AfterKey(text) => (AFTER_KEY, text),
            Self::AfterPrefix(text) => (AFTER_PREFIX, text),
        };
        let mut bytes = Vec::with_capacity(text.len() + 2);
        bytes.extend([VERSION, kind]);
        bytes.extend(text.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads a token; `InvalidArgument` if it is empty, or this server cannot have made it.
    pub fn from_token(token: &str) -> Result<Self> {
        Self::decode(token).ok_or_else(Self::refusal)
    }

    /// Makes S3's error for a token that it did not make, which does not repeat the token.
    pub(super) fn refusal() -> S3Error {
        S3Error::argument_named("continuation-token", "The continuation token provided is incorrect")
    }

    fn decode(token: &str) -> Option<Self> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (head, text) = bytes.split_first_chunk::<2>()?;
        let text = str::from_utf8(text).ok().filter(|text| !text.is_empty())?.to_owned();
        match *head {
            [VERSION, AFTER_KEY] => Some(Self::AfterKey(text)),
            [VERSION, AFTER_PREFIX] => Some(Self::AfterPrefix(text)),
            _ => None,
        }
    }

    /// Returns the position that a marker stands for. A marker that is a common prefix (as
    /// NextMarker may be), or lies in one, stands for all keys in that: S3 does not list a group
    /// again if the marker is in it. A marker that [`ListStart::to_marker`] made in the middle of a
    /// group stands for itself alone.
    pub fn from_marker(marker: &str, prefix: &str, delimiter: Option<&str>) -> Option<Self> {
        let group = delimiter.and_then(|delimiter| common_prefix(marker, prefix, delimiter));
        Self::at(marker, group.filter(|_| !marker.ends_with(AMID)))
    }

    /// Returns the marker for the position. In a common prefix that was not listed yet, it is a
    /// text just before the position that ends with `char::MAX`, so that the next page skips
    /// nothing.
    pub fn to_marker(&self, prefix: &str, delimiter: Option<&str>) -> Cow<'_, str> {
        match self {
            Self::AfterKey(key)
                if !key.ends_with(AMID)
                    && delimiter.is_some_and(|d| common_prefix(key, prefix, d).is_some()) =>
            {
                let mut text = key.clone();
                while let Some(last) = text.pop() {
                    // The character before '\u{e000}' is not the preceding number, which is a
                    // surrogate.
                    if let Some(before) = ('\0'..last).next_back() {
                        text.extend([before, AMID]);
                        break;
                    }
                }
                Cow::Owned(text)
            }
            Self::AfterKey(text) | Self::AfterPrefix(text) => Cow::Borrowed(text),
        }
    }

    /// Returns the position that `start-after` stands for. Unless `start-after` is a common prefix
    /// itself, the group that it lies in is listed.
    pub fn from_start_after(start_after: &str, prefix: &str, delimiter: Option<&str>) -> Option<Self> {
        let group = delimiter.and_then(|delimiter| common_prefix(start_after, prefix, delimiter));
        Self::at(start_after, group.filter(|group| *group == start_after))
    }

    fn at(key: &str, group: Option<&str>) -> Option<Self> {
        match group {
            Some(group) => Some(Self::AfterPrefix(group.to_owned())),
            None => (!key.is_empty()).then(|| Self::AfterKey(key.to_owned())),
        }
    }
}

/// Returns the common prefix under which a key is listed, if any.
fn common_prefix<'k>(key: &'k str, prefix: &str, delimiter: &str) -> Option<&'k str> {
    let rest = key.strip_prefix(prefix)?;
    let end = prefix.len() + rest.find(delimiter)? + delimiter.len();
    key.get(..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_token_is_refused() {
        for bad in ["", "x", "!!!!", "AWs", "AmthYmM", "AXhhYmM", "AWv_", "AWthYmM=", &"A".repeat(5000)] {
            let error = ListStart::from_token(bad).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidArgument, "{bad}");
            assert_eq!(error.message(), "The continuation token provided is incorrect");
            assert_eq!(error.details(), [("ArgumentName", "continuation-token".to_owned())]);
        }
        assert_eq!(ListStart::AfterKey("abc".into()).to_token(), "AWthYmM");
    }

    #[test]
    fn a_marker_may_be_in_a_common_prefix() {
        let start = |marker, prefix, delimiter| ListStart::from_marker(marker, prefix, delimiter);
        let start_after = |key, prefix, delimiter| ListStart::from_start_after(key, prefix, delimiter);
        let key = |text: &str| Some(ListStart::AfterKey(text.into()));
        let prefix = |text: &str| Some(ListStart::AfterPrefix(text.into()));
        assert_eq!(start("", "", Some("/")), None);
        assert_eq!(start("a/", "", None), key("a/"));
        assert_eq!(start("a/", "", Some("/")), prefix("a/"));
        assert_eq!(start("a/b", "", Some("/")), prefix("a/"));
        assert_eq!(start("a/b/", "", Some("/")), prefix("a/"));
        assert_eq!(start("a/b/c", "a/", Some("/")), prefix("a/b/"));
        assert_eq!(start("aébéc", "a", Some("é")), prefix("aé"));
        assert_eq!(start("a/b/", "a/", Some("/")), prefix("a/b/"));
        assert_eq!(start("a/", "a/", Some("/")), key("a/"));
        assert_eq!(start("b/", "a", Some("/")), key("b/"));
        assert_eq!(start_after("a/b", "", Some("/")), key("a/b"));
        assert_eq!(start_after("a/", "", Some("/")), prefix("a/"));
        assert_eq!(start_after("", "", Some("/")), None);
    }

    /// A page may end early at any key, and the next page skips nothing.
    #[test]
    fn a_page_may_end_amid_a_common_prefix() {
        let next = |position: ListStart| {
            let marker = position.to_marker("p", Some("/")).into_owned();
            (ListStart::from_marker(&marker, "p", Some("/")).unwrap(), marker)
        };
        let key = |text: &str| ListStart::AfterKey(text.into());
        for (position, marker) in [
            ("plain", "plain"),
            ("p/b", "p/a\u{10ffff}"),
            ("p/\u{e000}", "p/\u{d7ff}\u{10ffff}"),
            ("p/b\0", "p/a\u{10ffff}"),
            ("p/b\u{10ffff}", "p/b\u{10ffff}"),
        ] {
            assert_eq!(next(key(position)), (key(marker), marker.to_owned()));
        }
        let group = ListStart::AfterPrefix("p/".into());
        assert_eq!(next(group.clone()), (group, "p/".to_owned()));
        assert_eq!(key("p/b").to_marker("p", None), "p/b");
    }

    proptest! {
        #[test]
        fn tokens_come_back(text in "(?s).{1,64}", is_prefix: bool) {
            let start = if is_prefix { ListStart::AfterPrefix(text) } else { ListStart::AfterKey(text) };
            let token = start.to_token();
            prop_assert!(token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(ListStart::from_token(&token).unwrap(), start);
        }

        #[test]
        fn no_token_panics(token in any::<String>()) {
            let _ = ListStart::from_token(&token);
        }
    }
}
