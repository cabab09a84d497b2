//! Where keys are in their order: bounds of a listing, and what it rolls up.

use backend::ListPosition;

/// The least string that comes after all that start with `prefix`. Not UTF-8, so that no key equals
/// it.
pub(crate) fn after_all(prefix: &str) -> Vec<u8> {
    [prefix.as_bytes(), &[0xff]].concat()
}

/// The least string that a listing which goes on at `start` may show.
pub(crate) fn lower_bound(start: Option<&ListPosition>) -> Vec<u8> {
    match start {
        None => Vec::new(),
        Some(ListPosition::AfterKey(key)) => [key.as_bytes(), &[0]].concat(),
        Some(ListPosition::AfterPrefix(prefix)) => after_all(prefix),
    }
}

/// A position behind all that starts with `prefix`, as a text that may be a marker.
pub(super) fn behind_all(prefix: &str) -> String {
    format!("{prefix}{}", char::MAX)
}

/// What a key is rolled up to: the prefix asked for, and on up to and with the next delimiter.
pub(crate) fn common_prefix<'k>(key: &'k str, prefix: &str, delimiter: &str) -> Option<&'k str> {
    let at = key.strip_prefix(prefix)?.find(delimiter)?;
    Some(&key[..prefix.len() + at + delimiter.len()])
}
