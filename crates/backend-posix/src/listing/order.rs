//! The order of keys: bounds of a listing, and common prefixes.

use backend::ListPosition;

/// Returns the smallest string after all that start with `prefix`. It is not UTF-8, so that no key
/// equals it.
pub(crate) fn after_all(prefix: &str) -> Vec<u8> {
    [prefix.as_bytes(), &[0xff]].concat()
}

/// Returns the smallest string that a listing may show if it continues at `start`.
pub(crate) fn lower_bound(start: Option<&ListPosition>) -> Vec<u8> {
    match start {
        None => Vec::new(),
        // Each object is its only version.
        Some(ListPosition::AfterKey(key) | ListPosition::AfterVersion { key, .. }) => {
            [key.as_bytes(), &[0]].concat()
        }
        Some(ListPosition::AfterPrefix(prefix)) => after_all(prefix),
    }
}

/// Returns a position after all keys that start with `prefix`, as a text that can be a marker.
pub(super) fn behind_all(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// Returns the common prefix that a key is rolled up to: the requested prefix, and the text up to
/// and including the next delimiter. `None` if there is no delimiter.
pub(crate) fn common_prefix<'k>(key: &'k str, prefix: &str, delimiter: &str) -> Option<&'k str> {
    let at = key.strip_prefix(prefix)?.find(delimiter)?;
    Some(&key[..prefix.len() + at + delimiter.len()])
}
