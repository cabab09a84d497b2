use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use s3_types::limits::KEY_BYTES_MAX;

use crate::Result;
use crate::error::S3Error;

/// Changes with the meaning of the bytes behind it.
const VERSION: u8 = 1;
const AFTER_KEY: u8 = b'k';
const AFTER_PREFIX: u8 = b'p';
/// A position is a key, or a key with a delimiter behind it.
const TOKEN_BYTES_MAX: usize = 4 * KEY_BYTES_MAX;

/// Where a listing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStart {
    /// After this key, which need not exist.
    AfterKey(String),
    /// After all keys that start so: a common prefix that was listed already.
    AfterPrefix(String),
}

impl ListStart {
    /// The continuation token for it: opaque to clients, and safe in a URL.
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

    /// Reads a token; what is none of ours is `InvalidArgument`.
    pub fn from_token(token: &str) -> Result<Self> {
        Self::decode(token).ok_or_else(|| {
            S3Error::invalid_argument(
                "continuation-token",
                token,
                "The continuation token provided is incorrect",
            )
        })
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

    /// The position that a marker means. A marker that is a common prefix (as NextMarker may be) stands for all keys
    /// below it; otherwise a listing with that delimiter would never get past it.
    pub fn from_marker(marker: &str, prefix: &str, delimiter: Option<&str>) -> Option<Self> {
        if marker.is_empty() {
            return None;
        }
        let is_common_prefix = delimiter.is_some_and(|delimiter| {
            marker
                .strip_prefix(prefix)
                .and_then(|rest| rest.split_once(delimiter))
                .is_some_and(|(_, behind)| behind.is_empty())
        });
        let marker = marker.to_owned();
        Some(if is_common_prefix { Self::AfterPrefix(marker) } else { Self::AfterKey(marker) })
    }
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
            assert_eq!(error.details()[0], ("ArgumentName", "continuation-token".to_owned()));
        }
        assert_eq!(ListStart::AfterKey("abc".into()).to_token(), "AWthYmM");
    }

    #[test]
    fn a_marker_may_be_a_common_prefix() {
        let start = |marker, prefix, delimiter| ListStart::from_marker(marker, prefix, delimiter);
        let key = |text: &str| Some(ListStart::AfterKey(text.into()));
        let prefix = |text: &str| Some(ListStart::AfterPrefix(text.into()));
        assert_eq!(start("", "", Some("/")), None);
        assert_eq!(start("a/", "", None), key("a/"));
        assert_eq!(start("a/", "", Some("/")), prefix("a/"));
        assert_eq!(start("a/b", "", Some("/")), key("a/b"));
        assert_eq!(start("a/b/", "", Some("/")), key("a/b/"));
        assert_eq!(start("a/b/", "a/", Some("/")), prefix("a/b/"));
        assert_eq!(start("a/", "a/", Some("/")), key("a/"));
        assert_eq!(start("b/", "a", Some("/")), key("b/"));
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
