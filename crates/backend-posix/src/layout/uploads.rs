//! Names of uploads, and of what is left of them.

/// Directory of uploads, in `.slipway`.
pub(crate) const UPLOADS: &str = "uploads";

/// Directory of receipts, in `.slipway`.
pub(crate) const COMPLETED: &str = "completed";

/// Length of an upload's id, in characters.
pub(crate) const ID_LENGTH: usize = 48;

/// True for what could be the id of an upload.
pub(crate) fn is_id(id: &str) -> bool {
    id.len() == ID_LENGTH && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
